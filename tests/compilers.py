"""Whether this machine can compile and disassemble kernels: the mark of tests that do."""

from __future__ import annotations

import pytest

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain import disassembly, nvrtc


def missing() -> str:
    """What is not installed, and how to get it; empty if all is."""
    try:
        nvrtc.version()
        disassembly.nvdisasm()
    except NotHereError as error:
        return str(error)
    return ""


compiles = pytest.mark.skipif(bool(missing()), reason=missing())
