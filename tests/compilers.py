"""Whether this machine can compile and disassemble kernels: the mark of tests that do."""

from __future__ import annotations

import pytest

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain import code_object, disassembly, nvrtc
from mmaprobe.toolchain.hip import Clang


def missing() -> str:
    """What NVIDIA's kernels need and is not installed, and how to get it; empty if all is."""
    try:
        nvrtc.version()
        disassembly.nvdisasm()
    except NotHereError as error:
        return str(error)
    return ""


def missing_amd() -> str:
    """The same for AMD's: a clang that knows all of the catalog's architectures, and llvm-objdump."""
    try:
        Clang().check_architecture("gfx1251")
        code_object.objdump()
    except NotHereError as error:
        return str(error)
    return ""


compiles = pytest.mark.skipif(bool(missing()), reason=missing())
compiles_amd = pytest.mark.skipif(bool(missing_amd()), reason=missing_amd())
