"""Formats between a sum and its conversion, and steps, that change nothing: argued, and held against narrow formats."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases.strategies import vectors
from mmaprobe import formats
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.conversions import rounded_alike
from mmaprobe.equivalence.repeated_cuts import cut_between
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.models.engine import evaluate_many
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
    Products,
    Special,
    Term,
)
from mmaprobe.parameters.moves import moved
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour

FEW = 16
"""Codes of a second operand beside every code of the first one and of C."""


def one_product(name: str, to: Encode, node: str = "exact", c: str = "") -> Datapath:
    """The exact sum of a product and C, rounded once."""
    trees: dict[str, Node] = {
        "exact": Exact((Products((0,)), Accumulator()), to),
        "add": Add(Accumulator(), Products((0,)), to),
        "fma": Fma(Accumulator(), (0,), to),
    }
    special = Special(code=formats.get(to.format).nan_code or 0)
    return Datapath(name, name, c or to.format, to.format, 1, trees[node], special=special)


def every(path: Datapath) -> Batch:
    """Every a and c, of eight bits or a part of more, with some b of all sizes."""
    a, b, c = (
        np.unique(
            np.linspace(0, (1 << fmt.bits) - 1, min(1 << fmt.bits, most)).astype(
                np.uint8 if fmt.bits <= 8 else np.uint16
            )
        )
        for fmt, most in ((formats.get(path.a), 256), (formats.get(path.b), FEW), (formats.get(path.c or ""), 512))
    )
    chosen = np.array(list(product(range(a.size), range(b.size), range(c.size))), np.int64)
    return Batch(a[chosen[:, :1]], b[chosen[:, 1:2]], c[chosen[:, 2]])


def differs(one: Datapath, other: Datapath, pool: Batch) -> bool:
    first, second = evaluate_many([one, other], pool)
    return bool((first != second).any())


def through(path: Datapath, between: str) -> Datapath:
    """The same with the sum rounded to another format first."""
    tree: Any = path.tree
    return replace(path, tree=replace(tree, to=replace(tree.to, format=between)), result=tree.to)


@pytest.mark.parametrize("node", ["exact", "add", "fma"])
@pytest.mark.parametrize(("name", "least"), [("e2m1", 9), ("e2m3", 17)])
@pytest.mark.parametrize("rules", [{}, {"subnormals": "zero"}, {"rounding": "RNA"}], ids=str)
def test_a_product_and_c_rounded_twice_to_nearest(name: str, least: int, node: str, rules: dict[str, Any]) -> None:
    """To four bits by way of more: products of four bits need 4 + 4 + 1, those of eight all down to C's last place."""
    path = one_product(name, replace(Encode("e4m3ieee"), **rules), node)
    pool, told = every(path), 0
    for bits in range(5, 20):
        other = through(path, f"e6m{bits - 1}ieee")
        argued, apart = rounded_alike(path, other), differs(path, other, pool)
        assert argued is (bits >= least)
        assert not (argued and apart)
        told += apart
    assert told


def test_too_few_bits_between_are_told() -> None:
    path = one_product("e4m3", Encode("e5m2"))
    other = moved(path, "between", "bf16")
    assert not rounded_alike(path, other)
    assert differs(path, other, every(path))


@pytest.mark.parametrize("subnormals", ["keep", "zero", "signed_zero"])
@pytest.mark.parametrize("tininess", ["before", "after", "encoded"])
def test_rounded_twice_in_one_direction_or_to_odd(subnormals: Any, tininess: Any) -> None:
    for rounding in ("RZ", "RO", "RU", "RD", "RA", "RNE"):
        to = Encode("e5m2", rounding, subnormals=subnormals, tininess=tininess)
        path = one_product("e3m2", to)
        other = moved(path, "between", "bf16")
        argued = rounded_alike(path, other)
        outward = subnormals != "keep" and tininess == "before"
        assert argued is (rounding in ("RZ", "RO") or (rounding in ("RU", "RD") and not outward))
        assert not (argued and differs(path, other, every(path))), rounding


