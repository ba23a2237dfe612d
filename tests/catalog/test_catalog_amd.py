"""The AMD catalog against what the compiler made of every builtin, both ways; modifiers at their legal values.

``golden/amd_instructions.csv.xz`` holds one row a builtin: shape, types, and for
each target the mnemonic in the disassembly, empty where the compiler refuses.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog import layouts
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lookup import architectures, instruction, instructions, lowering, match
from mmaprobe.catalog.modifiers import legal
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.amd.builtins import call
from mmaprobe.toolchain.build import build_all

GOLDEN = Path(__file__).parents[1] / "golden" / "amd_instructions.csv.xz"
ROWS = list(csv.DictReader(io.StringIO(lzma.decompress(GOLDEN.read_bytes()).decode("utf-8"))))
ARCHITECTURES = [name for name in ROWS[0] if name.startswith("gfx")]
WITHOUT_MATRICES = ["gfx906", "gfx1011", "gfx1012", *(f"gfx103{n}" for n in range(7)), "gfx10-3-generic"]
"""Targets with V_DOT alone, of which the golden file says nothing."""
COUNTS = {"gfx908": 20, "gfx90a": 27, "gfx942": 46, "gfx950": 68, "gfx9-4-generic": 28, "gfx1250": 43, "gfx1251": 43}
FNUZ = {"fp8": "e4m3fnuz", "bf8": "e5m2fnuz"}
NAMES = {
    "fp8": "e4m3", "bf8": "e5m2", "fp4": "e2m1", "xf32": "tf32", "i8": "s8", "i32": "s32", "iu8": "u8", "iu4": "u4",
    "fp8|bf8|fp6|bf6|fp4": "e4m3",
}  # fmt: skip
"""Types of the golden file as formats, where a modifier chooses those at its default; gfx942 has FNUZ ones."""


def identifier(row: dict[str, str], arch: str) -> str:
    """The id of a row: the target's mnemonic, wave 64 where a target has both, C and D tied."""
    waves = not arch.startswith("gfx9")
    tied = [("tied", "")] if "_tied_" in row["builtin"] else []
    return spell(row[arch], (*tied, *([("wave", "64")] if waves and row["wave"] == "64" else [])))


def expected(row: dict[str, str], arch: str) -> tuple[object, ...]:
    """What a row says of an instruction."""
    names = NAMES | (FNUZ if arch == "gfx942" else {})
    types = tuple(names.get(row[f"{x}_type"], row[f"{x}_type"]) for x in "abcd")
    shape = tuple(int(row[name]) for name in ("m", "n", "k", "blocks"))
    return (identifier(row, arch), row["family"], *shape, *types, row["sparse"] == "1", row["scaled"] == "1")


def said(made: Instruction) -> tuple[object, ...]:
    """The same of the catalog."""
    family = made.family.partition(".")[0]
    types = (made.a, made.b, made.c, made.d)
    return (made.id, family, made.m, made.n, made.k, made.blocks, *types, made.chunk == 4, made.scale is not None)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_rows_are_what_the_compiler_made(arch: str) -> None:
    found = [made for made in instructions(arch) if not made.opcode.startswith("v_dot")]
    assert Counter(map(said, found)) == Counter(expected(row, arch) for row in ROWS if row[arch])
    assert len(found) == COUNTS.get(arch, 16 if arch.startswith("gfx11") else 44)


RDNA_DOTS = (
    "v_dot2_f32_f16", "v_dot2_f32_bf16", "v_dot2_f16_f16", "v_dot2_bf16_bf16", "v_dot4_i32_iu8", "v_dot8_i32_iu4",
    "v_dot4_u32_u8", "v_dot8_u32_u4",
)  # fmt: skip
FP8_DOTS = tuple(f"v_dot4_f32_{x}_{y}" for x in ("fp8", "bf8") for y in ("fp8", "bf8"))
CDNA_DOTS = (
    "v_dot2_i32_i16", "v_dot2_u32_u16", "v_dot4_i32_i8", "v_dot4_u32_u8", "v_dot8_i32_i4", "v_dot8_u32_u4",
    "v_dot2c_i32_i16", "v_dot4c_i32_i8", "v_dot8c_i32_i4", "v_dot2_f32_f16", "v_dot2c_f32_f16",
)  # fmt: skip


