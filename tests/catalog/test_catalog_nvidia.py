"""The NVIDIA catalog against what the compiler made of every form, both ways.

``golden/nvidia_instructions.csv.xz`` holds one row a PTX form: opcode, shape,
types, and for each architecture the matrix instructions in the disassembly.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from mmaprobe.catalog import names
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, forms, instruction, instructions, lowering
from mmaprobe.catalog.lowering import Lowering
from second_source.nvidia_forms import ARCHITECTURES, ROWS, matrix_opcodes

MODIFIERS = {
    "A regs": ["a=regs"],
    "imm-scale-a=-1 imm-scale-b=1": ["neg_a"],
    "imm-scale-a=1 imm-scale-b=-1": ["neg_b"],
    "imm-scale-a=-1 imm-scale-b=-1": ["neg_a", "neg_b"],
    "trans-a=1 trans-b=0": ["trans_a"],
    "trans-a=0 trans-b=1": ["trans_b"],
    "trans-b=1": ["trans_b"],
    "trans-a=1 trans-b=1": ["trans_a", "trans_b"],
}
"""What the golden file's ``extra`` says beyond the opcode, as modifiers of the id; the rest repeats the opcode."""

BY_EIGHT = tuple(range(8, 257, 8))
BY_SIXTEEN = (8, 16, 24, *range(32, 257, 16))
"""N of wgmma, tried one by one on the compiler; the golden file lists six of them, and modifiers at N = 64 only."""


def identifier(row: dict[str, str]) -> str:
    """The id of a row: its opcode, and in braces what the opcode does not say."""
    inside = sorted(name for part in row["extra"].split(";") for name in MODIFIERS.get(part, ()))
    return f"{row['ptx']}{{{','.join(inside)}}}" if inside else row["ptx"]


DONE = {identifier(row): row for row in ROWS if not row["family"].startswith("tcgen05")}


def compiled(cell: str) -> tuple[object, ...]:
    """A cell as what a lowering says: kind, opcodes, their count, conversions (A and B, C, D), last add, sort."""
    kind = "emulated" if "[emulated" in cell else "split" if "[split" in cell else "native"
    convert = "f16" if "[emulated: F2FP.F16" in cell else None
    add = re.search(r"\b(FADD|HADD2) x", cell)
    sort = re.search(r"\[metadata sort: call (\w+)", cell)
    widen = re.search(r"\[\+ (HADD2\.F32) x", cell)
    narrow = re.search(r"\[\+ (F2FP?\.[\w.]+) x", cell)
    opcodes = matrix_opcodes(cell)
    texts = (found and found[1] for found in (widen, narrow, add, sort))
    return kind, set(opcodes), sum(opcodes.values()), convert, *texts


def said(way: Lowering) -> tuple[object, ...]:
    """A lowering as ``compiled`` gives a cell, which lists no scalar instructions inside a called routine."""
    opcodes = {name.partition("[")[0] for name in way.primitives if "MMA" in name}
    around = (way.convert, way.convert_c, way.convert_d, way.add, way.sort)
    return way.kind, opcodes, way.count, *(around if opcodes else (None,) * 5)


def described(made: Instruction) -> tuple[object, ...]:
    """What the golden file says of a form apart from its opcode."""
    types = (made.d, made.a, made.b, made.c)
    return (made.family, made.m, made.n, made.k, *types, bool(made.chunk), made.scale or "")


def plain_forms(made: Instruction) -> list[str]:
    """What a wgmma rests on in the golden file: its own form at N = 64, bare and with each one modifier."""
    opcode = re.sub(r"m64n\d+k", "m64n64k", made.opcode)
    place = [f"a={value}" for key, value in made.modifiers if key == "a"]
    marks = [[], *([key] for key, _ in made.modifiers if key != "a")]
    return [f"{opcode}{{{','.join(place + mark)}}}".removesuffix("{}") for mark in marks]


