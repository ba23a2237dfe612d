"""Compile CUDA C++ with NVRTC through cuda-core: no toolkit, no driver, no GPU."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from mmaprobe.errors import MmaprobeError, NotHereError
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source


class RefusedError(MmaprobeError):
    """The compiler refuses an instruction for an architecture."""

    exit_code = 3


@cache
def cuda_core() -> ModuleType:
    """cuda-core, imported when it is first used; NotHereError that says what to install."""
    try:
        return import_module("cuda.core")
    except ImportError as error:
        raise NotHereError(f"cuda-core is not installed ({error}): pip install 'mmaprobe[cuda13]'") from None


@cache
def version() -> str:
    """``NVRTC 13.5``; NotHereError where its library is not installed."""
    cuda_core()
    from cuda.bindings import nvrtc

    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise NotHereError(f"NVRTC is not installed ({error}): pip install 'mmaprobe[cuda13]'") from None
    if int(status):
        raise NotHereError(f"NVRTC does not say its version (status {int(status)})")
    return f"NVRTC {major}.{minor}"


def compile_source(source: Source) -> Kernel:
    """The cubin of a source for its exact architecture; RefusedError with the compiler's own words."""
    stamp, core = version(), cuda_core()
    options = core.ProgramOptions(std="c++17", arch=source.architecture)
    try:
        made = core.Program(source.text, "c++", options).compile("cubin")
    except Exception as error:  # cuda-core raises classes of several modules
        raise RefusedError(f"{source.instruction} on {source.architecture}: {stamp} refuses it: {error}") from error
    return Kernel.of(source, bytes(made.code), stamp)
