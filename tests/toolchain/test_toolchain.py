"""Kernels compiled, kept, disassembled and packed without a GPU; and what is said where a tool is missing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mmaprobe.catalog.layouts import open_reason
from mmaprobe.catalog.lookup import instruction, instructions, lowering
from mmaprobe.cli import main
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.toolchain import compiler, kernel_cache
from mmaprobe.toolchain.build import build
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import nvdisasm, nvrtc
from mmaprobe.toolchain.nvidia.nvcc import Nvcc
from mmaprobe.toolchain.pack import open_pack
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
SASS = """
        /*0000*/                   LDC R1, c[0x0][0x37c] &wr=0x0 ;
        /*0110*/                   HMMA.16816.F32 R8, R8, R6, R16 ;
        /*0120*/              @!P0 HMMA.16816.F32 R8, R8, R6, R16 ;
        /*0130*/                   HMMA.884.F32.F32.STEP1 R8, R8, R6, R16 ;
        /*0140*/                   HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0150*/             @!UP0 UTCHMMA.2CTA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UP1 ;
"""


@pytest.fixture(autouse=True)
def _no_shared_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.CACHE, str(tmp_path / "cache"))


def test_matrix_opcodes_are_counted_as_primitives_spell_them() -> None:
    found = nvdisasm.matrix_opcodes(SASS)
    assert found == {"HGMMA.F32": 1, "HMMA.16816.F32": 2, "HMMA.884.F32.F32": 1, "UTCHMMA": 1}


def test_a_lowering_that_differs_is_named() -> None:
    way = lowering(instruction(F16), "sm_90a")
    assert nvdisasm.differences(way, {"HMMA.16816.F32": 1}) == []
    assert nvdisasm.differences(way, {"HMMA.16816.F32": 2}) == ["2 matrix instructions, the catalog says 1"]
    assert nvdisasm.differences(way, {"FFMA": 1}) == ["opcodes FFMA, the catalog says HMMA.16816.F32"]
    assert nvdisasm.differences(way, {}) == ["opcodes none, the catalog says HMMA.16816.F32"]


def test_the_hash_of_code_is_that_of_its_instructions() -> None:
    assert nvdisasm.code_hash(SASS) == nvdisasm.code_hash("// other names\n" + SASS)
    assert nvdisasm.code_hash(SASS) != nvdisasm.code_hash(SASS.replace("R16", "R18"))


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    nvrtc.cuda_core.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    try:
        with pytest.raises(NotHereError, match=r"pip install 'mmaprobe\[cuda13\]'"):
            nvrtc.cuda_core()
    finally:
        nvrtc.cuda_core.cache_clear()


def test_an_older_cuda_core_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.4 has its classes in ``cuda.core.experimental`` alone."""
    nvrtc.cuda_core.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.core", SimpleNamespace(__version__="0.4.2"))
    try:
        with pytest.raises(NotHereError, match=r"cuda-core 0.4.2 is older than 0.5: pip install -U 'cuda-core>=0.5'"):
            nvrtc.cuda_core()
    finally:
        nvrtc.cuda_core.cache_clear()


def test_another_nvdisasm_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvdisasm.nvdisasm.cache_clear()
    monkeypatch.setenv(nvdisasm.OVERRIDE, str(tmp_path / "none"))
    try:
        with pytest.raises(NotHereError, match="none did not run"):
            nvdisasm.disassemble(b"")
    finally:
        nvdisasm.nvdisasm.cache_clear()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("ptxas x, line 3; error : Feature 'y' requires PTX ISA .version 8.8 or later", "needs PTX 8.8, NVRTC 12.6"),
        ("a\nptxas x, line 298; error   : Feature '.z' requires .target sm_80 or higher\nb", "requires .target sm_80"),
        ("something else", "NVRTC 12.6 refuses it: something else"),
    ],
)
def test_a_refusal_is_one_line(said: str, expected: str) -> None:
    line = compiler.refusal(said, "NVRTC 12.6")
    assert expected in line
    assert "\n" not in line


@pytest.mark.needs("cuda")
def test_architectures_beyond_the_compiler_are_told_apart() -> None:
    with pytest.raises(NotHereError, match=r"does not compile for sm_999a.*pip install -U nvidia-cuda-nvrtc"):
        nvrtc.check_architecture("sm_999a")
    with pytest.raises(NotHereError, match=r"does not compile for sm_35.*mmaprobe\[cuda12\]"):
        nvrtc.check_architecture("sm_35")


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(
    ("name", "architecture"),
    [(F16, "sm_80"), (F16, "sm_90a"), (F16, "sm_120a"), (FP8, "sm_89"), (FP8, "sm_90a")],
)
def test_the_disassembly_holds_what_the_catalog_states(name: str, architecture: str) -> None:
    """FP8 is one QMMA on sm_89 and two HMMAs with conversions on sm_90a."""
    built = build((name, architecture))
    assert built.status == "compiled", built.reason
    assert sum(built.opcodes.values()) == lowering(instruction(name), architecture).count
    assert built.kernel is not None
    assert len(built.code) == 64


