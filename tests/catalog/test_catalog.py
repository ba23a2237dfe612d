"""The catalog: rows that check themselves, ids, look-up, control states."""

from __future__ import annotations

import itertools
import math
import random
import re
from typing import Any

import pytest

from mmaprobe import formats
from mmaprobe.catalog import loader
from mmaprobe.catalog.architectures import Architectures
from mmaprobe.catalog.catalog import Catalog
from mmaprobe.catalog.lanes import format_lanes, parse_lanes
from mmaprobe.catalog.lookup import (
    architectures,
    catalog,
    default_state,
    forms,
    instruction,
    instructions,
    lowering,
    match,
    matches,
    modes,
    short,
)
from mmaprobe.catalog.lowering import Application, Lowering
from mmaprobe.catalog.row import Segment
from mmaprobe.errors import UsageError

ALL = [(arch, made) for arch in architectures() for made in instructions(arch)]


def test_every_format_named_exists_and_shapes_are_valid() -> None:
    for _, made in ALL:
        for name in (made.a, made.b, made.d, made.c, made.scale):
            assert name is None or name in formats.FORMATS
        assert min(made.m, made.n, made.k) >= 1
        if made.scale_size:
            assert made.k % made.scale_size == 0
        if made.chunk:
            assert made.k % made.chunk == 0
        assert {"a", "b"} <= made.shapes(3).keys()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("arch", architectures())
def test_ids_are_unique_and_found(arch: str) -> None:
    ids = [made.id for made in instructions(arch)]
    assert len(ids) == len(set(ids)) > 0
    for made in instructions(arch):
        assert instruction(made.id, arch) == made
        assert instruction(short(made.id), arch) == made
        assert re.fullmatch(r"[\w.:]+(\{[\w.:=,]+\})?", made.id)


def test_choices_of_an_axis_write_different_ids() -> None:
    """Two choices that exist on one architecture never write the same text into an id."""
    for row in (row for file in loader.data_files() for row in file.rows):
        for axis in range(len(row.axes)):
            parts = [part for part in row.segments if isinstance(part, Segment) and part.axis == axis]
            for arch in row.architectures:
                written = [tuple(part.texts[number] for part in parts) for number in row.allowed(axis, arch)]
                assert len(written) == len(set(written)), (row.table["opcode"], axis)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("arch", architectures())
