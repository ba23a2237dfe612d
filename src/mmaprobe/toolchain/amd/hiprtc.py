"""Compile HIP with ROCm's own run-time compiler (``libhiprtc``; up to ROCm 5 also in ``libamdhip64``).

Each compile runs in a child process (``hiprtc_child``): the LLVM inside aborts over a target or builtin that it does
not know, and where ROCm's code object manager is missing (ROCm 5.2.3).  hiprtc puts a header of its own before every
source (ROCm/clr, ``hipamd/src/hiprtc``): HIP's types and macros, which ours neither needs nor defines.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import hiprtc_child, options, rocm_libraries
from mmaprobe.toolchain.compiler import SECONDS, RefusedError, refusal
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import ENTRY, Source

PLAIN = "gfx90a"
"""An architecture that every hiprtc from ROCm 5 on compiles for."""
PROBE = f"""\
#define TEXT(name) #name
#define SAID(name) TEXT(name)
extern "C" __attribute__((device, used)) const char mmaprobe_said[] =
    "mmaprobe:" SAID(HIP_VERSION_MAJOR) "." SAID(HIP_VERSION_MINOR) "." SAID(HIP_VERSION_PATCH) ":" __VERSION__;
extern "C" __attribute__((global)) void {ENTRY}() {{}}
"""
"""A kernel that does nothing and holds the versions of its compiler: hiprtcVersion answers 9.0 in every ROCm."""

_SAID = re.compile(rb"mmaprobe:([\w.]+):[^\0]*?(\d+\.\d+\.\d+)")


def libraries() -> tuple[str, ...]:
    """Where hiprtc may be, in this order."""
    return rocm_libraries.names("libhiprtc") + rocm_libraries.names("libamdhip64")


@dataclass(frozen=True)
class Hiprtc:
    """The hiprtc in a library; empty: the first that is installed."""

    library: str = ""
    NEWER: str = "update ROCm, or set MMAPROBE_CLANG to a newer clang++"

    def version(self) -> str:
        """``hiprtc 6.3.42131, clang 18.0.0``; NotHereError where it is not installed or does not work."""
        stamp, missing = _version(self._libraries())
        if missing:
            raise NotHereError(missing)
        return stamp

    def options(self, source: Source) -> tuple[str, ...]:
        """``toolchain.amd.options.of_hiprtc``."""
        return options.of_hiprtc(source)

    def check_architecture(self, architecture: str) -> None:
        """NotHereError where it does not compile for an architecture."""
        stamp = self.version()
        if not _serves(self._libraries(), architecture):
            raise NotHereError(f"{stamp} does not compile for {architecture}: {self.NEWER}")

    def compile_source(self, source: Source) -> Kernel:
        """The code object of a source for its exact architecture; RefusedError with the first error of its log."""
        stamp = self.version()
        self.check_architecture(source.architecture)
        code, said = _compiled(self._libraries(), source.text, self.options(source))
        if not code:
            raise RefusedError(f"{source.instruction} on {source.architecture}: {refusal(said, stamp)}")
        return Kernel.of(source, code, stamp)

    def _libraries(self) -> tuple[str, ...]:
        return (self.library,) if self.library else libraries()


@cache
def _version(where: tuple[str, ...]) -> tuple[str, str]:
    """The versions, or, where it does not work, why."""
    try:
        code, said = _compiled(where, PROBE, (*options.target(PLAIN), *options.LANGUAGE))
    except NotHereError as error:
        return "", str(error)
    if not code:
        return "", f"hiprtc does not work: {said}; a part of ROCm may be missing: apt-get install libamd-comgr2"
    found = _SAID.search(code)
    if not found:
        return "", "hiprtc does not say its version"
    version, clang = found[1].decode(), found[2].decode()
    return (f"hiprtc {version}, clang {clang}" if version[0].isdecimal() else f"hiprtc, clang {clang}"), ""


@cache
def _serves(where: tuple[str, ...], architecture: str) -> bool:
    return bool(_compiled(where, PROBE, (*options.target(architecture), *options.LANGUAGE))[0])


def _compiled(where: tuple[str, ...], text: str, told: tuple[str, ...]) -> tuple[bytes, str]:
    """The code object, empty where there is none, and what hiprtc said; NotHereError where it is not installed."""
    with tempfile.TemporaryDirectory(prefix="mmaprobe-") as name:
        folder = Path(name)
        (folder / "kernel.hip").write_text(text, encoding="utf-8")
        command = [sys.executable, "-I", "-S", hiprtc_child.__file__, name, ":".join(where), *told]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotHereError(f"hiprtc did not run: {error}") from error
        if done.returncode == hiprtc_child.ABSENT:
            raise NotHereError("hiprtc is not installed (libhiprtc.so); install ROCm, or compile with clang")
        if done.returncode == 0:
            return (folder / "kernel.co").read_bytes(), ""
        if done.returncode == hiprtc_child.REFUSED:
            return b"", (folder / "log.txt").read_text("utf-8", "replace")
        return b"", _end(done)


def _end(done: subprocess.CompletedProcess[str]) -> str:
    """How a child ended that hiprtc brought down: what LLVM said last, and the signal or status."""
    said = next((line.strip() for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")
    code = done.returncode
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    return f"its process ended by {how}: {said}"
