"""Compile HIP for AMD with clang alone: no HIP header, no device library, no ROCm, no GPU."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import options, zig
from mmaprobe.toolchain.compiler import RefusedError, refusal, run_tool
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source

OVERRIDE = "MMAPROBE_CLANG"
"""The environment's name for another clang++."""
NAMES = ("clang++-22", "/opt/rocm/llvm/bin/clang++", zig.WHEEL, "clang++")
"""Where a clang is looked for, in this order; ``ziglang`` is a wheel."""
INSTALL = "apt-get install clang-22 lld-22 llvm-22"
EXTRA = "pip install 'mmaprobe[rocm]'"
"""What gets a clang without root, that of the wheel ``ziglang``."""

_LINKER = re.compile(r"lld.*(?:doesn't exist|not found|no such file)|unable to execute command.*lld", re.IGNORECASE)


@dataclass(frozen=True)
class Clang:
    """The clang++ at a path; empty: MMAPROBE_CLANG, or the first of ``NAMES`` that is installed."""

    path: str = ""
    NEWER: str = INSTALL

    def version(self) -> str:
        """``clang 22.1.8``, ``zig clang 22.1.8``; NotHereError where none is installed."""
        return _version(self._command())

    def options(self, source: Source) -> tuple[str, ...]:
        """``toolchain.amd.options.of_clang``."""
        return options.of_clang(source)

    def check_architecture(self, architecture: str) -> None:
        """NotHereError where this clang does not compile for an architecture."""
        known = _architectures(self._command())
        if architecture not in known:
            listed = ", ".join(name for name in known if name.startswith(("gfx9", "gfx11", "gfx12"))) or "no AMD GPU"
            raise NotHereError(f"{self.version()} does not compile for {architecture}, only for {listed}: {INSTALL}")

    def compile_source(self, source: Source) -> Kernel:
        """The code object of a source for its exact architecture; RefusedError with clang's first error."""
        stamp, command = self.version(), self._command()
        self.check_architecture(source.architecture)
        with tempfile.TemporaryDirectory(prefix="mmaprobe-") as name:
            folder = Path(name)
            (folder / "kernel.hip").write_text(source.text, encoding="utf-8")
            linker = zig.linker(command[0], folder) if len(command) > 1 else ()
            done = run_tool([*command, *self.options(source), *linker, "-o", "kernel.co", "kernel.hip"], folder)
            if done.returncode and _LINKER.search(done.stderr):
                raise NotHereError(f"{stamp} has no linker: {INSTALL}")
            if done.returncode:
                said = refusal(done.stderr + done.stdout, stamp)
                raise RefusedError(f"{source.instruction} on {source.architecture}: {said}")
            return Kernel.of(source, (folder / "kernel.co").read_bytes(), stamp)

    def _command(self) -> tuple[str, ...]:
        """What to run: a clang++, or zig as clang."""
        given = self.path or os.environ.get(OVERRIDE, "")
        if given and given != zig.WHEEL:
            return (given,)
        found = next(filter(None, map(_found, (given,) if given else NAMES)), ())
        if not found:
            raise NotHereError(f"no clang is installed: {INSTALL}, or {EXTRA}, or set {OVERRIDE} to a clang++")
        return found


def _found(name: str) -> tuple[str, ...]:
    if name == zig.WHEEL:
        return zig.command()
    path = shutil.which(name)
    return (path,) if path else ()


@cache
def _version(command: tuple[str, ...]) -> str:
    found = re.search(r"clang version (\d+\.\d+\.\d+)", run_tool([*command, "--version"]).stdout)
    if not found:
        raise NotHereError(f"{' '.join(command)} is no clang: it does not say its version")
    return f"{'zig ' if len(command) > 1 else ''}clang {found[1]}"


@cache
def _architectures(command: tuple[str, ...]) -> tuple[str, ...]:
    done = run_tool([*command, "--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])
    return tuple(re.findall(r"^\s*(gfx[\w-]+)$", done.stderr + done.stdout, re.MULTILINE))
