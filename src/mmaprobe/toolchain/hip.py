"""Compile HIP for AMD with clang alone: no HIP header, no device library, no ROCm, no GPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import RefusedError, refusal
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source

OVERRIDE = "MMAPROBE_CLANG"
"""The environment's name for another clang++."""
NAMES = ("clang++-22", "/opt/rocm/llvm/bin/clang++", "clang++")
"""Where a clang is looked for, in this order."""
INSTALL = "apt-get install clang-22 lld-22 llvm-22"
SECONDS = 600
OPTIONS = (
    "-std=c++17", "-O2", "-x", "hip", "-nogpuinc", "-nogpulib", "-c", "--cuda-device-only", "--no-gpu-bundle-output",
)  # fmt: skip
"""What clang is told beside the architecture and the wave."""
USUAL, GENERIC = 5, 6
"""Versions of code objects: the older one, which older ROCm loads too, wherever a target has it."""

_LINKER = re.compile(r"lld.*(?:doesn't exist|not found|no such file)|unable to execute command.*lld", re.IGNORECASE)


@dataclass(frozen=True)
class Clang:
    """The clang++ at a path; empty: MMAPROBE_CLANG, or the first of ``NAMES`` that is installed."""

    path: str = ""
    OPTIONS: tuple[str, ...] = OPTIONS
    NEWER: str = INSTALL

    def version(self) -> str:
        """``clang 22.1.8``; NotHereError where none is installed."""
        return _version(self._path())

    def check_architecture(self, architecture: str) -> None:
        """NotHereError where this clang does not compile for an architecture."""
        known = _architectures(self._path())
        if architecture not in known:
            listed = ", ".join(name for name in known if name.startswith(("gfx9", "gfx1"))) or "no AMD GPU"
            raise NotHereError(f"{self.version()} does not compile for {architecture}, only for {listed}: {INSTALL}")

    def compile_source(self, source: Source) -> Kernel:
        """The code object of a source for its exact architecture; RefusedError with clang's first error."""
        stamp, path = self.version(), self._path()
        self.check_architecture(source.architecture)
        wave = "-mwavefrontsize64" if source.threads == 64 else "-mno-wavefrontsize64"
        with tempfile.TemporaryDirectory(prefix="mmaprobe-") as name:
            folder = Path(name)
            (folder / "kernel.hip").write_text(source.text, encoding="utf-8")
            target = f"--offload-arch={source.architecture}"
            version = f"-mcode-object-version={GENERIC if 'generic' in source.architecture else USUAL}"
            done = _run([path, *self.OPTIONS, target, version, wave, "-o", "kernel.co", "kernel.hip"], folder)
            if done.returncode and _LINKER.search(done.stderr):
                raise NotHereError(f"{stamp} has no linker: {INSTALL}")
            if done.returncode:
                said = refusal(done.stderr + done.stdout, stamp)
                raise RefusedError(f"{source.instruction} on {source.architecture}: {said}")
            return Kernel.of(source, (folder / "kernel.co").read_bytes(), stamp)

    def _path(self) -> str:
        given = self.path or os.environ.get(OVERRIDE, "")
        found = given or next(filter(None, map(shutil.which, NAMES)), "")
        if not found:
            raise NotHereError(f"no clang is installed: {INSTALL}, or set {OVERRIDE} to a clang++")
        return found


def _run(command: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHereError(f"{command[0]} did not run: {error}") from error


@cache
def _version(path: str) -> str:
    found = re.search(r"clang version (\d+\.\d+\.\d+)", _run([path, "--version"]).stdout)
    if not found:
        raise NotHereError(f"{path} is no clang: it does not say its version")
    return f"clang {found[1]}"


@cache
def _architectures(path: str) -> tuple[str, ...]:
    done = _run([path, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])
    return tuple(re.findall(r"^\s*(gfx[\w-]+)$", done.stderr + done.stdout, re.MULTILINE))