def test_what_overflows_in_any_case_need_not_be_held() -> None:
    """Products of e5m2 reach 2^33 and 2^-32; f64 holds all sums below 2^16, the end of f16."""
    tree = Exact((Accumulator(), Products((0, 1))), Encode("f16"))
    path = Datapath("e5m2", "e5m2", "f16", "f16", 2, tree, special=Special(code=0x7E00))
    assert rounded_alike(path, moved(path, "between", "f64"))
    assert not rounded_alike(path, moved(path, "between", "f32"))
    for seed in range(3):
        assert not differs(path, moved(path, "between", "f64"), vectors(path, seed, 4000))


def accumulate(bits: int, c: str = "RZ", zero: int | None = None, **to: Any) -> Datapath:
    """Four products, one a step, beside what the steps before left, in f16."""
    terms = (Term(Products((0,)), bits, "RZ"), Term(Accumulator(), bits, c, zero))
    tree = Fused(terms, replace(Encode("f16", "RZ"), **to))
    return Datapath("e2m1", "e2m1", "e2m1", "f16", 4, tree, step=1, special=Special(code=0x7E00))


@pytest.mark.parametrize(
    ("path", "argued"),
    [
        (accumulate(10), True), (accumulate(6), True), (accumulate(6, zero=-3), True), (accumulate(11), False),
        (accumulate(10, "RU"), False), (accumulate(10, rounding="RD"), False),
        (accumulate(10, first=(12, "RZ")), False),
    ],
    ids=["ten", "six", "zero", "eleven", "C up", "down", "first"],
)  # fmt: skip
def test_bits_that_the_next_step_cuts_off(path: Datapath, argued: bool) -> None:
    for between in ("f32", "f64"):
        other = moved(path, "between", between)
        assert cut_between(path, other) is argued
        pools = [vectors(path, seed, 4000) for seed in range(4)]
        assert not (argued and any(differs(path, other, pool) for pool in pools))
    assert not cut_between(path, moved(path, "between", "bf16"))


def test_one_place_more_is_seen_in_the_next_step() -> None:
    """1.5 and 2^-11 times 1.5 are kept whole by a wider format, and added to another such product."""
    tree = accumulate(12).tree
    path = replace(accumulate(12), a="e4m3", b="e4m3", c="e4m3", tree=tree)
    other = moved(path, "between", "f32")
    assert any(differs(path, other, vectors(path, seed, 8000)) for seed in range(8))
    assert not cut_between(path, other)


@pytest.mark.parametrize(
    ("bits", "zero", "argued"),
    [(10, None, False), (10, -14, False), (2, None, True), (2, -14, True), (2, -10, False), (1, None, False)],
)
def test_sums_below_the_lowest_normal_may_show_another_label(bits: int, zero: int | None, argued: bool) -> None:
    """Steps in f16's range with two fraction bits: beside a product of e2m1 what is below 2^-14 is cut to zero."""
    path = replace(accumulate(bits, zero=zero), c="f16" if bits > 2 else "e5m2")
    tree: Any = path.tree
    narrow = "f16" if bits > 2 else "e5m2"
    path = replace(path, d=narrow, tree=replace(tree, to=replace(tree.to, format=narrow)), special=Special(code=0x7F))
    other = moved(path, "between", "f32")
    assert cut_between(path, other) is argued
    assert not (argued and any(differs(path, other, vectors(path, seed, 20_000)) for seed in range(6)))


def test_products_that_reach_the_largest_value_may_overflow_between() -> None:
    path = replace(accumulate(2), a="e5m2", b="e5m2", c="e5m2", d="e5m2", special=Special(code=0x7F))
    tree: Any = path.tree
    path = replace(path, tree=replace(tree, to=replace(tree.to, format="e5m2")))
    assert not cut_between(path, moved(path, "between", "f32"))