def test_every_family_is_there() -> None:
    held = {made.family for name in ARCHITECTURES for made in instructions(name)}
    assert held == {row["family"] for row in ROWS}
    assert set(ARCHITECTURES) == {name for name in architectures() if name.startswith("sm_")}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_lowerings_are_what_the_compiler_made(architecture: str) -> None:
    expected = {name: compiled(row[architecture]) for name, row in DONE.items() if row[architecture]}
    held = {form.first.id for form in forms(architecture) if not form.first.family.startswith(("tcgen05", "wgmma"))}
    assert held == {name for name in expected if not name.startswith("wgmma")}
    found = {name: said(lowering(instruction(name), architecture)) for name in expected}
    assert {name: (found[name], expected[name]) for name in found if found[name] != expected[name]} == {}
    stamp = "ptxas 12.9.86" if architecture == "sm_70" else "ptxas 13.5.37"
    assert {form.way.toolchain for form in forms(architecture)} == {stamp}


def every(architecture: str, glob: str) -> Iterator[tuple[Instruction, Lowering]]:
    """Every instruction of an architecture's forms, what their rows' ranges bind included, and its lowering there."""
    for form in forms(architecture, glob):
        ranges = [form.row.allowed(axis, architecture) for axis in range(form.row.listed, len(form.row.axes))]
        listed = form.picks[: form.row.listed]
        for picks in itertools.product(*ranges):
            made = form.row.instruction((*listed, *picks))
            yield made, form.row.ways((*listed, *picks), made, architecture)[0]


def test_wgmma_has_every_n_and_every_combination_of_modifiers() -> None:
    """What the golden file does not list follows from what it lists, and there is nothing beside it."""
    found: Counter[str] = Counter()
    for made, way in every("sm_90a", "wgmma*"):
        if made.modifier.get("scale_d"):
            continue
        bare, *marked = plain_forms(made)
        assert {bare, *marked} <= DONE.keys(), made.id
        assert made.n in (BY_SIXTEEN if made.d == "s32" else BY_EIGHT), made.id
        assert said(way) == compiled(DONE[bare]["sm_90a"]), made.id
        found[bare] += 1
    for bare, count in found.items():
        made = instruction(bare)
        singles = [name for name in ("neg_a", "neg_b", "trans_a", "trans_b")
                   if f"{bare.removesuffix('}')}{',' if bare.endswith('}') else '{'}{name}}}" in DONE]  # fmt: skip
        assert count == len(BY_SIXTEEN if made.d == "s32" else BY_EIGHT) * 2 ** len(singles)
    assert found.keys() == {name for name in DONE if "m64n64k" in name and not re.search("neg|trans", name)}


def test_other_targets_of_the_compiler() -> None:
    """``sm_90`` accepts what is of ``all`` targets, ``sm_100f`` that and what is of the ``family``'s."""
    for name, row in DONE.items():
        for target, entry in names.names().targets.items():
            if row[entry.architecture]:
                way = lowering(instruction(name), entry.architecture)
                assert (target in row["also_targets"].split()) == (way.targets in entry.accepts), (name, target)


def test_transposed_and_negated_operands_are_compiled_as_such() -> None:
    for name, row in DONE.items():
        marks = {
            f"{mark}{side.upper()}"
            for side in "ab"
            for key, mark in (("trans", "tnsp"), ("neg", "neg"))
            if f"{key}_{side}" in name
        }
        assert marks == set(re.findall("(?:tnsp|neg)[AB]", "".join(row[arch] for arch in ARCHITECTURES))), name


def test_shapes_types_and_scales() -> None:
    assert len(DONE) == 1222
    for name, row in DONE.items():
        shape = (int(row[key]) for key in "mnk")
        types = (row[f"{key}_type"] for key in "dabc")
        expected = (row["family"], *shape, *types, bool(row["sparse"]), row["scale_type"])
        assert described(instruction(name)) == expected, name


def test_scale_and_metadata_sizes() -> None:
    """PTX ISA 9.1: NX gives N scales a row of A; metadata covers 4 lanes, 2 of tf32, 8 of 4 bits."""
    default = {"mxf8f6f4": 1, "mxf4": 2}
    for name, row in DONE.items():
        made = instruction(name)
        if made.scale:
            scales = int(row["scale_vec"].rstrip("X") or default[row["block_scale"]])
            assert made.k // made.scale_size == scales, name
        if made.chunk:
            wide = "int4" in made.family or "mxf4" in made.family
            assert made.chunk == (8 if wide else 2 if made.a == "tf32" else 4), name
