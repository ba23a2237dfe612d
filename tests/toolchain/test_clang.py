"""AMD kernels compiled by clang and read back: opcode, registers and modifiers against the catalog, and known traps."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, instruction
from mmaprobe.cli import main
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.toolchain.amd import clang, code_object
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.code_object import Matrix, differences, disassemble, matrices, number, target
from mmaprobe.toolchain.build import build, refused
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.pack import open_pack
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import compiler_for

SCALED = "v_mfma_scale_f32_16x16x128_f8f6f4"
BUILT = [
    ("gfx908", "v_mfma_f32_32x32x2bf16"),
    ("gfx90a", "v_mfma_f32_32x32x4bf16_1k{blgp=5}"),
    ("gfx90a", "v_mfma_f64_4x4x4f64"),
    ("gfx942", "v_mfma_f32_4x4x1_16b_f32{abid=1,blgp=3,cbsz=2}"),
    ("gfx942", "v_mfma_i32_4x4x4_16b_i8{abid=12,cbsz=4}"),
    ("gfx942", "v_mfma_f64_16x16x4_f64{neg=101}"),
    ("gfx942", "v_mfma_f32_16x16x8_xf32"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=3}"),
    ("gfx9-4-generic", "v_mfma_i32_16x16x32_i8"),
    ("gfx950", SCALED + "{blgp=4,cbsz=2,op_sel=100,op_sel_hi=010}"),
    ("gfx950", "v_mfma_f32_32x32x64_f8f6f4{blgp=2,cbsz=4}"),
    ("gfx1100", "v_wmma_f16_16x16x16_f16{op_sel=001,tied}"),
    ("gfx1100", "v_wmma_i32_16x16x16_iu8{clamp,neg_lo=110,wave=64}"),
    ("gfx1100", "v_wmma_f32_16x16x16_bf16{neg_hi=011,neg_lo=110}"),
    ("gfx1100", "v_wmma_f16_16x16x16_f16{neg_lo=100,op_sel=001,tied,wave=64}"),
    ("gfx1200", "v_wmma_f32_16x16x16_fp8_fp8{neg_lo=001}"),
    ("gfx1200", "v_swmmac_bf16_16x16x32_bf16{index_key=1,neg_hi=100}"),
    ("gfx1250", "v_wmma_bf16f32_16x16x32_bf16{neg_hi=100,neg_lo=001}"),
    ("gfx1200", "v_swmmac_f32_16x16x32_f16{index_key=1,wave=64}"),
    ("gfx1200", "v_swmmac_f32_16x16x32_f16{index_key=3,wave=64}"),
    ("gfx1201", "v_swmmac_f32_16x16x32_fp8_bf8{index_key=1}"),
    ("gfx1201", "v_swmmac_i32_16x16x64_iu4{clamp,index_key=1,neg_lo=010,wave=64}"),
    ("gfx1250", "v_wmma_bf16_16x16x32_bf16{matrix_a_reuse,neg_hi=011,neg_lo=011}"),
    ("gfx1250", "v_wmma_f32_16x16x4_f32{neg_lo=110}"),
    ("gfx950", "v_smfmac_f32_32x32x64_fp8_bf8{layout=chunks}"),
    ("gfx1250", "v_swmmac_bf16f32_16x16x64_bf16{layout=halves.packed,neg_hi=100}"),
    ("gfx1250", "v_swmmac_i32_16x16x128_iu8{clamp,layout=beside,neg_lo=010}"),
    ("gfx1250", "v_wmma_i32_16x16x64_iu8{clamp,matrix_b_reuse,neg_lo=100}"),
    ("gfx1251", "v_wmma_scale16_f32_32x16x128_f4{matrix_b_scale=MATRIX_SCALE_ROW1}"),
    ("gfx1250", "v_wmma_scale_f32_16x16x128_f8f6f4{matrix_a_fmt=MATRIX_FMT_FP4,matrix_a_scale=MATRIX_SCALE_ROW1,"
                "matrix_a_scale_fmt=MATRIX_SCALE_FMT_E4M3,matrix_b_fmt=MATRIX_FMT_BF6,"
                "matrix_b_scale_fmt=MATRIX_SCALE_FMT_E4M3}"),
]  # fmt: skip
"""Every family and generation, with every modifier: as arguments of builtins, and where none takes it in assembly."""


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_CACHE", "")


def found(source: Source, wave: int = 0) -> list[Matrix]:
    """The matrix instructions of a source compiled, read as waves of so many lanes."""
    return matrices(disassemble(Clang().compile_source(source).binary, wave or source.threads))


@pytest.mark.needs("clang")
@pytest.mark.parametrize(("home", "name"), BUILT)
def test_the_disassembly_is_what_the_id_says(home: str, name: str) -> None:
    """Opcode, registers of every operand, every modifier; the code object names its target."""
    built = build((name, home))
    assert (built.status, built.reason) == ("compiled", "")
    assert built.kernel is not None
    assert target(built.kernel.binary) == home
    assert number(built.kernel.binary, "wavefront_size") == built.kernel.threads
    assert number(built.kernel.binary, "private_segment_fixed_size") == 0
    assert number(built.kernel.binary, "kernarg_segment_size") == 9 * 8
    assert built.kernel.toolchain == compiler_for(home).version()
    assert len(built.code) == 64


@pytest.mark.needs("clang")
def test_constant_zero_scales_are_no_scales() -> None:
    """The same builtin with both scales constant 0 is the unscaled instruction; with one it stays the scaled one."""
    source = render(instruction(SCALED, "gfx950"), "gfx950")
    one = source.text.replace("bits<1>(of.scale_a)", "0")
    assert one != source.text
    assert [each.mnemonic for each in found(replace(source, text=one))] == [SCALED]
    both = found(replace(source, text=one.replace("bits<1>(of.scale_b)", "0")))
    assert differences(instruction(SCALED, "gfx950"), "gfx950", both)[0] == (
        f"opcode {SCALED.replace('_scale', '')}, the catalog says {SCALED}"
    )


@pytest.mark.needs("clang")
def test_one_spelling_names_two_instructions() -> None:
    """One block of two values a lane on CDNA2; CDNA3's assembler takes the name for two blocks of four values."""
    old, new = "v_mfma_f32_32x32x4bf16", "v_mfma_f32_32x32x4_2b_bf16"
    assert builtin(instruction(old, "gfx90a"), "gfx90a") == "__builtin_amdgcn_mfma_f32_32x32x4bf16"
    assert builtin(instruction(new, "gfx942"), "gfx942") == "__builtin_amdgcn_mfma_f32_32x32x4bf16_1k"
    assert old not in {form.first.opcode for form in forms("gfx942")}
    assert refused(old, "gfx90a", "gfx942")


