"""tcgen05 in the NVIDIA catalog against what the compiler made of every form, both ways.

A row of the golden file is an opcode with the place of A and the operands that
the instruction takes; shape and types live in the descriptor, so the row holds
the sets of what they may be, and each option of the opcode is tried alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, instruction, lowering
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError
from second_source.nvidia_forms import ROWS, matrix_opcodes

Key = tuple[str, str]
GOLDEN = {(row["ptx"], row["extra"]): row for row in ROWS if row["family"].startswith("tcgen05")}
ARCHITECTURES = ("sm_100a", "sm_103a", "sm_107a", "sm_110a")
OPERANDS = {
    "disable_output_lane": "disable-output-lane",
    "scale_input_d": "scale-input-d",
    "zero_column_mask": "zero-column-mask-desc",
}
"""Modifiers that the golden file's ``extra`` says beside the place of A."""
FREE = {"m", "n", "trans_a", "trans_b", "neg_a", "neg_b", "enable_input_d", "start", "c", "only"}
"""What a choice may bind that no row of the golden file tells apart."""
LATER_K = {
    "mxf4": {96, 128}, "mxf4nvf4": {96, 128}, "sp.mxf4": {192}, "sp.mxf4nvf4": {192}, "f8f6f4": {64}, "mxf8f6f4": {64},
}  # fmt: skip
"""K beside the ordinary one, on sm_103a or sm_107a: the golden file leaves it out."""
FORMATS = {"ti16": "s1z4m11"}


def numbers(text: str) -> set[int]:
    """A set as the golden file writes it: ``64|128``, ``8..256/8``, ``8,16,24,32..256/16``."""
    found: set[int] = set()
    for part in re.split(r"[|,]", text):
        first, _, rest = part.partition("..")
        last, _, step = rest.partition("/")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def shapes(row: dict[str, str]) -> set[tuple[int, int]]:
    """The (M, N) of a golden row."""
    if "(M=" in row["n"]:  # ti16, cta_group::1
        return {(64, n) for n in range(8, 257, 8)} | {(128, n) for n in range(16, 257, 16)}
    return set(itertools.product(numbers(row["m"]), numbers(row["n"])))


def descriptor_shapes(form: Form, made: Instruction) -> set[tuple[int, int]]:
    """The (M, N) that the form's row has with an instruction's CTA group."""
    (axis,) = (axis for axis in form.row.axes if "n" in axis[0])
    group = re.search(r"cta_group::(\d)", made.opcode)
    assert group
    return {(choice["m"], choice["n"]) for choice in axis if str(choice.get("cta", 1)) == group[1]}


def every(form: Form, architecture: str) -> Iterator[tuple[Instruction, Lowering]]:
    """The instructions of a form that golden rows could tell apart; of the rest the first stands for all."""
    row = form.row
    kept = []
    for axis in range(row.listed, len(row.axes)):
        seen: dict[object, int] = {}
        for number in row.allowed(axis, architecture):
            choice = row.axes[axis][number]
            telling = {key: value for key, value in choice.items() if key not in FREE}
            if "scale_input_d" in telling:
                telling["scale_input_d"] = telling["scale_input_d"] != "0" and telling["scale_input_d"] != 0
            seen.setdefault(tuple(telling.items()), number)
        kept.append(tuple(seen.values()))
    for picks in itertools.product(*kept):
        made = row.instruction((*form.picks[: row.listed], *picks))
        yield made, row.ways((*form.picks[: row.listed], *picks), made, architecture)[0]


def parts(made: Instruction) -> tuple[str, list[str], list[str]]:
    """An id's opcode without descriptor and options, its options, and its operands as ``extra`` names them."""
    bare = re.sub(r"\.m\d+n\d+k\d+\..*", "", made.opcode)
    options = re.findall(r"\.ashift|\.collector::\w+::\w+(?:::\w+)?", bare)
    for option in options:
        bare = bare.replace(option, "", 1)
    return bare, options, [name for key, name in OPERANDS.items() if key in made.modifier]


def key(made: Instruction, bare: str, options: list[str], operands: list[str]) -> Key:
    """The golden row with this opcode, options and operands."""
    lut = ["decompress::lut::b"] if "lut" in bare else []
    extra = [f"A {made.modifier.get('a', 'smem')}", *operands, *lut, *(option[1:] for option in options)]
    return bare + "".join(options), ";".join(extra)


