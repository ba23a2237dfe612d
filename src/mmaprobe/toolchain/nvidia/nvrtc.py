"""Compile CUDA C++ with NVRTC through cuda-core: no toolkit, no driver, no GPU."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import RefusedError, refusal
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source

LANGUAGE = {"std": "c++17", "device_int128": True}
"""What the compiler is told beside the architecture, by cuda-core's names."""
NEWER = "pip install -U nvidia-cuda-nvrtc"
"""What gets a newer one."""


@cache
def cuda_core() -> ModuleType:
    """cuda-core, imported when it is first used; NotHereError that says what to install."""
    try:
        core = import_module("cuda.core")
    except ImportError as error:
        raise NotHereError(f"cuda-core is not installed ({error}): pip install 'mmaprobe[cuda13]'") from None
    if not hasattr(core, "ProgramOptions"):
        raise NotHereError(f"cuda-core {core.__version__} is older than 0.5: pip install -U 'cuda-core>=0.5'")
    return core


@cache
def version() -> str:
    """``NVRTC 13.5``; NotHereError where its library is not installed."""
    cuda_core()
    from cuda.bindings import nvrtc

    try:
        status, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise NotHereError(
            f"NVRTC is not installed ({str(error).partition(': ')[0]}): pip install 'mmaprobe[cuda13]'"
        ) from None
    if int(status):
        raise NotHereError(f"NVRTC does not say its version (status {int(status)})")
    return f"NVRTC {major}.{minor}"


@cache
def architectures() -> tuple[str, ...]:
    """What NVRTC compiles for, without the letters: ``sm_75``, ``sm_90``, ..."""
    version()
    from cuda.bindings import nvrtc

    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, numbers = nvrtc.nvrtcGetSupportedArchs()
    return tuple(f"sm_{number}" for number in numbers[:count])


def options(source: Source) -> tuple[str, ...]:
    """All that it is told of a source."""
    return tuple(f"{key}={value}" for key, value in _told(source).items())


def _told(source: Source) -> dict[str, Any]:
    return {**LANGUAGE, "arch": source.architecture}


def check_architecture(architecture: str) -> None:
    """NotHereError where NVRTC does not compile for an architecture: too new for it, or too old."""
    base = architecture.rstrip("af")
    known = architectures()
    if base in known:
        return
    older = int(base.removeprefix("sm_")) < int(known[0].removeprefix("sm_"))
    advice = "pip install 'mmaprobe[cuda12]' in an environment of its own" if older else NEWER
    raise NotHereError(f"{version()} does not compile for {architecture}, only for {known[0]} to {known[-1]}: {advice}")


def compile_source(source: Source) -> Kernel:
    """The cubin of a source for its exact architecture; RefusedError with the compiler's own words."""
    stamp, core = version(), cuda_core()
    check_architecture(source.architecture)
    try:
        made = core.Program(source.text, "c++", core.ProgramOptions(**_told(source))).compile("cubin")
    except Exception as error:  # cuda-core raises classes of several modules
        raise RefusedError(f"{source.instruction} on {source.architecture}: {refusal(str(error), stamp)}") from error
    return Kernel.of(source, bytes(made.code), stamp)
