"""Operands in parts of a narrower format: parts, products of parts and their sums, each rule by hand."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

import oracle
from cases.strategies import vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Product,
    Products,
    Special,
    Split,
    Term,
    Zero,
)
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.report.datapath.explain import text
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.datapath.tree import datapath_text
from second_source.by_hand import raw

THREE = Split("bf16", ("02", "11", "20", "01", "10", "00"))
LIBRARY = Split("tf32", ("01", "10", "00"), "RNA", "apart", "parts")
INFINITE, NAN = 0x7F800000, 0x7FFFFFFF


def f32(value: float) -> int:
    return int.from_bytes(struct.pack(">f", value), "big")


def one(split: Split | None, bits: int | None = 30, k: int = 1) -> Datapath:
    """So many f32 products and c, cut at these bits, to f32."""
    terms = (Term(Products(tuple(range(k))), bits), Term(Accumulator(), bits))
    return Datapath("f32", "f32", "f32", "f32", k, Fused(terms, Encode(rounding="RZ")), product=Product(split=split))


@pytest.mark.parametrize(
    ("pairs", "rounding", "a", "b", "d"),
    [
        ("00", "RNE", 1 + 2**-7 + 2**-9, 1, 1 + 2**-7),
        ("00", "RNE", 1 + 2**-8, 1, 1),  # a tie
        ("00", "RNA", 1 + 2**-8, 1, 1 + 2**-7),
        ("00", "RZ", -1 - 2**-8 - 2**-20, 1, -1),
        ("00 10", "RNA", 1 + 2**-8, 1, 1 + 2**-8),  # what is left is -2^-8
        ("00 10", "RNE", 1 + 2**-8 + 2**-14, 1, 1 + 2**-8 + 2**-14),  # and here -(2^-8 - 2^-14)
        ("00 10", "RZ", 1 + 2**-8 + 2**-17, 1, 1 + 2**-8),
        ("00 10 20", "RZ", 1 + 2**-8 + 2**-17, 1, 1 + 2**-8 + 2**-17),
        ("00 01", "RZ", 1, 1 + 2**-8 + 2**-17, 1 + 2**-8),
        ("00 11", "RZ", 1 + 2**-8, 1 + 2**-9, 1 + 2**-17),
        ("00 01 10", "RZ", 1 + 2**-8, 1 + 2**-9, 1 + 2**-8 + 2**-9),  # a_1 b_1 is not there
    ],
)
def test_products_of_parts_are_terms(pairs: str, rounding: str, a: float, b: float, d: float) -> None:
    path = one(Split("bf16", tuple(pairs.split()), rounding))
    assert raw(path, [f32(a)], [f32(b)], 0) == f32(d)


def test_each_is_cut_by_itself() -> None:
    """2^-8 times 1, and 1 times 2^-8 of two lanes: each is cut at 7 bits, and lost."""
    a, b = [f32(1), f32(1 + 2**-8)], [f32(1), f32(1)]
    split = Split("bf16", ("00", "10"), "RZ")
    assert raw(one(split, 7, 2), a, b, 0) == f32(2)
    assert raw(one(split, 8, 2), a, b, 0) == f32(2 + 2**-8)


def test_a_part_below_the_range_is_a_subnormal_of_its_format() -> None:
    path = one(Split("bf16", ("00",), "RZ"), None)
    assert raw(path, [0x00018001], [f32(1)], 0) == 0x00010000
    path = one(Split("bf16", ("00", "10"), "RZ"), None)
    assert raw(path, [0x00018001], [f32(1)], 0) == 0x00010000  # 0x8001 is below the last place, and stays so


@pytest.mark.parametrize(
    ("infinities", "a", "b", "d"),
    [
        ("whole", INFINITE, f32(3), INFINITE),
        ("parts", INFINITE, f32(3), NAN),  # infinity - infinity
        ("whole", INFINITE, f32(-1 - 2**-9), INFINITE | 1 << 31),
        ("whole", INFINITE, 0, NAN),
        ("whole", NAN, f32(1), NAN),
        ("parts", f32(1), NAN, NAN),
        ("whole", 0x7F7FFFFF, f32(1), INFINITE),  # rounded up to one
        ("parts", 0x7F7FFFFF, f32(1), NAN),
    ],
)
def test_infinities_and_nans(infinities: str, a: int, b: int, d: int) -> None:
    split = replace(THREE, infinities=infinities)  # type: ignore[arg-type]
    assert raw(one(split), [a], [b], 0) == d
    assert raw(one(replace(split, added="apart")), [a], [b], 0) == d


@pytest.mark.parametrize(
    ("pairs", "added", "d"),
    [
        ("10 00", "apart", 1 + 2**-15 + 2**-22),  # 2^-24 is a tie with an even 1, twice
        ("10 00", "together", 1 + 2**-15 + 2**-22 + 2**-23),  # the second with an odd 1 + 2^-16 + 2^-23
        ("00 10", "apart", 1 + 2**-15 + 2**-22),  # two ties with an even sum
        ("00 10", "together", 1 + 2**-15 + 2**-21),  # two ties with odd sums
    ],
)
def test_a_chain_rounds_after_each_in_order(pairs: str, added: str, d: float) -> None:
    """Two lanes of (1 + 2^-7) 2^-16 and 2^-24 onto 1: lane after lane, or all first ones first, as a library does."""
    split = Split("bf16", tuple(pairs.split()), "RZ", added)  # type: ignore[arg-type]
    chain = Fma(Accumulator(), (0, 1), Encode(rounding="RNE"))
    path = Datapath("f32", "f32", "f32", "f32", 2, chain, product=Product(split=split))
    assert raw(path, [f32(1 + 2**-7 + 2**-8)] * 2, [f32(2**-16)] * 2, f32(1)) == f32(d)


PATHS = {
    "together": one(THREE, 27, 4),
    "apart": replace(one(LIBRARY, 25, 4), step=0),
    "chain": Datapath(
        "f32", "bf16", "f32", "f32", 3, Fma(Zero(), (2, 0, 1), Encode(rounding="RNE")), 3,
        product=Product(split=Split("tf32", ("10", "00")), label="operands"),
        special=Special("local", priority=("b", "a", "acc")),
    ),
    "steps": Datapath(
        "f32", "f32", "f32", "f32", 4, Exact((Products((1, 0)), Accumulator()), Encode(rounding="RD")), 2, (3, 1, 0, 2),
        product=Product(split=replace(LIBRARY, rounding="RZ")),
        special=Special("cause", code=0x7FC00000, factor_code=0x7FC00001),
    ),
    "added": Datapath(
        "f32", "f32", "f32", "f32", 4,
        Add(Add(Products((2,)), Products((0,)), Encode()), Fma(Products((1,)), (3,), Encode()), Encode()),
        product=Product(split=THREE),
    ),
    "rounded": Datapath(
        "f16", "e5m2", "f32", "f32", 2, Add(Exact((Products((0, 1)),), Encode()), Accumulator(), Encode()),
        product=Product(Encode("f16"), "normalised", missing_columns=1, split=Split("e5m2", ("00", "21", "10"), "RNZ")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_the_three_interpreters_agree(name: str) -> None:
    path = PATHS[name]
    for seed in range(4):
        some = vectors(path, seed, 300)
        d = stages.evaluate(path, some)
        assert (engine.evaluate(path, some) == d).all()
        rows = zip(some.a.tolist(), some.b.tolist(), some.c.tolist(), strict=True)  # type: ignore[union-attr]
        assert [oracle.evaluate(to_table(path), *row) for row in rows] == d.tolist()


@pytest.mark.parametrize("name", PATHS)
def test_the_fields_are_written_read_and_said(name: str) -> None:
    path = PATHS[name]
    assert from_table(to_table(path)) == path
    assert to_table(path)["product"]["split"]["pairs"] == " ".join(path.product.split.pairs)  # type: ignore[union-attr]
    assert path.product.split is not None
    assert f"parts in {path.product.split.format}" in meaning(path)
    assert "parts in" in datapath_text(path)
    some = vectors(path, 1, 1)
    assert "a0·b0" in text(path, some) or "lane" in text(path, some)


def test_an_explanation_names_the_parts() -> None:
    path = one(Split("bf16", ("10", "00"), "RZ"))
    said = text(
        path, Batch(np.array([[f32(1 + 2**-8)]], np.uint32), np.array([[f32(1)]], np.uint32), np.zeros(1, np.uint32))
    )
    assert "a0.1·b0.0" in said
    assert "a0.0·b0.0" in said


def test_the_neighbours_of_the_fields_are_other_functions_and_no_argument_claims_more() -> None:
    path = one(replace(THREE, rounding="RZ", added="apart", infinities="parts"), 25, 2)
    near = [each for each in neighbours(path) if each.field.startswith("product.split")]
    assert {each.field.rpartition(".")[2] for each in near} == {
        "split",
        "format",
        "pairs",
        "rounding",
        "added",
        "infinities",
    }
    some = [vectors(path, seed, 6000) for seed in range(6)]
    same = [
        (each.field, each.value)
        for each in near
        if not any((engine.evaluate(each.datapath, v) != engine.evaluate(path, v)).any() for v in some)
    ]
    assert same == []
    assert not any(argument(path, each) for path in PATHS.values() for each in neighbours(path))


def test_products_are_shared_by_datapaths_that_form_them_alike_alone() -> None:
    some = vectors(PATHS["together"], 11, 2000)
    other = replace(THREE, pairs=("00", "01", "10", "11", "02", "20"))
    splits = [None, THREE, replace(THREE, rounding="RZ"), replace(THREE, format="tf32"), THREE, other]
    splits += [replace(THREE, infinities="parts"), None]
    every = [one(split, 27, 4) for split in splits]
    table = engine.evaluate_many(every, some)
    assert all((row == engine.evaluate(path, some)).all() for row, path in zip(table, every, strict=True))


def test_what_the_record_refuses() -> None:
    with pytest.raises(UsageError, match="format of split is f16, which has not the range of f32"):
        one(Split("f16", ("00",)))
    with pytest.raises(UsageError, match="format of split is e4m3; it must be a float with infinities"):
        Split("e4m3", ("00",))
    with pytest.raises(UsageError, match="rounding of split is 'RU'; it must be one of RZ, RNE"):
        Split("bf16", ("00",), "RU")
    with pytest.raises(UsageError, match="pairs are 01 10; 00 must be one of them"):
        Split("bf16", ("01", "10"))
    with pytest.raises(UsageError, match="pairs are 00 00; 00 must be one of them, none may be twice"):
        Split("bf16", ("00", "00"))
    with pytest.raises(UsageError, match="a pair is '05'"):
        Split("bf16", ("00", "05"))