def test_an_id_out_of_the_ranges_names_one_instruction(arch: str) -> None:
    """One id of each of 250 forms, its ranges bound at random, is found as itself, and nothing else has that id."""
    rng = random.Random(arch)
    assert len(forms(arch)) < 1000
    for form in forms(arch)[:: 1 + len(forms(arch)) // 250]:
        options = [form.row.allowed(axis, arch) for axis in range(form.row.listed, len(form.row.axes))]
        assert form.count == math.prod(map(len, options))
        picks = (*form.picks[: form.row.listed], *map(rng.choice, options))
        made = form.row.instruction(picks)
        assert instruction(made.id, arch) == made
        assert sum(arch in entry.ways for entry in catalog().named(made.id)) == 1
        assert lowering(made, arch) == form.row.ways(picks, made, arch)[0]


@pytest.mark.long
def test_a_glob_counts_what_it_matches() -> None:
    """A form's count is the number of its ids that match, its first the first of them."""
    for glob in ("wgmma*n1?8k32.*", "wgmma.mma_async.sp.m64n24k64.s32.[su]8*", "*k8.*tf32{a=*neg_b*}"):
        found = {(*form.picks[: form.row.listed], id(form.row)): form for form in forms("sm_90a", glob)}
        for form in forms("sm_90a", "wgmma*"):
            row = form.row
            ranges = [row.allowed(axis, "sm_90a") for axis in range(row.listed, len(row.axes))]
            every = (row.instruction((*form.picks[: row.listed], *picks)) for picks in itertools.product(*ranges))
            held = [made for made in every if matches(made, glob)]
            other = found.get((*form.picks[: row.listed], id(row)))
            assert (other.count if other else 0) == len(held), (glob, form.first.id)
            assert other is None or other.first in held


def test_every_lowering_covers_k() -> None:
    for arch, made in ALL:
        steps = lowering(made, arch).applications
        assert not steps or sorted(lane for step in steps for lane in step.lanes) == list(range(made.k))


def test_control_states() -> None:
    base = instruction("x86.vfmadd.f32")
    states = modes(base)
    assert len(states) == len({s.id for s in states}) == 16
    assert states[0] == base
    one = instruction("x86.vfmadd.f32{rounding=rz, ftz,daz}")
    assert one.id == "x86.vfmadd.f32{daz,ftz,rounding=rz}"
    assert one.modifiers == (("daz", ""), ("ftz", ""), ("rounding", "rz"))
    assert one in states
    assert default_state(one) == base
    assert instruction("x86.vfmadd.f32{rounding=rn}") == base
    assert lowering(one, "x86-64+amd").primitives == ("VFMADDSS[f32,f32->f32]",)
    wide = instruction("x86.vdpbf16ps{width=512}")
    assert modes(wide) == (wide,)


@pytest.mark.parametrize(
    ("identifier", "said"),
    [
        ("x86.vfmad.f32", "did you mean x86.vfmadd.f32"),
        ("x86.vdpbf16ps{daz}", "x86.vdpbf16ps does not obey daz"),
        ("x86.dpps{rounding=up}", "rounding='up'; it is one of rounding=rn"),
        ("x86.dpps{daz=yes}", "daz='yes'"),
        ("x86.dpps{sae}", "unknown instruction"),
        ("x86.vdpbf16ps{width=1024}", "did you mean x86.vdpbf16ps"),
    ],
)
def test_wrong_ids_name_the_near_ones(identifier: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        instruction(identifier)


def test_match() -> None:
    assert {made.id for made in match("x86-64", "x86.dpp?")} == {"x86.dpps", "x86.dppd"}
    assert [made.id for made in match("x86-64", "x86.dpps{ftz,rounding=ru}")] == ["x86.dpps{ftz,rounding=ru}"]
    assert len(match("x86-64", "x86.dpps{*}")) == 15
    with pytest.raises(UsageError, match=r"no instruction of aarch64 matches .arm.bfdott\*.; did you mean arm.bfdot"):
        match("aarch64", "arm.bfdott*")
    with pytest.raises(UsageError, match=r"aarch64 has no x86\.dpps; x86-64 has"):
        match("aarch64", "x86.dpps")
    with pytest.raises(UsageError, match="unknown architecture 'x86'; did you mean x86-64"):
        instructions("x86")


@pytest.mark.parametrize("text", ["0..15", "0..30:2", "1,0", "0..30:2,1..31:2", "3..0", "0", "0,1,4,5,2,3,6,7"])
def test_lanes_round_trip(text: str) -> None:
    assert format_lanes(parse_lanes(text)) == text


def test_lanes_that_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="cannot read 'x'"):
        parse_lanes("0,x")


ROW = """
schema = 1
[[row]]
family = "f"
opcode = "op{k}"
axes = [[{ k = 4 }, { k = 8 }]]
m = 1
n = 1
k = "{k}"
a = "f16"
b = "f16"
d = "f32"
[[row.on]]
architectures = ["one"]
primitive = "P{K}"
"""


def read(text: str) -> Catalog:
    """The catalog of one data file."""
    one = Architectures({"one": ""}, {})
    return Catalog((loader.parse_rows("t.toml", text, one),), one)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('a = "f16"', 'a = "f17"', "t.toml, row 1 (f): unknown format 'f17'"),
        ('"op{k}"', '"op"', "t.toml, row 1 (f): op is there twice on one"),
        ("{ k = 8 }", "{ k = 4 }", "t.toml, row 1 (f): op4 is there twice on one"),
        ("{ k = 8 }", "{ j = 8 }", "t.toml, row 1 (f): nothing binds 'k'"),
        ('d = "f32"', 'd = "f32"\nkk = 3', "t.toml, row 1 (f): unknown key 'kk'"),
        ("m = 1", "m = 0", "t.toml, row 1 (f): op4: shape 0x1x4"),
        ('["one"]\nprimitive', '["two"]\nprimitive', "t.toml, row 1 (f): unknown architecture 'two'"),
        ('"P{K}"', '"P"\nlanes = "0..2"', "t.toml, row 1 (f): the lanes of op4 are not 0..3"),
        (
            '"P{K}"',
            '"P"\nunplaced = "Q"\nkind = "emulated"',
            "t.toml, row 1 (f): lowering of op4: primitives are placed",
        ),
        ('"P{K}"', '"P"\nkind = "real"', "t.toml, row 1 (f): lowering of op4: kind 'real'"),
        ("schema = 1", "schema = 2", "t.toml: schema is 2; this version of mmaprobe reads 1"),
        ("schema = 1", "schema = ", "t.toml: "),
    ],
)
def test_a_broken_row_is_refused_by_file_and_number(old: str, new: str, said: str) -> None:
    assert [form.first.id for form in read(ROW).forms("one")] == ["op4", "op8"]
    assert old in ROW
    with pytest.raises(UsageError, match="^" + re.escape(said)):
        read(ROW.replace(old, new)).forms("one")