def dots(arch: str) -> list[str]:
    """The V_DOT that an architecture has: of FP8 on RDNA4 alone, of bf16 on CDNA4, on RDNA in both waves.

    Vega 20 has those that name C, RDNA2 two of the others as well; the assembler of LLVM 22 takes no more.
    """
    if arch == "gfx906":
        return [*CDNA_DOTS[:6], "v_dot2_f32_f16"]
    if arch.startswith("gfx10"):
        found = [*CDNA_DOTS[:6], "v_dot4c_i32_i8", "v_dot2_f32_f16", "v_dot2c_f32_f16"]
        return [*found, *(f"{name}{{wave=64}}" for name in found)]
    if arch.startswith("gfx9"):
        return [*CDNA_DOTS, *(f"v_dot2{way}_f32_bf16" for way in ("", "c") if arch == "gfx950")]
    if arch.startswith("gfx125"):
        return ["v_dot4_i32_iu8", "v_dot8_i32_iu4", "v_dot4_u32_u8", "v_dot8_u32_u4"]
    names = RDNA_DOTS + FP8_DOTS * arch.startswith("gfx12")
    return [*names, *(f"{name}{{wave=64}}" for name in names)]


@pytest.mark.parametrize("arch", [*ARCHITECTURES, *WITHOUT_MATRICES])
def test_dots_of_the_vector_units(arch: str) -> None:
    """A block a lane, each operand in one register."""
    found = [made for made in instructions(arch) if made.opcode.startswith("v_dot") or arch in WITHOUT_MATRICES]
    assert sorted(made.id for made in found) == sorted(dots(arch))
    for made in found:
        lanes = 64 if arch.startswith("gfx9") else int(made.modifier.get("wave", "32"))
        assert (made.m, made.n, made.blocks) == (1, 1, lanes)
        assert {layouts.layout(made, arch, name).registers for name in layouts.operands(made)} == {1}


@pytest.mark.parametrize(
    ("arch", "text", "a", "b", "c", "d"),
    [
        ("gfx90a", "v_dot4_i32_i8", -128, -128, 2**31 - 1, 4 * 2**14 - 2**31 - 1),
        ("gfx90a", "v_dot4_i32_i8{clamp}", -128, -128, 2**31 - 1, 2**31 - 1),
        ("gfx942", "v_dot4c_i32_i8", -128, 127, 5, 5 - 4 * 128 * 127),
        ("gfx908", "v_dot2_i32_i16{clamp}", -(2**15), 2**15 - 1, -(2**31), -(2**31)),
        ("gfx950", "v_dot2_u32_u16", 2**16 - 1, 2**16 - 1, 7, (2 * (2**16 - 1) ** 2 + 7) % 2**32),
        ("gfx950", "v_dot2_u32_u16{clamp}", 2**16 - 1, 2**16 - 1, 7, 2**32 - 1),
        ("gfx1100", "v_dot4_u32_u8{clamp,wave=64}", 255, 255, 2**31, 2**31 + 4 * 255**2),
        ("gfx1250", "v_dot8_u32_u4{clamp}", 15, 15, 2**32 - 1, 2**32 - 1),
        ("gfx1250", "v_dot8_i32_iu4{neg_lo=100}", -8, 15, 0, -8 * 8 * 15),
        ("gfx1201", "v_dot4_i32_iu8{neg_lo=010}", 255, -128, 1, 1 - 4 * 255 * 128),
        ("gfx906", "v_dot8_i32_i4", -8, 7, 1, 1 - 8 * 56),
        ("gfx906", "v_dot2_u32_u16{clamp}", 2**16 - 1, 2**16 - 1, 7, 2**32 - 1),
        ("gfx1012", "v_dot4c_i32_i8{wave=64}", -128, -128, 2**31 - 1, 4 * 2**14 - 2**31 - 1),
        ("gfx1034", "v_dot2_i32_i16{clamp}", -(2**15), -(2**15), 0, 2**31 - 1),
    ],
)
def test_dots_of_integers(arch: str, text: str, a: int, b: int, c: int, d: int) -> None:
    """All lanes alike: exact sums of 32 bits, signed or not, that wrap or are limited at the end."""
    made = instruction(text, arch)
    of = [formats.get(name) for name in (made.a, made.b)]
    held = [np.full((1, made.k), x % 2**fmt.bits, fmt.dtype) for x, fmt in zip((a, b), of, strict=True)]
    batch = Batch(*held, np.array([c % 2**32], np.uint32))
    assert evaluate(datapath_for(arch, made), batch).tolist() == [d % 2**32]