@pytest.mark.needs("clang")
@pytest.mark.parametrize(
    ("home", "registers", "read"),
    [
        ("gfx90a", "a[0:15], v0, v1, a[0:15]", "v_mfma_f32_32x32x4bf16"),
        ("gfx942", "a[0:31], v[0:1], v[2:3], a[0:31]", "v_mfma_f32_32x32x4_2b_bf16"),
    ],
)
def test_the_assembler_reads_one_spelling_as_two(home: str, registers: str, read: str, tmp_path: Path) -> None:
    """Which is why a kernel names the builtin, and the disassembly is held against the target's own spelling."""
    (tmp_path / "one.s").write_text(f"v_mfma_f32_32x32x4bf16 {registers}\n")
    target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={home}"]
    out = tmp_path / "one.o"
    subprocess.run([*Clang()._command(), *target, "-c", tmp_path / "one.s", "-o", out], check=True)
    assert [each.mnemonic for each in matrices(disassemble(out.read_bytes(), 64))] == [read]


@pytest.mark.needs("clang")
@pytest.mark.parametrize(
    ("name", "home", "elsewhere"),
    [
        ("v_mfma_f32_16x16x8_xf32", "gfx942", "gfx950"),
        ("v_mfma_f64_16x16x4f64", "gfx90a", "gfx908"),
        ("v_wmma_f32_16x16x16_f16", "gfx1100", "gfx1200"),
    ],
)
def test_the_front_end_lets_other_targets_pass(name: str, home: str, elsewhere: str, tmp_path: Path) -> None:
    """It finds nothing wrong; the back end, which must select an instruction, does."""
    source = replace(render(instruction(name, home), home), architecture=elsewhere)
    (tmp_path / "kernel.hip").write_text(source.text)
    told = [option for option in Clang().options(source) if option != "-c"]
    subprocess.run([*Clang()._command(), *told, "-fsyntax-only", tmp_path / "kernel.hip"], check=True)
    with pytest.raises(RefusedError, match="Cannot select"):
        Clang().compile_source(source)