def test_the_schema_carries_what_later_families_need() -> None:
    text = ROW.replace(
        'd = "f32"',
        'd = "f32"\nc = "f32"\nblocks = 16\nchunk = 4\nscale = "ue8m0"\nscale_size = 4\nmodifiers = { abid = "1" }',
    )
    (entry,) = read(text).named("op8{abid=1}")
    made = entry.instruction
    assert made.shapes(2) == {
        "a": (2, 16, 1, 4), "b": (2, 16, 8, 1), "c": (2, 16, 1, 1),
        "scale_a": (2, 16, 1, 2), "scale_b": (2, 16, 2, 1), "metadata": (2, 16, 1, 2),
    }  # fmt: skip


def test_lowerings_say_what_happens_around_a_primitive() -> None:
    fp8 = lowering(instruction("mma.m16n8k32.f32.e4m3.e5m2.f32"), "sm_90a")
    assert (fp8.kind, fp8.convert, fp8.add, fp8.count) == ("emulated", "f16", "FADD", 2)
    assert [step.start for step in fp8.applications] == ["zero", "previous"]
    assert fp8.applications[0].lanes == tuple(lane for lane in range(32) if lane % 4 < 2)
    f64 = lowering(instruction("mma.m16n8k16.f64.f64.f64.f64.rz"), "sm_100a")
    assert (f64.kind, f64.count, f64.primitives) == ("split", 8, ("DMMA.8x8x4.RZ[f64,f64->f64]",))
    assert [step.lanes[0] for step in f64.applications] == [0, 4, 8, 12]
    assert f64.toolchain.startswith("ptxas 13")
    routine = lowering(instruction("mma.m8n8k4.f16.f16.f16.f16"), "sm_80")
    assert (routine.kind, routine.count, routine.add, routine.convert_d) == ("emulated", 0, "FADD", "F2FP.PACK_AB")
    assert [(step.primitive[:4], *step.lanes, step.start) for step in routine.applications] == [
        ("FMUL", 0, "zero"), ("FFMA", 1, "previous"), ("FMUL", 2, "zero"), ("FFMA", 3, "previous"),
    ]  # fmt: skip
    int4 = lowering(instruction("mma.m16n8k64.s32.s4.u4.s32"), "sm_90a")
    assert (int4.kind, int4.applications, int4.count) == ("emulated", (), 2)
    assert int4.primitives == int4.unplaced == ("IMMA.16832.S8.U8[s8,u8->s32]",)
    assert lowering(instruction("mma.sp.m16n8k16.f32.f16.f16.f32"), "sm_100a").sort == "sm_10x_hmma_mdata_m16n8k16"


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("native", {"convert": "f16"}, "native means primitives and nothing else"),
        ("split", {"add": "FADD"}, "split means primitives and nothing else"),
        ("native", {"unplaced": ("IMMA",)}, "native means primitives and nothing else"),
        ("emulated", {"unplaced": ("IMMA",)}, "placed on lanes or unplaced, not both"),
        ("partly", {}, "it is one of native, split, emulated"),
        ("native", {"targets": "some"}, "one of all, family, none"),
    ],
)
def test_a_lowering_that_contradicts_itself_is_refused(kind: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Lowering("op", "sm_90a", kind, (Application("HMMA", (0, 1), "c"),), "ptxas", **more)
