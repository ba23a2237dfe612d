"""What is argued of roundings by random bits holds whatever these are; what rests on a rounding alone is not argued."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.strategies import vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.checker import RULES, WHATEVER_RANDOM_BITS, Argument, refute
from mmaprobe.equivalence.record_rules import IDENTITIES
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.models.engine import evaluate_many
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
    Term,
    Zero,
)
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.parameters.rewrite import map_encodes

BY_BITS = Encode(rounding="RZ", zero="positive", random_bits=9)
FLUSHED = replace(BY_BITS, subnormals="signed_zero", tininess="before", zero="ieee")
TREES: dict[str, Node] = {
    "fused": Fused.alike((Products((0, 1)), Accumulator()), 27, "RZ", -133, BY_BITS),
    "two cuts": Fused(
        (Term(Fused.alike((Products((0, 1)),), 24, "RD"), 30, "RD"), Term(Accumulator(), 24, "RD", -126)), BY_BITS
    ),
    "exact": Exact((Products((0, 1)), Accumulator()), FLUSHED),
    "chain": Fma(Zero(), (0, 1), BY_BITS),
    "halves": Add(Exact((Products((0, 1)),), replace(BY_BITS, rounding="RO")), Accumulator(), FLUSHED),
    "odd": Fused.alike(
        (Exact((Products((0, 1)),), BY_BITS), Accumulator()), 40, "RO", to=replace(BY_BITS, rounding="RO")
    ),
    "down": Exact((Products((0, 1)), Accumulator()), replace(FLUSHED, rounding="RD", tininess="after")),
}


def datapath(name: str, a: str, last: Encode | None = None) -> Datapath:
    return Datapath(
        a, a, "f32", "f32", 2, TREES[name], result=last, special=Special(code=0x7FC00000), random="u16"
    )  # fmt: skip


@pytest.mark.sampled(7)
@pytest.mark.parametrize("a", ["e4m3", "bf16", "f32"])
@pytest.mark.parametrize("name", TREES)
def test_neighbours_called_equivalent_are(name: str, a: str) -> None:
    for path in (datapath(name, a), datapath(name, a, replace(BY_BITS, random_bits=5))):
        same = [n for n in neighbourhood(path) if argument(path, n)]
        for seed in range(3):
            first, *others = evaluate_many([path, *(n.datapath for n in same)], vectors(path, seed, 3000))
            for each, answers in zip(same, others, strict=True):
                assert (answers == first).all(), (each.field, each.value, argument(path, each))


def test_what_rests_on_the_rounding_is_argued_without_random_bits_alone() -> None:
    """Truncated, a tiny value stays tiny; by random bits it may become the lowest normal."""
    path = replace(
        datapath("exact", "bf16"), tree=Exact((Products((0, 1)), Accumulator()), replace(FLUSHED, tininess="after"))
    )
    near = mutate(path, "tree.to.tininess", "encoded")
    bare = [map_encodes(each, lambda to: replace(to, random_bits=0)) for each in (path, near)]
    found = argument(bare[0], Neighbour("tree.to.tininess", "encoded", bare[1]))
    assert found is not None
    assert found.rule == "rounds inward"
    assert argument(path, Neighbour("tree.to.tininess", "encoded", near)) is None


def test_rounded_twice_is_rounded_once_without_random_bits_alone() -> None:
    narrow = replace(BY_BITS, format="bf16", zero="ieee", random_bits=3)
    once = Datapath("bf16", "bf16", "bf16", "bf16", 2, Exact((Products((0, 1)), Accumulator()), narrow), random="u16",
                    special=Special(code=0x7FC0))  # fmt: skip
    twice = replace(once, tree=Exact((Products((0, 1)), Accumulator()), replace(narrow, format="tf32")), result=narrow)
    bare = [map_encodes(path, lambda to: replace(to, random_bits=0)) for path in (once, twice)]
    assert same_function(*bare) is not None
    assert same_function(once, twice) is None
    some = vectors(once, 1, 4000)
    first, second = evaluate_many([once, twice], some)
    assert (first != second).any()


def test_the_checker_takes_no_other_rule_for_them() -> None:
    path = datapath("fused", "bf16")
    near = mutate(path, "tree.to.overflow", "infinity")
    for rule in (*RULES, *IDENTITIES):
        said = refute(path, near, Argument(rule, "tree.to"))
        assert (said == f"{rule} says nothing of roundings by random bits") == (rule not in WHATEVER_RANDOM_BITS)
    assert {*RULES, *IDENTITIES} >= WHATEVER_RANDOM_BITS


def test_a_rounding_of_what_it_holds_takes_no_bits() -> None:
    """Products of e2m1 fit f16: it does not matter how many random bits their rounding takes; it does of the sum's."""
    path = Datapath(
        "e2m1", "e2m1", "f32", "f32", 2, Exact((Products((0, 1)), Accumulator()), BY_BITS),
        product=Product(Encode("f16", random_bits=4)), random="u16", special=Special(code=0x7FC00000),
    )  # fmt: skip
    for value in ("3", "5", "0"):
        found = argument(
            path, Neighbour("product.to.random_bits", value, mutate(path, "product.to.random_bits", value))
        )
        assert found is not None
        assert found.rule in ("products fit", "never rounds")
    other = mutate(path, "tree.to.random_bits", "8")
    assert argument(path, Neighbour("tree.to.random_bits", "8", other)) is None
