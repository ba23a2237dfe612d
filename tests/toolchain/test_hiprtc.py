"""ROCm's run-time compiler: a stand-in with clang behind its functions; and zig."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.report.tables.doctor import doctor_rows
from mmaprobe.toolchain.amd import clang as hip
from mmaprobe.toolchain.amd import code_object, hiprtc, rocm_libraries, zig
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.hiprtc import Hiprtc
from mmaprobe.toolchain.build import build
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.nvcc import Nvcc
from mmaprobe.toolchain.pack import open_pack
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.vendors import compiler_for, named_compiler
from mmaprobe.validation.fused import shipped_campaigns

HERE = Path(__file__).parents[1] / "hiprtc"
NAME = "v_mfma_f32_32x32x8f16"
BUILT = [
    ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=3}"),
    ("gfx1200", "v_swmmac_f32_16x16x32_f16{index_key=1,wave=64}"),
]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_CACHE", "")
    monkeypatch.delenv(hip.OVERRIDE, raising=False)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stand-in, built here."""
    made = tmp_path_factory.mktemp("hiprtc") / "libhiprtc.so"
    (clang,) = Clang()._command()
    defines = {"CLANG": clang, "HEADER": str(HERE / "header.hpp"), "UNKNOWN": "gfx1251"}
    given = [f'-D{name}="{value}"' for name, value in defines.items()]
    compiler = shutil.which("g++") or clang
    subprocess.run([compiler, "-shared", "-fPIC", "-O0", *given, "-o", made, HERE / "fake.cpp"], check=True)
    return str(made)


@pytest.mark.needs("clang")
@pytest.mark.parametrize(("home", "name"), BUILT)
def test_the_source_survives_the_header_of_hiprtc(library: str, home: str, name: str) -> None:
    """The same code as without it."""
    built = build((name, home), Hiprtc(library))
    assert (built.status, built.reason) == ("compiled", "")
    assert built.kernel is not None
    assert built.kernel.toolchain == "hiprtc 6.3.42131, clang 22.1.8"
    assert built.code == build((name, home), Clang()).code