COMPILED_DOTS = [
    *((name, "gfx1100") for name in RDNA_DOTS),
    *((f"{name}{{wave=64}}", "gfx1201") for name in (*RDNA_DOTS, *FP8_DOTS)),
    *((name, arch) for arch in ("gfx906", "gfx908", "gfx90a", "gfx950", "gfx1011", "gfx1030") for name in dots(arch)),
    *((f"{name}{{clamp}}", "gfx942") for name in CDNA_DOTS[:6]),
    *((name, "gfx1250") for name in dots("gfx1250")),
    ("v_dot4_i32_iu8{clamp,neg_lo=110}", "gfx1150"),
    ("v_dot8_i32_iu4{neg_lo=010,wave=64}", "gfx1200"),
    ("v_dot4_u32_u8{clamp}", "gfx1200"),
    ("v_dot2_f32_bf16{neg_hi=101,neg_lo=011}", "gfx1150"),
    ("v_dot2_f32_f16{neg_hi=010,neg_lo=101,wave=64}", "gfx1201"),
    ("v_dot4_f32_fp8_bf8{neg_hi=001,neg_lo=001}", "gfx1200"),
    ("v_dot2_f32_bf16{clamp}", "gfx1100"),
    ("v_dot2_f32_bf16{clamp,neg_lo=001,wave=64}", "gfx1200"),
    ("v_dot2_f32_f16{clamp,neg_hi=100}", "gfx1030"),
    ("v_dot2_f32_bf16{clamp}", "gfx950"),
    ("v_dot2_f32_f16{neg_hi=110,neg_lo=010}", "gfx906"),
    ("v_dot8_u32_u4{clamp,wave=64}", "gfx10-3-generic"),
]


@pytest.mark.needs("clang")
def test_a_dot_is_what_the_compiler_made() -> None:
    """That opcode, and not the one that clang makes of the builtin: V_DOT2ACC on gfx11, V_DOT4C and others before."""
    for built, (name, _) in zip(build_all(COMPILED_DOTS), COMPILED_DOTS, strict=True):
        assert (built.status, built.reason, built.opcodes) == ("compiled", "", {name.partition("{")[0]: 1}), name


def test_every_target_and_every_row_is_there() -> None:
    assert {*ARCHITECTURES, *WITHOUT_MATRICES} == {name for name in architectures() if name.startswith("gfx")}
    assert len(ROWS) == 180


REGISTERS = {
    **{name: f"{name}_regs" for name in "abcd"}, "metadata": "index_regs",
    "scale_a": "scale_regs", "scale_b": "scale_regs",
}  # fmt: skip


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_builtins_and_registers_are_those_of_the_golden_file(arch: str) -> None:
    """What a row's kernel calls, and how many registers each operand fills; of an open layout by every claim.

    The builtins of 8-bit SWMMAC on gfx1250 take half of their index: those kernels call none.
    """
    for row in ROWS:
        for made in _by_claims(identifier(row, arch), arch) if row[arch] else ():
            found = {name: layouts.layout(made, arch, name) for name in layouts.operands(made)}
            assert {name: str(one.registers) for name, one in found.items()} == {
                name: row[REGISTERS[name]] for name in found
            }, made.id
            called = call(made, arch, found).partition("(")[0]
            assert called == ("" if row["index_regs"] == "2" else builtin_of(row)), made.id


def builtin_of(row: dict[str, str]) -> str:
    """The unscaled f8f6f4 of gfx950 is the scaled builtin with constant scales 0."""
    return re.sub(r" .*", "", row["builtin"])


def _by_claims(name: str, arch: str) -> tuple[Instruction, ...]:
    made = instruction(name, arch)
    return layouts.claims(made, arch) or (made,)


def test_the_table_of_coverage_is_what_the_script_writes() -> None:
    made = runpy.run_path(str(GOLDEN.parents[2] / "docs" / "amd.py"))
    before = made["PAGE"].read_text(encoding="utf-8")
    assert made["page"](before) == before, "run: python docs/amd.py"