def builtin(made: Instruction, home: str) -> str:
    """The builtin that a rendered source calls."""
    calls = re.findall(r"__builtin_amdgcn_\w*(?:mfma|mfmac|wmma|wmmac)\w*", render(made, home).text)
    assert len(calls) == 1
    return str(calls[0])


@pytest.mark.needs("clang")
def test_waves_of_64_lanes_must_be_told() -> None:
    """The same bytes read as a wave of 32 lanes have other registers."""
    made = instruction("v_wmma_f32_16x16x16_f16{wave=64}", "gfx1200")
    source = render(made, "gfx1200")
    assert differences(made, "gfx1200", found(source)) == []
    assert differences(made, "gfx1200", found(source, 32))


@pytest.mark.needs("clang")
@pytest.mark.parametrize(
    ("name", "home", "elsewhere"),
    [
        ("v_mfma_f32_16x16x8_xf32", "gfx942", "gfx950"),
        ("v_mfma_f64_16x16x4f64", "gfx90a", "gfx908"),
        ("v_wmma_f32_16x16x16_f16", "gfx1100", "gfx1200"),
        ("v_mfma_i32_32x32x8i8", "gfx90a", "gfx942"),
        ("v_mfma_f32_16x16x32_fp8_fp8", "gfx942", "gfx9-4-generic"),
        ("v_wmma_f32_16x16x16_f16", "gfx1200", "gfx1250"),
    ],
)
def test_the_wrong_target_refuses(name: str, home: str, elsewhere: str) -> None:
    """The front end lets most of these pass."""
    assert refused(name, home, elsewhere)


@pytest.mark.needs("clang")
def test_other_registers_than_the_builtin_takes_do_not_compile() -> None:
    source = render(instruction("v_mfma_f32_32x32x8_f16", "gfx942"), "gfx942")
    changed = replace(source, text=source.text.replace("bits<2>(of.b)", "bits<4>(of.b)"))
    assert changed != source
    with pytest.raises(RefusedError, match="the builtin takes other registers than the catalog says"):
        Clang().compile_source(changed)


@pytest.mark.needs("clang")
def test_code_that_differs_is_noticed() -> None:
    """Another opcode, another modifier, two instructions for one."""
    made = instruction("v_smfmac_f32_16x16x32_f16{abid=3}", "gfx942")
    plain = found(render(instruction("v_smfmac_f32_16x16x32_f16", "gfx942"), "gfx942"))
    assert differences(made, "gfx942", plain) == ["modifiers none, the catalog says abid=3"]
    assert differences(made, "gfx942", plain * 2) == ["2 matrix instructions, the catalog says 1"]
    other = instruction("v_smfmac_f32_16x16x32_bf16", "gfx942")
    assert differences(other, "gfx942", plain)[0].startswith("opcode v_smfmac_f32_16x16x32_f16,")


def test_fp8_of_one_name_differs_between_generations() -> None:
    """FNUZ on gfx942, OCP from gfx950 on: one opcode, one builtin, other formats."""
    name = "v_mfma_f32_16x16x32_fp8_bf8"
    old, new = instruction(name, "gfx942"), instruction(name, "gfx950")
    assert (old.a, old.b) == ("e4m3fnuz", "e5m2fnuz")
    assert (new.a, new.b) == ("e4m3", "e5m2")
    assert builtin(old, "gfx942") == builtin(new, "gfx950")


