"""RISC-V's dot products: the shipped datapaths against the specification's algorithm in plain integers."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from oracle import riscv

VLENS = (128, 256, 512)
FORMS = [(vlen, made) for vlen in VLENS for made in instructions(f"riscv-vlen{vlen}")]
FLOATS = [(vlen, made) for vlen, made in FORMS if made.d == "f32"]


def name(case: object) -> str:
    return case.id if isinstance(case, Instruction) else str(case)


def test_a_group_of_registers_holds_as_many_lanes() -> None:
    for vlen, made in FORMS:
        bits = 16 if made.a == "bf16" else 8
        assert made.k == int(made.modifier.get("lmul", "1")) * vlen // bits
        assert (made.m, made.n) == (1, 8 if "bdota" in made.opcode else 1)


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("vlen", "made"), FLOATS, ids=name)
def test_a_sum_is_that_of_the_specification(vlen: int, made: Instruction) -> None:
    path = datapath_for(f"riscv-vlen{vlen}", made)
    count = max(20, 4000 // made.k)
    for family in families_for(made):
        v = generate(made, family, 5, 0, count)
        assert v.c is not None
        rows = zip(v.a.tolist(), v.b.tolist(), v.c.tolist(), strict=True)
        expected = np.array([riscv.dota(made.a, made.b, x, y, z) for x, y, z in rows], np.uint32)
        np.testing.assert_array_equal(engine.evaluate(path, v), expected, family)


@pytest.mark.parametrize(("vlen", "made"), [each for each in FORMS if each[1].d == "s32"], ids=name)
def test_integers_wrap(vlen: int, made: Instruction) -> None:
    v = generate(made, "uniform", 6, 0, 40)
    assert v.c is not None
    a, b = (x.view(np.int8) if fmt == "s8" else x for x, fmt in ((v.a, made.a), (v.b, made.b)))
    total = (a.astype(np.int64) * b).sum(axis=1) + v.c
    path = datapath_for(f"riscv-vlen{vlen}", made)
    np.testing.assert_array_equal(engine.evaluate(path, v), (total & 0xFFFFFFFF).astype(np.uint32))


def test_what_rounding_to_odd_and_guard_bits_show() -> None:
    """Eight products of bf16: 1 and 2^-26, on the last of 23 + 3 places, are kept, and odd in f32; 2^-27 is cut to odd
    on that place, so 1 more shows; a sum beyond the largest is an infinity, one of zeros +0."""
    made = instruction("vfwdota.vv", "riscv-vlen128")
    path = datapath_for("riscv-vlen128", made)

    def dot(*lanes: tuple[int, int], c: int = 0) -> int:
        a, b = np.zeros((1, 8), np.uint16), np.zeros((1, 8), np.uint16)
        for i, (x, y) in enumerate(lanes):
            a[0, i], b[0, i] = x, y
        return int(engine.evaluate(path, Batch(a, b, np.array([c], np.uint32)))[0])

    one, tiny, tinier, big = 0x3F80, 0x3280, 0x3200, 0x7F7F
    assert dot((one, one), (tiny, one)) == 0x3F800001
    assert dot((one, one), (tinier, one), (tinier | 0x8000, one)) == 0x3F800000
    assert dot((one, one), (tinier, one), c=0xBF800000) == 0x34000000
    assert dot((one, one), (one, one | 0x8000), (tiny, one)) == 0x32800000
    assert dot((one, one), (one, one | 0x8000), (tinier, one)) == 0x32800000
    assert dot((big, big)) == 0x7F800000
    assert dot((0x8000, one), c=0x80000000) == 0