def test_scale_blocks() -> None:
    for row in ROWS:
        for arch in ARCHITECTURES:
            if row[arch] and row["scaled"] == "1":
                size = 16 if row["family"] == "wmma_scale16" else 32
                assert instruction(row[arch], arch).scale_size == size
                assert int(row["scale_regs"]) == 32 // size


def test_one_mnemonic_on_two_generations() -> None:
    """8-bit floats are FNUZ on gfx942 and OCP on gfx950; an id alone does not say which."""
    name = "v_mfma_f32_16x16x32_fp8_bf8"
    assert (instruction(name, "gfx942").a, instruction(name, "gfx942").b) == ("e4m3fnuz", "e5m2fnuz")
    assert (instruction(name, "gfx950").a, instruction(name, "gfx950").b) == ("e4m3", "e5m2")
    assert match("gfx950", name) == (instruction(name, "gfx950"),)
    with pytest.raises(
        UsageError, match="takes e4m3fnuz and e5m2fnuz on gfx942; e4m3 and e5m2 on gfx950: name the architecture"
    ):
        instruction(name)
    with pytest.raises(UsageError, match="takes e4m3,e5m2 on gfx950, not e4m3fnuz,e5m2fnuz"):
        lowering(instruction(name, "gfx942"), "gfx950")


def test_one_mnemonic_in_waves_of_two_sizes() -> None:
    """What spells the same has 64 lanes on gfx9 and 32 on gfx10, where the id does not say 64."""
    assert (instruction("v_dot4_i32_i8", "gfx906").blocks, instruction("v_dot4_i32_i8", "gfx1030").blocks) == (64, 32)
    with pytest.raises(
        UsageError, match=r"takes s8 and s8 in 64 blocks on gfx906, .*; s8 and s8 in 32 blocks on gfx1011"
    ):
        instruction("v_dot4_i32_i8")
    with pytest.raises(UsageError, match=r"in 32 blocks on gfx1011, .*; gfx906 is none of these$"):
        match("gfx906", "v_dot4c_i32_i8")


def test_a_spelling_that_moved() -> None:
    """The gfx942 assembler reads it as the two-block instruction, whose own spelling is another."""
    assert instruction("v_mfma_f32_32x32x4bf16", "gfx90a").blocks == 1
    assert instruction("v_mfma_f32_32x32x4_2b_bf16", "gfx942").blocks == 2
    with pytest.raises(UsageError, match="gfx942 has no v_mfma_f32_32x32x4bf16; gfx908, gfx90a have"):
        match("gfx942", "v_mfma_f32_32x32x4bf16")


def on_target(text: str, arch: str) -> str:
    """The part of a cell that speaks of a target: ``gfx90a: x; gfx942 gfx950: y``, both also of the generic one."""
    arch = arch.replace("gfx9-4-generic", "gfx942")
    clauses = [clause.rpartition(": ") for clause in text.split("; ")]
    return "; ".join(said for targets, _, said in clauses if not targets or arch in targets.split())


PLAIN = {
    "op_sel/op_sel_hi = scale byte": {"op_sel": 4, "op_sel_hi": 4}, "op_sel (16-bit C/D half)": {"op_sel": 2},
    "clamp": {"clamp": 2}, "matrix_a/b_reuse": {"matrix_a_reuse": 2, "matrix_b_reuse": 2},
    "matrix_a/b_fmt": {"matrix_a_fmt": 5, "matrix_b_fmt": 5},
    "matrix_a/b_scale row, scale_fmt": {
        "matrix_a_scale": 2, "matrix_b_scale": 2, "matrix_a_scale_fmt": 3, "matrix_b_scale_fmt": 3,
    },
    "index_key 0-1": {"index_key": 2}, "index_key 0-3": {"index_key": 4},
}  # fmt: skip


