"""What says less than a datapath: candidates for the same function, in fewer words."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Fma,
    Fused,
    Product,
    Products,
    Zero,
)
from mmaprobe.parameters.rewrite import map_terms, simpler

SUM = Fused.alike((Accumulator(), Products((0, 1, 2, 3))), 25, "RZ", to=Encode("f32", "RZ", overflow="infinity"))
ONCE = Datapath("f16", "f16", "f32", "f32", 4, SUM)


def test_a_first_cut_is_a_rounding() -> None:
    """Cut to the result's places, or to those of a narrower one, and then rounded by a rule that changes nothing: the
    overflow that the rounding said has to be said on its own."""
    twice = replace(ONCE, tree=replace(SUM, to=Encode("f32", "RNE", first=(23, "RZ"))))
    assert ONCE in simpler(twice)
    narrow = replace(ONCE, tree=replace(SUM, to=Encode("e8m13", "RZ")))
    assert narrow in simpler(replace(ONCE, tree=replace(SUM, to=Encode("f32", "RU", first=(13, "RZ")))))


def test_a_conversion_before_the_last_may_show_nothing() -> None:
    """Rounded to odd and then to nearest is rounded to nearest, with the signs of either."""
    last = Encode("f16", "RNE", zero="positive")
    once = Datapath("f16", "f16", "f16", "f16", 4, replace(SUM, to=last))
    assert once in simpler(replace(once, tree=replace(SUM, to=Encode("f32", "RO")), result=Encode("f16", "RNE")))
    assert once in simpler(replace(once, tree=replace(SUM, to=Encode("f32", "RO", zero="positive"))))


def test_a_chain_of_two_rounded_products_is_a_sum() -> None:
    to = Encode("f32")
    total = Add(Accumulator(), Add(Products((0,)), Products((1,)), to), to)
    path = Datapath("bf16", "bf16", "f32", "f32", 2, total, product=Product(to))
    assert path in simpler(replace(path, tree=Add(Accumulator(), Fma(Zero(), (0, 1), to), to)))


def test_what_is_rounded_already_needs_no_sum_of_its_own() -> None:
    again = replace(ONCE, tree=Fused.alike((SUM,), 25, "RZ", to=Encode("f32", "RZ")))
    assert ONCE in simpler(again)
    assert replace(ONCE, tree=Add(SUM, Zero(), Encode())) in simpler(
        replace(ONCE, tree=Add(again.tree, Zero(), Encode()))
    )


def test_a_truncation_looks_at_no_bit_below_the_last() -> None:
    """How many a rounding looks at is nothing to it; nor is a limit on shifts where none goes so far."""
    for said in ({"sticky_bits": 1}, {"shift_limit": 200}):
        assert ONCE in simpler(map_terms(ONCE, lambda term, said=said: replace(term, **said)))  # type: ignore[misc]


def test_nothing_is_simpler_than_what_says_nothing() -> None:
    assert ONCE not in simpler(ONCE)
    assert simpler(replace(ONCE, tree=replace(SUM, to=Encode("f32", "RNE")))) == []
