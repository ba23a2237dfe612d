"""Sums whose alignment cuts in vain are argued to be exact sums, and hold against every vector of narrow formats."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from cases.strategies import vectors
from mmaprobe import formats
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.equivalence.sum_order import canonical
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fused,
    Node,
    Products,
    Special,
    Term,
    walk,
)
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour
from mmaprobe.parameters.table import from_table


def odd_pair(bits: int, c: str = "f32", inner: str = "f32", root: str = "f32", **rules: Any) -> Datapath:
    """A sum of four products, rounded to odd, and c, both cut to odd so many places below the larger, and to odd."""
    products = Exact((Products((0, 1, 2, 3)),), Encode(inner, "RO"))
    terms = tuple(replace(Term(each, bits, "RO"), **rules) for each in (products, Accumulator()))
    special = Special(code=formats.get(root).nan_code or 0)
    return Datapath("bf16", "bf16", c, root, 4, Fused(terms, Encode(root, "RO")), special=special)


def told_apart(one: Datapath, other: Datapath) -> bool:
    return any((np.diff(evaluate_many([one, other], vectors(one, i, 2000)), axis=0) != 0).any() for i in range(3))


@pytest.mark.parametrize(
    "names",
    [("f32", "f32", "f32"), ("bf16", "f32", "f32"), ("f32", "bf16", "bf16"), ("bf16", "bf16", "f32"),
     ("f16", "f32", "f32"), ("f16", "f16", "f16")],
    ids=" ".join,
)  # fmt: skip
def test_what_is_cut_to_odd_and_again_is_cut_once(names: tuple[str, str, str]) -> None:
    c, inner, _ = names
    least = 2 + max(formats.get(name).fraction_bits for name in names)
    alike = formats.get(c).min_exponent == formats.get(inner).min_exponent
    for bits in range(least - 3, least + 3):
        path = odd_pair(bits, *names)
        tree = path.tree
        assert isinstance(tree, Fused)
        assert tree.to is not None
        uncut = replace(path, tree=Add(tree.terms[0].of, tree.terms[1].of, tree.to))
        argued = same_function(path, uncut) is not None
        assert argued is (bits >= least and alike)
        assert not (argued and told_apart(path, uncut))


def test_too_few_places_tell_a_second_cut() -> None:
    path = odd_pair(22)
    tree = path.tree
    assert isinstance(tree, Fused)
    assert tree.to is not None
    assert told_apart(path, replace(path, tree=Add(tree.terms[0].of, tree.terms[1].of, tree.to)))


@pytest.mark.parametrize(
    "rules",
    [{"rounding": "RZ"}, {"zero_exponent": -10}, {"cutoff": 40}, {"sticky_bits": 3}, {"shift_limit": 20},
     {"label_offset": 4}, {"of": Products((0, 1, 2, 3))}],
    ids=str,
)  # fmt: skip
def test_other_terms_are_not_cut_once(rules: dict[str, Any]) -> None:
    plain = odd_pair(26)
    assert isinstance(canonical(plain).tree, Exact)
    tree = plain.tree
    assert isinstance(tree, Fused)
    other = replace(plain, tree=replace(tree, terms=(replace(tree.terms[0], **rules), tree.terms[1])))
    assert isinstance(canonical(other).tree, Fused)
    assert same_function(other, plain) is None


def test_a_label_shown_higher_that_cuts_nothing_is_cut_once() -> None:
    plain = odd_pair(26)
    tree = plain.tree
    assert isinstance(tree, Fused)
    other = replace(plain, tree=replace(tree, terms=(replace(tree.terms[0], label_offset=1), tree.terms[1])))
    assert same_function(other, plain) is not None
    assert not told_apart(other, plain)


@pytest.mark.parametrize(
    ("field", "value"),
    [("tree.complement", "true"), ("tree.carry_bits", "0"), ("tree.to.rounding", "RNE"), ("tree.to.first", "20 RO")],
)
def test_other_sums_are_not_cut_once(field: str, value: str) -> None:
    assert isinstance(canonical(mutate(odd_pair(26), field, value)).tree, Fused)


def test_odd_makes_a_zero_of_zeros_alone() -> None:
    """So no sign of an underflow shows, and beside a sum that is never -0 none of a zero."""
    path = odd_pair(26)
    inner = mutate(path, "tree.terms.0.of.to.zero", "positive")
    for near, field in ((path, "tree.terms.0.of.to.underflow"), (path, "tree.to.underflow"), (inner, "tree.to.zero")):
        changed = mutate(near, field, "positive")
        assert same_function(near, changed) is not None
        assert not told_apart(near, changed)
    nearest = mutate(path, "tree.terms.0.of.to.rounding", "RNE")
    assert same_function(nearest, mutate(nearest, "tree.terms.0.of.to.underflow", "positive")) is None


PAIRS = {
    "a": "f16", "b": "f16", "c": "f32", "d": "f32", "k": 2,
    "tree": {"node": "fused", "fraction_bits": 24, "rounding": "RD", "to": {"zero": "positive"}, "terms": [
        {"of": {"node": "fused", "fraction_bits": 24, "rounding": "RD", "terms": ["0,1"]}}, "c"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ("tree.terms.0.of.fraction_bits=25", True), ("tree.terms.0.of.fraction_bits=none", True),
        ("grouping=groups exact", True), ("tree.terms.0.of.fraction_bits=23", False),
        ("tree.terms.0.of.rounding=RZ", False),
    ],
)  # fmt: skip
def test_a_pair_that_is_floored_again_is_an_exact_pair(change: str, same: bool) -> None:
    path = from_table(PAIRS)
    field, value = change.split("=")
    rival = mutate(path, field, value)
    found = argument(path, Neighbour(field, value, rival))
    assert (found is not None) is same
    answers = [
        (evaluate(path, some) != evaluate(rival, some)).any() for some in (vectors(path, i, 4000) for i in range(5))
    ]
    assert any(answers) is not same


def far_pair(
    bits: int, c: str = "f16", inner: str = "f16", root: str = "f16", to: str = "RNE", **rules: Any
) -> Datapath:
    """The sum of two products, a value of a format, and c, cut so many places below the larger and rounded."""
    terms = tuple(Term(each, bits, **rules) for each in (Exact((Products((0, 1)),), Encode(inner)), Accumulator()))
    special = Special(code=formats.get(root).nan_code or 0)
    return Datapath("e5m2", "e5m2", c, root, 2, Fused(terms, Encode(root, to)), special=special)


def uncut(path: Datapath) -> Datapath:
    """The same with the exact sum of the two."""
    tree = path.tree
    assert isinstance(tree, Fused)
    return replace(path, tree=Exact(tuple(term.of for term in tree.terms), tree.to))


@pytest.mark.parametrize(
    "names",
    [("f16", "f16", "f16"), ("f16", "f16", "f32"), ("bf16", "f32", "f32"), ("e5m2", "e5m2", "f16")],
    ids=" ".join,
)
@pytest.mark.parametrize("rounding", ["RD", "RU", "RO"])
def test_what_is_far_below_is_cut_in_vain_where_the_sum_is_rounded_to_nearest(
    names: tuple[str, str, str], rounding: str
) -> None:
    fraction = [formats.get(name).fraction_bits for name in names]
    least = max(fraction[:2]) + fraction[2] + 4
    for bits, to in product((least - 1, least), ("RNE", "RNA", "RZ", "RU")):
        path = far_pair(bits, *names, to, rounding=rounding)
        argued = same_function(path, uncut(path)) is not None
        assert argued is (bits >= least and to in ("RNE", "RNA"))
        assert not (argued and told_apart(path, uncut(path)))


def test_a_few_places_less_tell_what_is_far_below() -> None:
    path = far_pair(9, rounding="RU")
    assert told_apart(path, uncut(path))


@pytest.mark.parametrize(("zero", "argued"), [(-25, True), (0, True), (1, False), (10, False)])
def test_a_zero_that_cuts_the_least_numbers_is_seen(zero: int, argued: bool) -> None:
    """With 24 bits a zero that shows 2^0 cuts at the last place of the lowest number of f16, and no bit of it."""
    path = far_pair(24, rounding="RD", zero_exponent=zero)
    assert (same_function(path, uncut(path)) is not None) is argued
    assert told_apart(path, uncut(path)) is not argued


@pytest.mark.parametrize(
    ("rules", "names"),
    [({"cutoff": 20}, ()), ({"sticky_bits": 3}, ()), ({"shift_limit": 20}, ()), ({"label_offset": 12}, ()),
     ({}, ("f32", "bf16", "f16")), ({}, ("f16", "f16", "bf16")), ({}, ("f16", "f32", "f32"))],
    ids=str,
)  # fmt: skip
def test_other_sums_are_not_far_below(rules: dict[str, Any], names: tuple[str, ...]) -> None:
    """Other alignments; results that hold fewer values than the terms; terms whose lowest numbers are not alike."""
    assert isinstance(canonical(far_pair(26, *names, **rules)).tree, Fused)


LANES = np.array(list(product(product(range(16), (1, 3, 4, 6)), repeat=2)), np.uint8)
"""Every two products of any number of e2m1 with 0.5, 1.5, 2 and 4: all products there are, but 36 and some signs."""
OTHERS = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x0300, 0x1800, 0x3000, 0xB400, 0x3D55, 0xBD55, 0x4800], np.uint16)
"""Zeros, and numbers of f16 below, among and above the products of two numbers of e2m1."""


EVERY = Batch(*np.tile(LANES, (len(OTHERS), 1, 1)).transpose(2, 0, 1), np.repeat(OTHERS, len(LANES)))

NEAREST = Encode("f16")


def group(
    inner: int, outer: int | None, zero: int | None = None, *, shows: int = 0, own: int | None = None,
    c: int | None = -14, to: Encode = NEAREST, rounding: str = "RD", lanes: tuple[int, ...] = (0, 1),
) -> Datapath:  # fmt: skip
    """Products cut down ``inner`` places below the larger one, and beside c again, ``outer`` places below all."""
    pair: Node = Fused((Term(Products(lanes), inner, rounding, zero),))
    terms = (Term(pair, outer, "RD", own, label_offset=shows), Term(Accumulator(), outer, "RD", c))
    special = Special(code=0x7E00)
    return Datapath("e2m1", "e2m1", "f16", "f16", len(lanes), Fused(terms, to), special=special)


def exactly(path: Datapath) -> Datapath:
    """The same with the exact sum of the products."""
    tree = path.tree
    assert isinstance(tree, Fused)
    return replace(
        path, tree=replace(tree, terms=(replace(tree.terms[0], of=Exact((Products((0, 1)),))), tree.terms[1]))
    )


def differs(one: Datapath, other: Datapath) -> bool:
    """Whether some vector tells the two apart: any two products of e2m1 beside every c of a few."""
    first, second = evaluate_many([one, other], EVERY)
    return bool((first != second).any())


@pytest.mark.parametrize("inner", range(1, 6))
def test_a_group_cut_again_is_its_exact_sum(inner: int) -> None:
    """A product of two numbers of e2m1 has its last place up to three below its label."""
    for outer, zero, shows, own in product((1, 5), (None, -20, 2), (0, 2), (None, -14)):
        path = group(inner, outer, zero, shows=shows, own=own)
        hidden = zero is None or zero + shows <= -14
        argued = same_function(path, exactly(path)) is not None
        expected = inner >= 3 and outer - shows <= inner and hidden
        assert argued or not expected
        assert not (argued and differs(path, exactly(path)))


def test_a_group_that_is_cut_too_early_is_told_apart() -> None:
    for path in (group(3, 5), group(2, 2, shows=3), group(4, 3, 6), group(2, 2), group(3, 3, 2, own=4)):
        told = differs(path, exactly(path))
        assert not (told and same_function(path, exactly(path)) is not None)
    assert differs(group(2, 5), exactly(group(2, 5)))
    assert differs(group(4, 3, 6), exactly(group(4, 3, 6)))


@pytest.mark.parametrize("to", [Encode("f16", "RD"), Encode("f16", "RD", zero="positive"), Encode("f16")], ids=str)
def test_the_sign_of_what_cancels_after_a_cut_is_seen(to: Encode) -> None:
    """What is cut down to -1 cancels with 1, the sum itself is cut to +0: with c = +0 that is -0 or +0."""
    path = group(3, 1, to=to)
    told = to.rounding == "RD" and to.zero != "positive"
    assert differs(path, exactly(path)) is told
    assert (same_function(path, exactly(path)) is None) is told


@pytest.mark.parametrize("zero", [-14, -10, -6, 0, 3])
def test_an_exponent_of_a_zero_inside_may_cut_nothing_more(zero: int) -> None:
    for outer, c in product((2, 6, 12), (None, -14, -8, 1)):
        path, plain = group(4, outer, zero, c=c), group(4, outer, c=c)
        argued = same_function(path, plain) is not None
        assert not (argued and differs(path, plain))


@pytest.mark.parametrize(
    "path",
    [group(5, 3, rounding="RZ"), group(5, 3, lanes=(0, 1, 2, 3)), group(5, None)],
    ids=["toward zero", "four lanes", "uncut"],
)
def test_other_groups_are_cut_twice(path: Datapath) -> None:
    """Cut toward zero, where two are cut; and not cut again."""
    kept = [node for node in walk(canonical(path).tree) if isinstance(node, Fused) and node.to is None]
    assert [term.fraction_bits for node in kept for term in node.terms] == [5]


LOW = np.array(list(product(product((0, 1, 2, 5, 8, 33, 34, 41), (1, 2, 7, 12)), repeat=2)), np.uint8)
"""Every two products of some numbers of e3m2 at the low end with some others."""
LOW_C = np.array([0, 32, 1, 33, 2, 4, 5, 37, 44], np.uint8)
"""Zeros, and numbers at the low end of e3m2."""
LOWEST = Batch(*np.tile(LOW, (len(LOW_C), 1, 1)).transpose(2, 0, 1), np.repeat(LOW_C, len(LOW)))


def beside_c(zero: int | None, bits: int, c: int | None, *, complement: bool, to: Encode, offset: int) -> Datapath:
    """Two products, whose zeros show an exponent or none, beside c, all in numbers of six bits."""
    terms = (
        Term(Products((0, 1)), bits, "RZ", zero),
        Term(Accumulator(), bits, "RZ", c, cutoff=bits + 1, label_offset=offset),
    )
    return Datapath("e3m2", "e3m2", "e3m2", "e3m2", 2, Fused(terms, to, complement=complement), special=Special(code=0))


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("c", [None, -2, -7])
@pytest.mark.parametrize("rules", [("zero", "signed"), ("keep", "positive"), ("keep", "signed")], ids=" ".join)
def test_an_exponent_that_a_zero_shows_for_nothing(complement: bool, c: int | None, rules: tuple[Any, Any]) -> None:
    """Where another term shows more, or no bit lies so low, or nothing that low comes out."""
    argued = told = 0
    for zero, offset in product(range(-12, 1), (0, -2)):
        to = Encode("e3m2", "RD" if zero % 3 == 0 else "RNE", subnormals=rules[0], zero="positive", underflow=rules[1])
        path = beside_c(zero, 3, c, complement=complement, to=to, offset=offset)
        plain = beside_c(None, 3, c, complement=complement, to=to, offset=offset)
        one, other = evaluate_many([path, plain], LOWEST)
        same, apart = same_function(path, plain) is not None, bool((one != other).any())
        assert not (same and apart), (zero, offset)
        argued, told = argued + same, told + apart
    assert told
    assert argued or (complement and c is None and rules == ("keep", "signed"))


def test_zeros_of_two_terms_that_hide_each_other_are_not_both_dropped() -> None:
    path = beside_c(-2, 5, -2, complement=False, to=Encode("e3m2", "RD"), offset=0)
    tree = canonical(path).tree
    assert isinstance(tree, Fused)
    assert [term.zero_exponent for term in tree.terms].count(None) == 1