def rests_on(made: Instruction) -> set[Key]:
    """The golden rows that an id rests on: its own, or those of each of its options and of its operands.

    Scaled forms were tried with collectors where the scale block is spelled as
    such, collector b beside a::discard, buffers 1 to 3 of .ws with fill alone.
    """
    bare, options, operands = parts(made)
    own = key(made, bare, options, operands)
    if own in GOLDEN:
        return {own}
    spelled = re.sub(r"block_scale(\.\w+(::\w+)?)?$", f"block_scale.{tried_with(made)}", bare)
    found = {key(made, bare, [], operands)}
    for option in options:
        buffer = re.fullmatch(r"\.collector::b([1-3])::(use|lastuse|discard)", option)
        if buffer:
            found |= {key(made, bare, [f".collector::b{buffer[1]}::fill"], [])}
            found |= {key(made, bare, [f".collector::b0::{buffer[2]}"], [])}
            continue
        before = [".collector::a::discard"] if option.startswith(".collector::b::") and len(options) > 1 else []
        found.add(key(made, spelled, [*before, option], []))
    if ".ashift" in options:
        found.add(key(made, bare, options, []))
    return found


def tried_with(made: Instruction) -> str:
    return "block16" if "nvf4" in made.family else "block32"


@dataclass
class Held:
    """What the catalog holds under one golden row."""

    families: set[str] = field(default_factory=set)
    shapes: set[tuple[int, int]] = field(default_factory=set)
    types: dict[str, set[str]] = field(default_factory=lambda: {letter: set() for letter in "abd"})
    k: set[int] = field(default_factory=set)
    scales: set[str] = field(default_factory=set)
    sparse: set[bool] = field(default_factory=set)
    ways: set[tuple[str, str, int, str, str]] = field(default_factory=set)


@cache
def held(architecture: str) -> dict[Key, Held]:
    """Everything of an architecture by the golden row that it is; what rests on several is checked and left out."""
    found: dict[Key, Held] = {}
    for form in forms(architecture, "tcgen05*"):
        for made, way in every(form, architecture):
            rows = rests_on(made)
            for each in rows:
                assert each in GOLDEN, (made.id, each)
                assert GOLDEN[each][architecture], (made.id, each)
            if len(rows) > 1:
                continue
            entry = found.setdefault(rows.pop(), Held())
            entry.families.add(made.family)
            entry.shapes |= descriptor_shapes(form, made)
            for letter in "abd":
                entry.types[letter].add(FORMATS.get(getattr(made, letter), getattr(made, letter)))
            entry.scales.add(made.scale or "")
            entry.sparse.add(bool(made.chunk))
            entry.k |= {made.k} - LATER_K.get(made.family.removeprefix("tcgen05."), set())
            (primitive,) = way.primitives
            entry.ways.add((way.kind, primitive.partition("[")[0], way.count, way.targets, way.toolchain))
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_golden_rows_both_ways(architecture: str) -> None:
    """Nothing missing, nothing beside it; shapes, types, K, lowering and the compiler's other targets are theirs."""
    found = held(architecture)
    assert found.keys() == {name for name, row in GOLDEN.items() if row[architecture]}
    for name, entry in found.items():
        row = GOLDEN[name]
        assert entry.families == {row["family"]}
        assert entry.shapes == shapes(row), name
        assert entry.types == {letter: set(row[f"{letter}_type"].split("|")) for letter in "abd"}, name
        assert entry.k == {int(row["k"])}, name
        assert entry.sparse == {bool(row["sparse"])}
        ((opcode, count),) = matrix_opcodes(row[architecture]).items()
        targets = "family" if architecture.replace("a", "f") in row["also_targets"].split() else "none"
        opcode = re.sub(r"\.2CTA|\.WS", "", opcode)
        assert entry.ways == {("native", opcode, count, targets, "ptxas 13.5.37")}, name


@pytest.mark.sampled(1)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scale_types(architecture: str) -> None:
    """A scale for 32 lanes is ue8m0; one for 16 is ue8m0 or ue4m3, on sm_107a also ue5m3."""
    for name, entry in held(architecture).items():
        sixteen = re.search("4X|block16", name[0])
        later = {"ue5m3"} if architecture == "sm_107a" else set()
        allowed = {"ue8m0", "ue4m3"} | later if sixteen else {"ue8m0"} if "block_scale" in name[0] else {""}
        assert entry.scales == allowed, name
        assert entry.scales <= set(GOLDEN[name]["scale_type"].split("|"))