@pytest.mark.needs("clang")
def test_a_campaign_survives_it_too(tmp_path: Path) -> None:
    """As far as its types and names go: clang alone reads the source behind the header."""
    (source,) = shipped_campaigns([NAME], "gfx90a")
    path = tmp_path / "campaign.hip"
    path.write_text(source.text, encoding="utf-8")
    (clang,) = Clang()._command()
    options = ["-fsyntax-only", "-std=c++17", "-x", "hip", "-nogpuinc", "-nogpulib", "--cuda-device-only"]
    given = ["--offload-arch=gfx90a", "-D__HIPCC_RTC__", "-include", HERE / "header.hpp"]
    done = subprocess.run([clang, *options, *given, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.needs("clang")
def test_what_it_refuses_is_one_line(library: str) -> None:
    """An error of its log; a target over which the process of the compiler ends."""
    source, rtc = render(instruction(NAME, "gfx90a"), "gfx90a"), Hiprtc(library)
    with pytest.raises(RefusedError, match=rf"{NAME} on gfx90a: hiprtc 6.3.42131, .* refuses it: .*'nope'"):
        rtc.compile_source(replace(source, text="int x = nope;\n" + source.text))
    with pytest.raises(NotHereError, match=r"does not compile for gfx1251: update ROCm, or set MMAPROBE_CLANG"):
        rtc.check_architecture("gfx1251")


def test_where_rocm_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the process has already, whatever its version; by the loader, in ROCm's folder, in AMD's wheel."""
    found = rocm_libraries.opened("libc")
    assert found is not None
    assert found._name == "libc.so.6"
    assert rocm_libraries.opened("libnobody") is None
    (tmp_path / rocm_libraries.WHEEL).mkdir()
    (tmp_path / rocm_libraries.WHEEL / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(rocm_libraries.ROOT, "/somewhere")
    names = rocm_libraries.names("libhiprtc")
    places = [
        "libhiprtc.so",
        "/somewhere/lib/libhiprtc.so.7",
        str(tmp_path / rocm_libraries.WHEEL / "lib" / "libhiprtc.so.10"),
    ]
    assert [each for each in names if each in places] == places


def test_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotHereError, match=r"hiprtc is not installed .*; install ROCm, or compile with clang"):
        Hiprtc(str(tmp_path / "libhiprtc.so")).version()


@pytest.mark.needs("clang")
def test_which_compiler_serves(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """hiprtc where it is and knows the architecture, MMAPROBE_CLANG before it, clang after it."""
    monkeypatch.setattr(hiprtc, "libraries", lambda: ("libhiprtc-of-no-version.so",))
    assert compiler_for("gfx942") == Clang()
    monkeypatch.setattr(hiprtc, "libraries", lambda: (library,))
    assert compiler_for("gfx942") == Hiprtc()
    assert compiler_for("gfx1251") == Clang()
    monkeypatch.setenv(hip.OVERRIDE, "clang++-22")
    assert compiler_for("gfx942") == Clang()


@pytest.mark.needs("clang")
def test_the_doctor_shows_it(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiprtc, "libraries", lambda: (library,))
    found = {row["subject"]: row for row in doctor_rows()}
    assert found["compiler for AMD"]["found"] == "hiprtc 6.3.42131, clang 22.1.8"
    assert found["disassembler for AMD"]["found"] == code_object.objdump()
    assert found["extra [rocm]"]["ok"] == (find_spec("ziglang") is not None)


def test_a_compiler_by_name() -> None:
    assert named_compiler("hiprtc", "gfx942") == Hiprtc()
    assert named_compiler("clang", "gfx942") == Clang()
    assert named_compiler("/opt/rocm/llvm/bin/clang++", "gfx942") == Clang("/opt/rocm/llvm/bin/clang++")
    assert named_compiler("/usr/local/cuda/bin/nvcc", "sm_90a") == Nvcc("/usr/local/cuda/bin/nvcc")
    assert named_compiler("nvrtc", "sm_90a") is nvrtc
    with pytest.raises(UsageError, match="--compiler gcc: it must be nvrtc, hiprtc, clang or ziglang"):
        named_compiler("gcc", "gfx942")
    with pytest.raises(UsageError, match=r"sm_90a: hiprtc compiles for gfx\* only; leave --compiler out"):
        named_compiler("hiprtc", "sm_90a")


@pytest.mark.needs("clang")
def test_zig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel's zig is clang and its linker under other names; here a program that stands for both."""
    monkeypatch.setattr(zig, "command", tuple)
    with pytest.raises(NotHereError, match=r"no clang is installed: apt-get .*, or pip install 'mmaprobe\[rocm\]', or"):
        Clang(zig.WHEEL).version()
    fake = tmp_path / "zig"
    fake.write_text(
        '#!/bin/sh\ntool=$1; shift\ncase $tool in\nclang) exec clang++-22 "$@";;\nld.lld) exec ld.lld-22 "$@";;\n'
        "*) exit 9;;\nesac\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(zig, "command", lambda: (str(fake), "clang"))
    built = build((NAME, "gfx90a"), Clang(zig.WHEEL))
    assert (built.status, built.reason) == ("compiled", "")
    assert built.kernel is not None
    assert built.kernel.toolchain == "zig clang 22.1.8"
    fake.write_text(fake.read_text().replace("exec ld.lld-22", "exit 7"))
    with pytest.raises(RefusedError, match=r"zig clang 22\.1\.8 refuses it"):
        Clang(zig.WHEEL).compile_source(render(instruction(NAME, "gfx90a"), "gfx90a"))


@pytest.mark.needs("clang")
def test_a_pack_without_a_disassembler_claims_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(code_object, "NAMES", ("objdump-of-no-version",))
    monkeypatch.delenv(code_object.OVERRIDE, raising=False)
    code_object.objdump.cache_clear()
    out = tmp_path / "pack"
    asked = ["compile", "--arch", "gfx90a", "--instruction", NAME, "--compiler", "clang", "--out", str(out)]
    assert main(asked) == 4
    said = capsys.readouterr().out
    assert "not held against the catalog: llvm-objdump is not installed: apt-get install" in said
    assert "gfx90a: 1 unread; pack in" in said
    held = open_pack(out).kernels[NAME]
    assert (held.code, held.opcodes) == ("", {})