@pytest.mark.needs("cuda")
def test_a_compiler_that_makes_other_code_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of a neighbour under this name: the lowering that the catalog states is not there."""
    other = render(instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"), "sm_90a")
    monkeypatch.setattr(kernel_cache, "render", lambda *_: other)
    built = build((F16, "sm_90a"))
    assert built.status == "changed"
    assert built.reason == "opcodes HMMA.1688.F32, the catalog says HMMA.16816.F32"


@pytest.mark.needs("cuda")
def test_the_compiler_refuses_what_an_architecture_lacks() -> None:
    source = replace(render(instruction(F16), "sm_80"), architecture="sm_75")
    with pytest.raises(compiler.RefusedError, match=r"requires \.target sm_80"):
        nvrtc.compile_source(source)
    with pytest.raises(UsageError, match="sm_75"):
        build((F16, "sm_75"))


@pytest.mark.needs("cuda")
def test_an_older_compiler_is_told_from_what_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal says which compiler accepts the instruction, and how to get it."""

    def refuses(source: Source) -> Kernel:
        raise compiler.RefusedError(
            f"{source.instruction} on {source.architecture}: NVRTC 12.6 refuses it: no such modifier"
        )

    monkeypatch.setattr(nvrtc, "compile_source", refuses)
    built = build((F16, "sm_90a"))
    assert built.status == "refused"
    expected = "NVRTC 12.6 refuses it: no such modifier; ptxas 13.5.37 accepts it: pip install -U nvidia-cuda-nvrtc"
    assert built.reason == expected


@pytest.mark.needs("cuda")
def test_the_cache_is_used_and_never_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, runs = instruction(F16), []

    def compiled(source: object) -> Kernel:
        runs.append(source)
        return real(source)  # type: ignore[arg-type]

    real = nvrtc.compile_source
    monkeypatch.setattr(nvrtc, "compile_source", compiled)
    first = kernel_cache.kernel(wanted, "sm_80")
    assert kernel_cache.kernel(wanted, "sm_80") == first
    assert len(runs) == 1
    (kept,) = (tmp_path / "cache").rglob("*.cubin")
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert kernel_cache.kernel(wanted, "sm_80") == first
    assert len(runs) == 2
    kernel_cache.kernel(wanted, "sm_86")
    assert len(runs) == 3


@pytest.mark.needs("cuda")
def test_without_room_for_the_cache_kernels_are_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for where in ("", str(tmp_path / "file" / "below")):
        monkeypatch.setenv(kernel_cache.CACHE, where)
        assert kernel_cache.kernel(instruction(F16), "sm_80").binary


@pytest.mark.needs("cuda")
def test_compile_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pack"
    assert main(["compile", "--arch", "H200", "--instruction", "mma.m16n8k16.f32.f16.f16.f32", "--out", str(out)]) == 0
    assert f"1 compiled; pack in {out}" in capsys.readouterr().out
    assert list(open_pack(out).kernels) == [F16]
    assert main(["compile", "--arch", "sm_80", "--instruction", F16, "--out", str(out)]) == 2
    assert "choose another folder with --out" in capsys.readouterr().err
    assert main(["compile", "--arch", "x86-64"]) == 2
    assert "kernels are compiled for GPUs" in capsys.readouterr().err
    assert main(["compile", "--arch", "sm_90a", "--instruction", "mma.m16n8k16.f32.f16.f16.f33"]) == 2


@pytest.mark.needs("cuda")
def test_compile_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--arch", "sm_90a", "--instruction", F16, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == {"compiled": 1}
    assert told["kernels"][0]["opcodes"] == {"HMMA.16816.F32": 1}


def fake_nvcc(folder: Path, compile_step: str) -> Nvcc:
    """An nvcc that says a version and its targets, and compiles as told."""
    path = folder / "nvcc"
    path.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "  --version) echo 'Cuda compilation tools, release 13.0, V13.0.88';;\n"
        "  --list-gpu-code) printf 'sm_75\\nsm_90\\n';;\n"
        f"  *) {compile_step};;\n"
        "esac\n"
    )
    path.chmod(0o755)
    return Nvcc(str(path))


def test_nvcc_is_told_the_exact_architecture(tmp_path: Path) -> None:
    made = fake_nvcc(tmp_path, 'echo "$@" > kernel.cubin')
    kernel = made.compile_source(render(instruction(F16), "sm_90a"))
    assert kernel.toolchain == "nvcc 13.0.88"
    assert b"-cubin -arch=sm_90a -std=c++17 -o kernel.cubin kernel.cu" in kernel.binary


def test_nvcc_refuses_in_one_line(tmp_path: Path) -> None:
    made = fake_nvcc(tmp_path, "echo 'ptxas x, line 3; error : Feature y requires .target sm_99' >&2; exit 1")
    with pytest.raises(compiler.RefusedError, match=r"nvcc 13\.0\.88 refuses it: ptxas x, line 3"):
        made.compile_source(render(instruction(F16), "sm_90a"))
    with pytest.raises(NotHereError, match="does not compile for sm_80, only for sm_75, sm_90"):
        made.compile_source(render(instruction(F16), "sm_80"))


def test_what_is_no_nvcc_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotHereError, match="did not run"):
        Nvcc(str(tmp_path / "nothing")).version()
    with pytest.raises(NotHereError, match="is no nvcc"):
        Nvcc("true").version()


@pytest.mark.parametrize("architecture", ["sm_90a", "sm_103a", "gfx950", "gfx1250"])
def test_what_cannot_be_rendered_is_said_to_be_open(architecture: str) -> None:
    """A device's answer, which asks for layouts alone, is that of rendering the whole kernel."""
    for each in instructions(architecture)[::5]:
        reason = open_reason(each, architecture)
        if not reason:
            assert render(each, architecture).text
            continue
        with pytest.raises(UsageError) as refused:
            render(each, architecture)
        assert reason in str(refused.value)
