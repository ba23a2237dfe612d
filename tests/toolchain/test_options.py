"""What compilers are told: each option has one home, and the cache of kernels knows all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.toolchain import kernel_cache
from mmaprobe.toolchain.amd import clang, options
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.hiprtc import Hiprtc
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.nvcc import Nvcc
from mmaprobe.toolchain.source import Source

SOURCE = Source("one", "gfx942", "a text", threads=64)
GENERIC = replace(SOURCE, architecture="gfx9-4-generic")


@dataclass(frozen=True)
class Counted:
    """A compiler of which only the options are asked; it counts what it compiles."""

    inner: Any
    compiled: list[Source]
    NEWER: str = ""

    def version(self) -> str:
        return "a compiler 1"

    def options(self, source: Source) -> tuple[str, ...]:
        told: tuple[str, ...] = self.inner.options(source)
        return told

    def check_architecture(self, architecture: str) -> None:
        """All are fine."""

    def compile_source(self, source: Source) -> Kernel:
        self.compiled.append(source)
        return Kernel.of(source, b"a binary", self.version())


@pytest.mark.parametrize(
    ("inner", "source", "home", "name", "other"),
    [
        (Clang("x"), SOURCE, options, "LANGUAGE", ("-std=c++20",)),
        (Hiprtc("x"), SOURCE, options, "LANGUAGE", ("-std=c++20",)),
        (Clang("x"), SOURCE, options, "DEVICE", ("-c",)),
        (Clang("x"), SOURCE, options, "USUAL", 4),
        (Clang("x"), GENERIC, options, "GENERIC", 7),
        (Hiprtc("x"), GENERIC, options, "GENERIC", 7),
        (nvrtc, replace(SOURCE, architecture="sm_90a"), nvrtc, "LANGUAGE", {"std": "c++20"}),
    ],
)
def test_a_changed_option_gets_no_old_binary_back(
    inner: Compiler, source: Source, home: Any, name: str, other: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kernel_cache.CACHE, str(tmp_path))
    compiler = Counted(inner, [])
    for times in (1, 2):
        kernel_cache.kernel_of(source, compiler)
        kernel_cache.kernel_of(source, compiler)
        assert len(compiler.compiled) == len([*tmp_path.glob("*/*")]) == times
        monkeypatch.setattr(home, name, other)


@pytest.mark.parametrize("inner", [Clang("x"), Hiprtc("x")])
def test_waves_and_targets_are_told_apart(inner: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.CACHE, str(tmp_path))
    compiler = Counted(inner, [])
    for source in (SOURCE, replace(SOURCE, threads=32), GENERIC, SOURCE):
        kernel_cache.kernel_of(source, compiler)
    assert compiler.compiled == [SOURCE, replace(SOURCE, threads=32), GENERIC]


def test_what_each_compiler_is_told() -> None:
    language = ("-std=c++17", "-O2", "-ffp-contract=off")
    assert Hiprtc("x").options(SOURCE) == ("--offload-arch=gfx942", "-mwavefrontsize64", *language)
    assert "-mcode-object-version=6" in Hiprtc("x").options(GENERIC)
    told = Clang("x").options(replace(SOURCE, threads=32))
    assert told[:3] == language
    assert told[-3:] == ("--offload-arch=gfx942", "-mcode-object-version=5", "-mno-wavefrontsize64")
    assert Clang("x").options(GENERIC)[-2] == "-mcode-object-version=6"
    assert Nvcc("x").options(replace(SOURCE, architecture="sm_90a")) == ("-cubin", "-arch=sm_90a", "-std=c++17")
    assert nvrtc.options(replace(SOURCE, architecture="sm_90a"))[-1] == "arch=sm_90a"


@pytest.mark.parametrize("option", ["--offload-arch", "-mcode-object-version", "-mwavefrontsize64", "-std=", "-ffp-"])
def test_an_option_for_amd_has_one_home(option: str) -> None:
    files = Path(clang.__file__).parent.glob("*.py")
    assert [file.name for file in files if option in file.read_text("utf-8")] == ["options.py"]