def test_placement_is_compiled_as_the_id_says() -> None:
    """Pairs of CTAs, stationary weights, shifted rows, collectors: what no primitive says but the shift."""
    kept_by = {"fill": {"KEEP"}, "use": {"REUSE", "KEEP"}, "lastuse": {"REUSE"}}
    for (ptx, _), row in GOLDEN.items():
        for cell in {row[arch] for arch in ARCHITECTURES} - {""}:
            for mark, spelled in (
                (".2CTA", "cta_group::2"),
                (".WS", ".ws"),
                (".ASHIFT", ".ashift"),
                (".LUTB", "lut::b"),
            ):
                assert (mark in cell) == (spelled in ptx), ptx
            for side in "ab":
                use = re.search(rf"collector::{side}\d?::(\w+)", ptx)
                marks = re.findall(rf"{side.upper()}_(\w+)", cell)
                assert set(marks) == kept_by.get(use[1] if use else "", set()), ptx


@pytest.mark.parametrize(
    ("text", "shape", "formats"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16{a=tmem}", (128, 64, 16), ("f16", "f16", "f32")),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n64k64.f32.e2m1.e2m1.ue4m3",
            (128, 64, 64),
            ("e2m1", "e2m1", "f32"),
        ),
        ("tcgen05.mma.sp.cta_group::2.kind::i8.m256n96k64.s32.s8.u8{saturate}", (256, 96, 64), ("s8", "u8", "s32")),
        (
            "tcgen05.mma.cta_group::2.kind::f8f6f4.collector::a::use.m256n240k32.f16.e5m2.e2m1"
            "{disable_output_lane,neg_b,trans_a}",
            (256, 240, 32),
            ("e5m2", "e2m1", "f16"),
        ),
    ],
)
def test_ids(text: str, shape: tuple[int, ...], formats: tuple[str, ...]) -> None:
    made = instruction(text)
    assert (made.id, made.m, made.n, made.k, made.a, made.b, made.d) == (text, *shape, *formats)


def test_an_input_that_is_not_read() -> None:
    made = instruction("tcgen05.mma.cta_group::1.kind::tf32.m64n8k8.f32.tf32.tf32{enable_input_d=0}")
    assert made.c is None
    assert "c" not in made.shapes(1)
    assert [step.start for step in lowering(made, "sm_100a").applications] == ["zero"]


@pytest.mark.parametrize(
    "text",
    [
        "tcgen05.mma.cta_group::1.kind::f16.m256n64k16.f32.f16.f16",
        "tcgen05.mma.cta_group::2.kind::f16.m128n24k16.f32.f16.f16",
        "tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.bf16",
        "tcgen05.mma.cta_group::1.kind::f16.ashift.m128n64k16.f32.f16.f16",
        "tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16{a=tmem,trans_a}",
        "tcgen05.mma.cta_group::1.kind::f8f6f4.m128n64k32.f32.e4m3.e4m3{scale_input_d=3}",
        "tcgen05.mma.cta_group::1.kind::i8.m128n64k32.s32.s8.s8{neg_a}",
        "tcgen05.mma.sp.cta_group::2.kind::mxf4.block_scale.m128n64k128.f32.e2m1.e2m1.ue8m0",
    ],
)
def test_what_the_descriptor_cannot_say_is_unknown(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown instruction .*; did you mean tcgen05"):
        instruction(text)


def test_k_of_later_parts() -> None:
    """nvidia_layouts: K = 96 (sparse 192) on sm_103a and sm_107a; 64 of 8-bit and 128 of 4-bit operands on sm_107a."""
    found = {arch: {form.first.k for form in forms(arch, "tcgen05.mma*.kind::mxf4*")} for arch in ARCHITECTURES}
    assert found == {
        "sm_100a": {64, 128},
        "sm_103a": {64, 96, 128, 192},
        "sm_107a": {64, 96, 128, 192},
        "sm_110a": {64, 128},
    }
    dense = {arch: {form.first.k for form in forms(arch, "tcgen05.mma.cta*f8f6f4*")} for arch in ARCHITECTURES}
    assert dense == {"sm_100a": {32}, "sm_103a": {32}, "sm_107a": {32, 64}, "sm_110a": {32}}
    ultra = instruction("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.m128n8k96.f32.e2m1.e2m1.ue4m3")
    assert ultra.shapes(1)["scale_a"] == (1, 128, 6)


def test_where_options_exist() -> None:
    scaled = instruction("tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16{scale_input_d=15}")
    assert lowering(scaled, "sm_103a").targets == "family"
    with pytest.raises(UsageError, match="sm_110a"):
        lowering(scaled, "sm_110a")