def choices(row: dict[str, str], arch: str) -> dict[str, int]:
    """How many values each modifier of a row has on a target, by the golden file's words; those with one left out."""
    blocks, lanes, others = row["cbsz_abid"], on_target(row["blgp"], arch), row["other_modifiers"].split("; ")
    found: dict[str, int] = {}
    if limit := re.match(r"broadcast, cbsz<=(\d)|index set: abid 0-(\d)", blocks):
        found["cbsz" if limit[1] else "abid"] = int(limit[1] or limit[2]) + 1
    if blocks.startswith("A format"):
        found |= {"cbsz": 5, "blgp": 5}
    found |= {"blgp": 8} if "lane permute 0-7" in lanes else {"neg": 8} if "negate A/B/C" in lanes else {}
    for word in others:
        found |= PLAIN.get(word, {})
    if row["m"] == "32" and row["family"].startswith("wmma"):  # 32 rows of A have their scales in all 32 lanes
        found.pop("matrix_a_scale", None)
    operands = {"neg A/B", "neg_lo[0:1]=signed A/B"} & set(others)
    low = 2 * bool(operands) + ("neg/abs C" in others)
    high = 2 * ("neg A/B" in others and row["a_type"] != "f32") + ("neg/abs C" in others)
    return found | {key: 1 << free for key, free in (("neg_lo", low), ("neg_hi", high)) if free}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_modifiers_are_those_of_the_golden_file(arch: str) -> None:
    for row in ROWS:
        if row[arch]:
            made = instruction(identifier(row, arch), arch)
            assert {key: len(values) for key, values in legal(made, {}).items() if len(values) > 1} == choices(
                row, arch
            )
            if "broadcast" in row["cbsz_abid"]:
                top = legal(made, {})["cbsz"][-1]
                assert len(legal(made, {"cbsz": top})["abid"]) == made.blocks == 1 << int(top)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_modifiers_name_one_instruction(arch: str) -> None:
    """Every legal value of every modifier resolves, canonically spelled, and lowers to primitives of its formats."""
    for made in instructions(arch):
        for key, values in legal(made, {}).items():
            assert len(set(values)) == len(values)
            for value in values:
                scale = {"matrix_a_scale_fmt": "matrix_b_scale_fmt", "matrix_b_scale_fmt": "matrix_a_scale_fmt"}
                given = [*made.modifiers, (key, value), *([(scale[key], value)] if key in scale else [])]
                found = instruction(spell(made.opcode, tuple(given)), arch)
                assert (found == made) == (value == values[0])
                assert instruction(found.id, arch) == found
                assert re.fullmatch(r"[\w.:]+(\{[\w.:=,]+\})?", found.id)
                (primitive,) = lowering(found, arch).primitives
                assert f"[{found.a},{found.b}" in primitive


@pytest.mark.parametrize(
    ("arch", "text", "formats"),
    [
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4{blgp=1,cbsz=4}", ("e2m1", "e5m2", None)),
        ("gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4{blgp=3,cbsz=2,op_sel=010}", ("e2m3", "e3m2", "ue8m0")),
        ("gfx1250", "v_wmma_f32_16x16x128_f8f6f4{matrix_b_fmt=MATRIX_FMT_BF6}", ("e4m3", "e3m2", None)),
        (
            "gfx1250",
            "v_wmma_scale16_f32_32x16x128_f4{matrix_a_scale_fmt=MATRIX_SCALE_FMT_E5M3,"
            "matrix_b_scale_fmt=MATRIX_SCALE_FMT_E5M3}",
            ("e2m1", "e2m1", "ue5m3"),
        ),
        ("gfx1100", "v_wmma_i32_16x16x16_iu4{neg_lo=100}", ("s4", "u4", None)),
        ("gfx1200", "v_swmmac_i32_16x16x32_iu8{neg_lo=110,wave=64}", ("s8", "s8", None)),
    ],
)
def test_modifiers_choose_formats(arch: str, text: str, formats: tuple[str | None, ...]) -> None:
    made = instruction(text, arch)
    assert (made.id, made.a, made.b, made.scale) == (text, *formats)


