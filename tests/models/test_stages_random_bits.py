"""Stochastic rounding by an operand of random bits: the rule by hand, and the three interpreters alike."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from test_oracle import by_oracle

from cases.engine_layout import run_interpreter
from cases.strategies import vectors
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import INTERPRETER, kernel
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Product,
    Products,
    Special,
    Zero,
)
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.rewrite import map_encodes
from mmaprobe.parameters.table import from_table, to_table

RZ = Encode(rounding="RZ")
HALF = Encode("f16", "RZ", random_bits=8)


def f16(value: float) -> int:
    return int.from_bytes(struct.pack(">e", value), "big")


def one(to: Encode = HALF, random: str = "u16") -> Datapath:
    """a b + c, exact, to f16."""
    return Datapath("f16", "f16", "f16", "f16", 1, Exact((Products((0,)), Accumulator()), to), random=random)


def answer(path: Datapath, a: float, b: float, c: float, r: int) -> int:
    """d, by all three interpreters."""
    codes = [np.array([f16(value)], np.uint16) for value in (a, b, c)]
    dtype = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32}[path.random or ""]
    batch = Batch(codes[0][:, None], codes[1][:, None], codes[2], random=np.array([r], dtype))
    (d,) = stages.evaluate(path, batch).tolist()
    assert engine.evaluate(path, batch).tolist() == by_oracle(path, batch) == [d]
    return int(d)


@pytest.mark.parametrize(
    ("c", "r", "up"),
    [
        (2**-11, 0x00, 0),  # half a last place: 0x80 of 0x100
        (2**-11, 0x7F, 0),
        (2**-11, 0x80, 1),
        (2**-11, 0xFF, 1),
        (2**-12, 0xBF, 0),
        (2**-12, 0xC0, 1),
        (2**-18, 0xFE, 0),  # the last of the eight bits
        (2**-18, 0xFF, 1),
        (2**-19, 0xFF, 0),  # below it
        (0.0, 0xFF, 0),
        (2**-11, 0x0100, 0),  # the ninth bit of r is none of the eight lowest
    ],
)
def test_the_bits_below_the_last_place_and_the_random_ones_carry(c: float, r: int, up: int) -> None:
    for sign in (1, -1):
        assert answer(one(), sign, 1, sign * c, r) == f16(sign) + up


def test_the_highest_bits() -> None:
    path = one(replace(HALF, random_from="highest"))
    assert answer(path, 1, 1, 2**-11, 0x7FFF) == f16(1)
    assert answer(path, 1, 1, 2**-11, 0x8000) == f16(1) + 1
    assert answer(path, 1, 1, 2**-11, 0x00FF) == f16(1)


def test_a_subnormal_has_its_last_place() -> None:
    """2^-24 and 3/4 of it: 0xc0 of 0x100 are below the last place."""
    assert answer(one(), 2**-12, 1.75 * 2**-12, 0, 0x3F) == 1
    assert answer(one(), 2**-12, 1.75 * 2**-12, 0, 0x40) == 2
    assert answer(one(), 2**-14, 2**-14, 0, 0xEF) == 0  # 2^-28 is 0x10 of 0x100: 0xf0 carries
    assert answer(one(), 2**-14, 2**-14, 0, 0xF0) == 1


@pytest.mark.parametrize(
    ("to", "d"),
    [
        (HALF, 0x7BFF),
        (replace(HALF, overflow="infinity"), 0x7C00),
        (replace(HALF, rounding="RNE"), 0x7C00),
        (replace(HALF, overflow="largest"), 0x7BFF),
    ],
)
def test_what_carries_beyond_the_largest_overflows(to: Encode, d: int) -> None:
    assert answer(one(to), 65504, 1, 16, 0x80) == d


def test_the_rounding_says_what_becomes_of_the_rest() -> None:
    """RNE of the eight random bits: three quarters go up where r is 0, a quarter where the bits carry."""
    path = one(replace(HALF, rounding="RNE"))
    assert [answer(path, 1, 1, 0.75 * 2**-10, r) - f16(1) for r in (0, 0xFF)] == [1, 1]
    assert [answer(path, 1, 1, 0.25 * 2**-10, r) - f16(1) for r in (0, 0xBF, 0xC0)] == [0, 0, 1]


def test_an_integer_has_its_last_place_at_one() -> None:
    to = Encode("s16", "RZ", overflow="largest", random_bits=4)
    path = Datapath("f16", "f16", None, "s16", 1, Exact((Products((0,)),), to), random="u8")
    batch = Batch(
        np.array([[f16(2.5)], [f16(2.5)], [f16(-2.5)]], np.uint16), np.full((3, 1), f16(1), np.uint16),
        random=np.array([7, 8, 8], np.uint8),
    )  # fmt: skip
    assert stages.evaluate(path, batch).tolist() == engine.evaluate(path, batch).tolist() == [2, 3, 0xFFFD]
    assert by_oracle(path, batch) == [2, 3, 0xFFFD]


TREES: dict[str, tuple[Node, int]] = {
    "fused": (Fused.alike((Products((0, 1, 2, 3)), Accumulator()), 30, "RZ", -133, replace(RZ, random_bits=13)), 4),
    "steps": (Exact((Products((0, 1)), Accumulator()), replace(RZ, random_bits=16, random_from="highest")), 2),
    "chain": (Fma(Accumulator(), (1, 0, 2, 3), replace(RZ, random_bits=11)), 4),
    "last cut": (Fma(Zero(), (0, 1, 2, 3), replace(RZ, first=(30, "RNE"), random_bits=9)), 4),
    "added": (
        Add(Fma(Zero(), (0, 1), RZ), Fma(Accumulator(), (2, 3), replace(RZ, random_bits=3)),
            replace(RZ, format="bf16", random_bits=16, random_from="highest")), 4,
    ),
    "flushed": (
        Exact((Products((0, 1, 2, 3)), Accumulator()),
              replace(RZ, random_bits=5, subnormals="signed_zero", tininess="before")), 4,
    ),
}  # fmt: skip


def datapath(name: str, a: str = "bf16", random: str = "u16") -> Datapath:
    tree, step = TREES[name]
    last = Encode(rounding="RNE", random_bits=2) if name == "steps" else None
    product = Product(Encode("e8m13", "RZ", random_bits=7)) if name == "chain" else Product()
    return Datapath(
        a, a, "f32", "f32", 4, tree, step, product=product, result=last, special=Special(code=0x7FC00000),
        random=random,
    )  # fmt: skip


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("a", ["bf16", "e5m2", "f32"])
def test_the_three_interpreters_agree(name: str, a: str) -> None:
    path = datapath(name, a)
    assert kernel(path) == INTERPRETER
    for seed in range(4):
        some = vectors(path, seed, 300)
        d = stages.evaluate(path, some)
        assert (engine.evaluate(path, some) == d).all()
        assert (run_interpreter(path, some) == d).all()
        assert by_oracle(path, some) == d.tolist()


@pytest.mark.parametrize("name", TREES)
def test_no_random_bits_are_what_the_roundings_are_without(name: str) -> None:
    path = datapath(name)
    plain = replace(map_encodes(path, lambda to: replace(to, random_bits=0)), random=None)
    some = vectors(path, 9, 2000)
    none = replace(some, random=np.zeros_like(some.random))
    d = engine.evaluate(plain, replace(some, random=None))
    assert (engine.evaluate(path, none) == d).all()
    assert (engine.evaluate(path, some) != d).any()


def test_random_bits_that_nothing_takes_change_nothing() -> None:
    path = replace(map_encodes(datapath("fused"), lambda to: replace(to, random_bits=0)))
    some = vectors(path, 3, 500)
    without = engine.evaluate(replace(path, random=None), replace(some, random=None))
    assert (engine.evaluate(path, some) == without).all()
    assert (stages.evaluate(path, some) == without).all()


def test_widths_that_hold_the_sum_hold_the_bits_below_its_last_place() -> None:
    """An f64 and a product of two f32 far below it, of which 32 bits below the last place count: 64 bits would gather
    them."""
    to = Encode("f64", "RZ", random_bits=32)
    path = Datapath("f32", "f32", "f64", "f64", 1, Fma(Accumulator(), (0,), to), random="u32")
    path = replace(path, special=Special(code=0x7FF8 << 48))
    some = vectors(path, 5, 4000)
    d = stages.evaluate(path, some)
    assert (engine.evaluate(path, some) == d).all()
    assert by_oracle(path, some.slice(0, 300)) == d[:300].tolist()


@pytest.mark.parametrize("name", TREES)
def test_the_fields_are_written_and_read(name: str) -> None:
    path = datapath(name)
    assert from_table(to_table(path)) == path
    assert to_table(path)["random"] == "u16"


def test_the_neighbours_are_other_functions() -> None:
    path = datapath("fused")
    near = [each for each in neighbours(path) if each.field.startswith("tree.to.r")]
    named = {(each.field.removeprefix("tree.to."), each.value) for each in near}
    assert {("random_bits", bits) for bits in ("0", "12", "14")} | {("random_from", "highest")} < named
    assert ("rounding", "RNE") in named
    some = [vectors(path, seed, 4000) for seed in range(3)]
    for each in near:
        assert any((engine.evaluate(each.datapath, v) != engine.evaluate(path, v)).any() for v in some), each[:2]


def test_all_bits_are_the_highest_and_the_lowest_and_no_more_are_taken() -> None:
    named = {(each.field, each.value) for each in neighbours(datapath("steps"))}
    assert ("tree.to.random_bits", "15") in named
    assert not {("tree.to.random_bits", "17"), ("tree.to.random_from", "lowest")} & named


def test_what_the_record_refuses() -> None:
    with pytest.raises(UsageError, match="random_bits is 9; u8 holds 8"):
        one(replace(HALF, random_bits=9), "u8")
    with pytest.raises(UsageError, match="random_bits is 8; the datapath has no operand of random bits: random"):
        replace(one(), random=None)
    with pytest.raises(UsageError, match="random is 's8'; it must be one of u8, u16, u32"):
        one(HALF, "s8")
    with pytest.raises(UsageError, match="random_bits is -1; it must be a whole number from 0 to 32"):
        replace(HALF, random_bits=-1)
    some = vectors(one(), 0, 3)
    for evaluate in (stages.evaluate, engine.evaluate):
        with pytest.raises(UsageError, match=r"operand random: this datapath takes .*, got no"):
            evaluate(one(), replace(some, random=None))
        with pytest.raises(UsageError, match="operand random: this datapath takes no"):
            evaluate(replace(one(Encode("f16")), random=None), some)
