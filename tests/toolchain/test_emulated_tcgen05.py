"""The data movement of ``tcgen05.mma`` kernels, executed thread by thread, against layouts from a second source."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from cases.tcgen05_forms import chosen, representatives
from emulator.batches import random_batch
from emulator.instruction_descriptor import said
from emulator.registers import Array
from emulator.tcgen05 import run_pair
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source

FORMS = representatives()


def outcome(source: Source, made: Instruction) -> list[str]:
    """The operands that do not arrive where CuTe says, D where it does not come from there."""
    batch = random_batch(made, 2, 5)
    rng = np.random.default_rng(6)
    bits = made.formats()["d"].bits
    steps: list[dict[str, Array]] = []
    results: list[Array] = []

    def unit(seen: dict[str, Array]) -> Array:
        steps.append(seen)
        results.append(rng.integers(0, 1 << bits, (made.m, made.n), np.uint64))
        return results[-1]

    d, strays = run_pair(source, made, batch, unit)
    wrong = [*strays, *([] if (d == np.array(results)).all() else ["d"])]
    assert set(steps[0]) == {name for name, _ in batch.items()}
    return wrong + [name for name, codes in batch.items() if (np.array([step[name] for step in steps]) != codes).any()]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", FORMS)
def test_operands_are_rebuilt(name: str) -> None:
    """A, B, C, scales and metadata arrive where CuTe says, in every copy, D comes from there; the descriptor fits."""
    first, architecture, start = FORMS[name]
    made = chosen(first, architecture, start)
    source = render(made, architecture)
    assert outcome(source, made) == []
    assert fields(source, made) == wanted(made, architecture)


def fields(source: Source, made: Instruction) -> dict[str, int | str]:
    """What the instruction descriptor of a source says."""
    word = re.search(r"INSTRUCTION = (0x\w+);", source.text)
    kind = re.search(r"kind::(\w+)", made.opcode)
    assert word
    assert kind
    return said(int(word[1], 16), kind[1])


def wanted(made: Instruction, architecture: str) -> dict[str, int | str]:
    """Every field that an instruction calls for."""
    on = made.modifier
    flags = {name: int(name in on) for name in ("neg_a", "neg_b", "trans_a", "trans_b")}
    out: dict[str, int | str] = {
        "a": made.a,
        "b": made.b,
        "m": made.m,
        "n": made.n,
        "sparse": int(made.chunk > 0),
        **flags,
    }
    if not made.scale:
        saturate, doubled = int("saturate" in on), int(made.a in ("e4m3", "e5m2") and made.k == 64 and not made.chunk)
        return out | {"d": made.d, "selector": 0, "saturate": saturate, "shift": 0, "k": doubled}
    out |= {"scale": made.scale, "scale_a_id": 0, "scale_b_id": 0, "lanes": 0, "k": 0}
    if "kind::mxf4" in made.opcode:
        del out["trans_a"], out["trans_b"]
        out |= {"k_high": 0, "version": int(architecture == "sm_107a")}
    return out


GOLDEN = [
    ("f16", 0x08400010, {"a": "f16", "b": "f16", "d": "f32", "m": 128, "n": 256}),
    ("f16", 0x08400490, {"a": "bf16", "b": "bf16", "d": "f32", "m": 128, "n": 256}),
    ("f16", 0x04108000, {"a": "f16", "d": "f16", "m": 64, "n": 64, "trans_a": 1, "trans_b": 0}),
    ("tf32", 0x08110910, {"a": "tf32", "b": "tf32", "d": "f32", "m": 128, "n": 64, "trans_b": 1}),
    ("f8f6f4", 0x10200410, {"a": "e4m3", "b": "e5m2", "d": "f32", "m": 256, "n": 128}),
    ("i8", 0x082180A0, {"a": "s8", "b": "u8", "d": "s32", "m": 128, "n": 128, "trans_a": 1, "trans_b": 1}),
    ("f8f6f4", 0x08081290, {"a": "e2m1", "b": "e3m2", "m": 128, "n": 32}),
    ("mxf8f6f4", 0x08A00000, {"a": "e4m3", "b": "e4m3", "m": 128, "n": 128, "scale": "ue8m0"}),
    ("mxf4", 0x08C00480, {"a": "e2m1", "b": "e2m1", "m": 128, "n": 256, "scale": "ue8m0"}),
    ("mxf4nvf4", 0x10300480, {"a": "e2m1", "b": "e2m1", "m": 256, "n": 192, "scale": "ue4m3"}),
]


@pytest.mark.parametrize(("kind", "word", "values"), GOLDEN)
def test_the_second_source_reads_what_cute_printed(kind: str, word: int, values: dict[str, int | str]) -> None:
    assert said(word, kind).items() >= values.items()


F16 = "tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16"
HALF = "tcgen05.mma.cta_group::1.kind::f16.m64n24k16.f16.f16.f16{trans_a,trans_b}"
PAIR = "tcgen05.mma.cta_group::2.kind::f16.m256n64k16.f32.f16.f16"
BOTH = "tcgen05.mma.cta_group::2.kind::f16.m128n64k16.f32.f16.f16{a=tmem}"
TF32 = "tcgen05.mma.cta_group::1.kind::tf32.m128n64k8.f32.tf32.tf32{trans_b}"
NARROW = "tcgen05.mma.sp.cta_group::1.kind::f8f6f4.m128n64k64.f32.e2m3.e2m1"
HALVES = "tcgen05.mma.sp.cta_group::1.kind::f16.m128n64k32.f32.f16.f16"
EAST = "tcgen05.mma.ws.cta_group::1.kind::f16.m64n64k16.f16.f16.f16"
LANES = "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n64k32.f32.e2m1.e4m3{a=tmem}"
ROWS = "tcgen05.mma.ws.sp.cta_group::1.kind::i8.m64n64k64.s32.s8.s8"
DOUBLE = "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.m256n64k32.f32.e4m3.e4m3.ue8m0"
ROUND = "tcgen05.mma.ws.sp.cta_group::1.kind::f16.m32n64k32.f32.f16.f16"
SCALED = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n64k64.f32.e2m1.e2m1.ue4m3"
FAULTS = [
    (F16, ["a"], "struct MatrixA", "line * 16 + k", "line * 16 + (k ^ 1)"),
    (F16, ["b"], "struct MatrixB", "<< 4", "<< 5"),
    (F16, ["c"], "struct C {", "* 64 + (slot)", "* 64 + (slot ^ 1)"),
    (F16, ["d"], "struct D {", "* 64 + (slot)", "* 64 + (slot ^ 1)"),
    (F16, ["b"], "struct MatrixB", "0xc000401000010000", "0xc000402000010000"),
    (F16, ["a"], "struct MatrixA", "0xc000401000010000", "0x8000401000010000"),
    (F16, ["a"], "Issue issue_of", "shared + SHARED_A", "shared + SHARED_B"),
    (F16, ["tensor", "c"], "void write_c", "COLUMN_D", "COLUMN_D + 1"),
    (HALF, ["d"], "struct D {", "== 0", "== 1"),
    (HALF, ["b"], "struct MatrixB", "0x0000400800180000", "0x0000401800080000"),
    (PAIR, ["a"], "struct MatrixA", "line * 16 + k", "line % 128 * 16 + k"),
    (PAIR, ["b"], "void write_operands", "part * MatrixB::lines", "0"),
    (BOTH, ["a"], "struct A {", "64 * (lane >> 7) + (lane & 63)", "lane & 127"),
    (BOTH, ["c"], "struct C {", "((lane >> 6) & 1) * 32", "((lane >> 5) & 1) * 32"),
    (TF32, ["b"], "struct MatrixB", "<< 5", "<< 4"),
    (NARROW, ["shared", "b"], "struct MatrixB", "k / 16", "k / 8"),
    (NARROW, ["metadata"], "void multiply(const Issue& of) {", "COLUMN_METADATA", "COLUMN_D"),
    (HALVES, ["metadata"], "struct Metadata", "8 * ((slot >> 2) & 1)", "8 * (1 - ((slot >> 2) & 1))"),
    (ROUND, ["metadata"], "struct Metadata", "(lane >> 3) & 1", "(lane >> 4) & 1"),
    (EAST, ["c"], "struct C {", "(lane >> 6) * 32", "(1 - (lane >> 6)) * 32"),
    (EAST, ["d"], "struct D {", "lane & 63", "lane & 63 ^ 32"),
    (LANES, ["a"], "struct A {", "shift = 2", "shift = 0"),
    (LANES, ["a"], "struct A {", "16 * (lane >> 5)", "16 * (lane >> 5 ^ 1)"),
    (ROWS, ["metadata"], "struct Metadata", "lane & 63", "lane >> 1"),
    (DOUBLE, ["scale_a"], "struct ScaleA", "128 * (lane >> 7)", "0 * (lane >> 7)"),
    (DOUBLE, ["scale_b"], "struct ScaleB", "* 64 + ((lane & 31)", "* 64 + ((lane & 31 ^ 1)"),
    (DOUBLE, ["scale_b"], "struct ScaleB", "& ((slot & 3) == 0)", "& ((slot & 3) == lane / 224)"),
    (SCALED, ["scale_a"], "struct ScaleA", "slot & 3", "3 - (slot & 3)"),
    (SCALED, ["scale_a"], "void multiply(const Issue& of) {", "COLUMN_SCALE_A", "COLUMN_SCALE_B"),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("name", "operands", "part", "right", "wrong"), FAULTS)
def test_a_wrong_layout_is_seen(name: str, operands: list[str], part: str, right: str, wrong: str) -> None:
    """One term changed: a relabelled k, a swizzle, a descriptor's stride, a CTA's part, an address."""
    made = instruction(name, "sm_100a")
    source = render(made, "sm_100a")
    before, found, after = source.text.partition(part)
    assert found
    assert right in after.partition("\n}")[0], after.partition("\n}")[0]
    changed = replace(source, text=before + found + after.replace(right, wrong, 1))
    assert outcome(changed, made) == operands