@pytest.mark.parametrize(
    ("arch", "text", "error"),
    [
        ("gfx908", "v_mfma_f32_32x32x1f32{cbsz=2}", "cbsz=2 is not legal here; it is one of cbsz=0, cbsz=1"),
        ("gfx942", "v_mfma_f32_4x4x1_16b_f32{abid=4,cbsz=2}", "abid=4 is not legal here; it is one of abid=0, abid"),
        ("gfx942", "v_mfma_f32_16x16x4_f32{blgp=1}", "blgp=1 is not legal here; it is one of blgp=0"),
        ("gfx90a", "v_mfma_f32_16x16x4f32{blgp=8}", "blgp=8 is not legal here"),
        ("gfx90a", "v_mfma_f64_16x16x4f64{neg=100}", "{neg=100}'; did you mean v_mfma_f64_16x16x4f64"),
        ("gfx942", "v_mfma_f64_16x16x4_f64{blgp=1}", "takes no modifier blgp; known: neg"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4{cbsz=5}", "cbsz=5 is not legal here; it is one of cbsz=0, "),
        ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4{op_sel=001}", "op_sel=001 is not legal here"),
        ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=4}", "abid=4 is not legal here"),
        ("gfx950", "v_smfmac_i32_16x16x128_i8{abid=1}", "abid=1 is not legal here; it is one of abid=0"),
        ("gfx1200", "v_wmma_f32_16x16x16_fp8_fp8{neg_lo=100}", "it is one of neg_lo=000, neg_lo=001"),
        ("gfx1200", "v_wmma_f16_16x16x16_f16{op_sel=001}", "takes no modifier op_sel"),
        ("gfx1100", "v_wmma_f32_16x16x16_f16{wave=16}", "; forms: v_wmma_f32_16x16x16_f16, v_wmma_f32_"),
        ("gfx1200", "v_swmmac_i32_16x16x64_iu4{index_key=1}", "index_key=1 is not legal here"),
        ("gfx1200", "v_swmmac_f32_16x16x32_f16{neg_lo=001}", "neg_lo=001 is not legal here"),
        ("gfx1200", "v_dot4_f32_fp8_fp8{neg_hi=100}", "neg_hi=100 is not legal here; it is one of neg_hi=000, neg"),
        ("gfx906", "v_dot2_f32_f16{neg_hi=001}", "neg_hi=001 is not legal here"),
        ("gfx1200", "v_dot4_f32_fp8_fp8{clamp}", "takes no modifier clamp; known: neg_hi, neg_lo"),
        ("gfx1200", "v_dot2_f16_f16{clamp}", "v_dot2_f16_f16"),
        ("gfx942", "v_dot2c_f32_f16{clamp}", "v_dot2c_f32_f16"),
        ("gfx942", "v_dot2_f32_f16{neg_lo=001}", "neg_lo=001 is not legal here"),
        ("gfx1030", "v_dot2_f32_f16{neg_lo=001}", "neg_lo=001 is not legal here"),
        ("gfx1250", "v_wmma_scale_f32_32x16x128_f4{matrix_a_scale=MATRIX_SCALE_ROW1}", "no modifier matrix_a_scale"),
        ("gfx1250", "v_wmma_i32_16x16x64_iu8{clamp=1}", "clamp=1 is not legal here; it is one of clamp=off, clamp"),
        (
            "gfx1250",
            "v_wmma_scale_f32_32x16x128_f4{matrix_a_scale_fmt=MATRIX_SCALE_FMT_E4M3}",
            "scales of two formats (MATRIX_SCALE_FMT_E4M3, MATRIX_SCALE_FMT_E8) are not modelled; give both the same",
        ),
    ],
)  # fmt: skip
def test_an_illegal_modifier_is_one_line(arch: str, text: str, error: str) -> None:
    with pytest.raises(UsageError, match=re.escape(error)) as caught:
        instruction(text, arch)
    assert "\n" not in str(caught.value)


def test_bit_lists_as_the_assembler_prints_them() -> None:
    assert instruction("v_mfma_f64_16x16x4_f64{neg=[1,0,0]}", "gfx942").id == "v_mfma_f64_16x16x4_f64{neg=100}"
    text = "v_wmma_f32_16x16x16_f16{neg_lo=[1,1,0],neg_hi=[0,0,1],wave=64}"
    assert instruction(text, "gfx1201").id == "v_wmma_f32_16x16x16_f16{neg_hi=001,neg_lo=110,wave=64}"


@pytest.mark.parametrize(
    ("text", "sets"),
    [("v_smfmac_f32_16x16x32_f16", 4), ("v_smfmac_f32_32x32x32_f16", 2), ("v_smfmac_i32_32x32x32_i8", 2),
     ("v_smfmac_i32_16x16x128_i8", 1)],
)  # fmt: skip
def test_index_sets(text: str, sets: int) -> None:
    assert len(legal(instruction(text, "gfx950"), {})["abid"]) == sets