@pytest.mark.parametrize(("d", "argued"), [("f16", True), ("e5m8ieee", True), ("e5m2", False), ("e4m7ieee", False)])
@pytest.mark.parametrize("rounding", ["RNE", "RD"])
def test_a_sum_inside_that_loses_nothing_is_no_group(d: str, argued: bool, rounding: str) -> None:
    """One product of e3m2 has six bits, and is 784 at most."""
    to = Encode(d, rounding)
    path = one_product("e3m2", to)
    after = replace(path, tree=Add(Exact((Products((0,)),), to), Accumulator(), to))
    assert (same_function(path, after) is not None) is argued
    assert differs(path, after, every(path)) is not argued


def test_signs_of_zeros_and_nans_tell_a_sum_inside() -> None:
    to = Encode("f16", "RNE")
    path = replace(one_product("e3m2", to), c="f16", d="f16")
    for inner, special in (
        (Encode("f16", "RNE", zero="positive"), path.special),
        (to, Special("local", 0x7E00, ("acc", "a", "b"))),
    ):
        own = replace(path, special=special)
        after = replace(own, tree=Add(Exact((Products((0,)),), inner), Accumulator(), to))
        assert same_function(own, after) is None


def converted(to: str = "RZ", inner: str = "RNE", **rules: Any) -> Datapath:
    """The sum of a product and C in f16, and that in three bits."""
    tree = Exact((Exact((Products((0,)), Accumulator()), Encode("f16", inner, **rules)),), Encode("e5m2", to))
    return Datapath("e4m3", "e4m3", "f16", "e5m2", 1, tree, special=Special(code=0x7F))


@pytest.mark.parametrize("to", ["RZ", "RU", "RD", "RO", "RNE"])
@pytest.mark.parametrize("rules", [{}, {"subnormals": "zero"}, {"overflow": "infinity"}], ids=str)
def test_a_tie_before_a_cut_to_fewer_bits(to: str, rules: dict[str, Any]) -> None:
    path = converted(to, **rules)
    field = "tree.terms.0.to.rounding"
    other = mutate(path, field, "RNA")
    found = argument(path, Neighbour(field, "RNA", other))
    assert (found is not None) is (to == "RZ")
    assert not (found is not None and differs(path, other, ties(path)))


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_tie_inside_a_chain_is_added_to(lanes: int) -> None:
    """Only the last link of a chain is rounded again; a tie before it is a place in what the next one adds to."""
    inner = Fma(Accumulator(), tuple(range(lanes)), Encode("f16"))
    path = replace(converted(), k=lanes, tree=Exact((inner,), Encode("e5m2", "RZ")))
    field = "tree.terms.0.to.rounding"
    other = mutate(path, field, "RNA")
    assert (argument(path, Neighbour(field, "RNA", other)) is not None) is (lanes == 1)
    told = Batch(*(np.array([each], np.uint8) for each in ([0x05, 0xC3], [0xFB, 0x99])), np.array([0xC6C1], np.uint16))
    some = Batch(told.a[:, :lanes], told.b[:, :lanes], told.c)
    assert differs(path, other, some) is (lanes == 2)


def ties(path: Datapath) -> Batch:
    """C of f16 in every binade and what is half its last place, or near."""
    a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.array([0x38, 0x08, 0x01, 0x77, 0x81], np.uint8))
    c = np.arange(0, 1 << 16, 7, dtype=np.uint16)
    rng = np.random.default_rng(1)
    chosen = rng.integers(a.size, size=400_000)
    return Batch(a.ravel()[chosen, None], b.ravel()[chosen, None], rng.choice(c, chosen.size))


def test_a_tie_shows_where_the_next_cut_is_not_toward_zero() -> None:
    path = converted("RU")
    assert differs(path, mutate(path, "tree.terms.0.to.rounding", "RNA"), ties(path))


@pytest.mark.parametrize("underflow", ["positive", "signed"])
def test_a_flush_to_zero_or_to_a_zero_of_its_sign(underflow: Any) -> None:
    path = one_product("e3m2", Encode("f16", subnormals="zero", underflow=underflow))
    other = mutate(path, "tree.to.subnormals", "signed_zero")
    found = argument(path, Neighbour("tree.to.subnormals", "signed_zero", other))
    assert (found is not None) is (underflow == "positive")
    assert differs(path, other, every(path)) is (underflow == "signed")