@pytest.mark.parametrize(
    ("home", "name", "said"),
    [
        ("gfx950", "v_smfmac_f32_16x16x64_f16", "the layout of b is open: "),
        ("gfx1250", "v_swmmac_i32_16x16x128_iu8", "the layout of metadata is open: "),
    ],
)
def test_what_cannot_be_rendered_says_why(home: str, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        render(instruction(name, home), home)


@pytest.mark.parametrize("name", ["v_mfma_f32_4x4x1_16b_f32{cbsz=5}", "v_mfma_f32_4x4x1_16b_f32{abid=2,cbsz=1}"])
def test_modifiers_that_a_form_lacks(name: str) -> None:
    """clang takes them all."""
    with pytest.raises(UsageError, match="is not legal here; it is one of"):
        instruction(name, "gfx942")


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clang, "NAMES", ("clang++-of-no-version",))
    monkeypatch.delenv(clang.OVERRIDE, raising=False)
    with pytest.raises(NotHereError, match="no clang is installed: apt-get install clang-22 lld-22 llvm-22"):
        Clang().version()
    monkeypatch.setenv(clang.OVERRIDE, str(tmp_path / "none"))
    with pytest.raises(NotHereError, match="none did not run"):
        Clang().version()
    monkeypatch.setattr(code_object, "NAMES", ("objdump-of-no-version",))
    monkeypatch.delenv(code_object.OVERRIDE, raising=False)
    code_object.objdump.cache_clear()
    with pytest.raises(NotHereError, match="llvm-objdump is not installed: apt-get install"):
        code_object.objdump()


def test_a_compiler_that_is_too_old(tmp_path: Path) -> None:
    """Its architectures are listed; one without a linker, and one that refuses, say so."""
    fake = tmp_path / "clang++"
    fake.write_text(
        "#!/bin/sh\ncase $* in\n*--version*) echo 'clang version 14.0.6';;\n"
        "*print-supported*) printf '\\tgfx90a\\n\\tgfx908\\n';;\n"
        '*gfx908*) echo "error: unable to execute command: Executable \\"lld\\" doesn\'t exist!" >&2; exit 1;;\n'
        "*) echo 'kernel.hip:1:1: error: no such builtin' >&2; exit 1;;\nesac\n"
    )
    fake.chmod(0o755)
    old = Clang(str(fake))
    with pytest.raises(NotHereError, match=r"clang 14.0.6 does not compile for gfx942, only for gfx90a, gfx908: apt"):
        old.check_architecture("gfx942")
    source = render(instruction("v_mfma_f32_32x32x8f16", "gfx90a"), "gfx90a")
    with pytest.raises(RefusedError, match=r"clang 14.0.6 refuses it: .*no such builtin"):
        old.compile_source(source)
    with pytest.raises(NotHereError, match=r"clang 14.0.6 has no linker: apt-get install"):
        old.compile_source(replace(source, architecture="gfx908"))


@pytest.mark.parametrize("code", [b"", b"\x7fELF" + bytes(60), b"MZ amdgcn-amd-amdhsa--gfx942"])
def test_what_is_no_code_object(code: bytes) -> None:
    with pytest.raises(DeviceError, match="are no AMD code object"):
        target(code)
    with pytest.raises(DeviceError, match="does not tell its wavefront_size; compile the kernel again"):
        number(code, "wavefront_size")


@pytest.mark.needs("clang")
def test_numbers_of_any_size() -> None:
    """A kernel of more than 127 registers has its count behind a byte that says so."""
    made = build(("v_wmma_scale_f32_16x16x128_f8f6f4", "gfx1250")).kernel
    assert made is not None
    assert 128 <= number(made.binary, "vgpr_count") <= 256


@pytest.mark.needs("clang")
def test_a_wave_of_another_size_is_noticed() -> None:
    """The code runs, and every lane above 31 is missing."""
    name = "v_wmma_i32_16x16x16_iu4{wave=64}"
    source = replace(render(instruction(name, "gfx1200"), "gfx1200"), threads=32)
    with pytest.raises(RefusedError, match="w64"):
        Clang().compile_source(source)


@pytest.mark.needs("clang")
def test_compile_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pack for AMD, made without a GPU; nvcc does not serve."""
    out = tmp_path / "pack"
    assert main(["compile", "--arch", "gfx942", "--instruction", "v_mfma_f64*", "--jobs", "1", "--out", str(out)]) == 0
    assert f"gfx942: 2 compiled; pack in {out}" in capsys.readouterr().out
    assert open_pack(out).kernel("v_mfma_f64_16x16x4_f64").threads == 64
    assert {path.suffix for path in out.iterdir()} == {".co", ".json"}
    assert main(["compile", "--arch", "gfx942", "--compiler", "nvcc"]) == 2
    assert "leave --compiler out" in capsys.readouterr().err
