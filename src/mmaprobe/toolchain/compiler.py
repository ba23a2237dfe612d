"""What compiles a kernel: of NVIDIA ``nvrtc`` (a module) and ``nvcc.Nvcc``, of AMD ``hiprtc.Hiprtc`` and
``clang.Clang``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Protocol

from mmaprobe.errors import MmaprobeError, NotHereError
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source

SECONDS = 600
"""Seconds that a compiler may take."""


class RefusedError(MmaprobeError):
    """The compiler refuses an instruction for an architecture."""

    exit_code = 3


class Compiler(Protocol):
    """A compiler of a vendor's C++."""

    @property
    def NEWER(self) -> str:
        """The command that gets a newer one."""

    def version(self) -> str:
        """``NVRTC 13.5``; NotHereError where it is not installed."""

    def options(self, source: Source) -> tuple[str, ...]:
        """All that it is told of a source, the target included: with its version, what decides on the binary."""

    def check_architecture(self, architecture: str) -> None:
        """NotHereError where it does not compile for an architecture."""

    def compile_source(self, source: Source) -> Kernel:
        """The binary of a source for its exact architecture; RefusedError with the compiler's own words."""


def refusal(said: str, stamp: str) -> str:
    """Why a compiler refused, in one line: the PTX version that it lacks, or its first error."""
    needed = re.search(r"PTX ISA (?:\.version|version) (\d+\.\d+)", said)
    if needed:
        return f"needs PTX {needed[1]}, {stamp} has less"
    first = next((line for line in said.splitlines() if re.search(r"error\s*:|: error", line)), said)
    return f"{stamp} refuses it: {first.strip()}"


def run_tool(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a program of a toolchain says; NotHereError where it does not run."""
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHereError(f"{command[0]} did not run: {error}") from error
