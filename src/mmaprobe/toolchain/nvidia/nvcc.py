"""Compile CUDA C++ with nvcc: that of a toolkit, or of the wheel nvidia-cuda-nvcc."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import RefusedError, refusal, run_tool
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source


@dataclass(frozen=True)
class Nvcc:
    """The nvcc at a path."""

    path: str
    NEWER: str = "install a newer toolkit"

    def version(self) -> str:
        """``nvcc 13.0.88``; NotHereError where it does not run."""
        return _version(self.path)

    def options(self, source: Source) -> tuple[str, ...]:
        """All that it is told of a source."""
        return ("-cubin", f"-arch={source.architecture}", "-std=c++17")

    def check_architecture(self, architecture: str) -> None:
        """NotHereError where it does not compile for an architecture."""
        known = _architectures(self.path)
        if architecture.rstrip("af") not in known:
            raise NotHereError(f"{self.version()} does not compile for {architecture}, only for {', '.join(known)}")

    def compile_source(self, source: Source) -> Kernel:
        """The cubin of a source for its exact architecture; RefusedError with nvcc's first error."""
        stamp = self.version()
        self.check_architecture(source.architecture)
        with tempfile.TemporaryDirectory(prefix="mmaprobe-") as name:
            folder = Path(name)
            (folder / "kernel.cu").write_text(source.text, encoding="utf-8")
            done = run_tool([self.path, *self.options(source), "-o", "kernel.cubin", "kernel.cu"], folder)
            if done.returncode:
                said = refusal(done.stderr + done.stdout, stamp)
                raise RefusedError(f"{source.instruction} on {source.architecture}: {said}")
            return Kernel.of(source, (folder / "kernel.cubin").read_bytes(), stamp)


@cache
def _version(path: str) -> str:
    said = run_tool([path, "--version"]).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    if not found:
        raise NotHereError(f"{path} is no nvcc: it does not say its version")
    return f"nvcc {found[1]}"


@cache
def _architectures(path: str) -> tuple[str, ...]:
    said = run_tool([path, "--list-gpu-code"]).stdout
    return tuple(sorted(set(re.findall(r"sm_\d+", said)), key=lambda name: int(name.removeprefix("sm_"))))
