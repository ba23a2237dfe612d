"""Sums inside sums: the structure from the probe's tree, and their numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.hypotheses.nested_trees import handed_on
from mmaprobe.derivation.vectors.large_products import adds_up, heavy_vectors
from mmaprobe.derivation.vectors.plain import safe_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.models.engine import evaluate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fma, Fused, Products, Term, walk

FORM = Instruction("test.f16", "test.f16", "test", 16, 16, 8, "f16", "f16", "f32", "f32")
TO = Encode("f32", "RNE")


def add(x: Any, y: Any) -> dict[str, Any]:
    return {"kind": "add", "terms": [x, y]}


def fused(*terms: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "fused", "terms": [*terms], **more}


@pytest.mark.parametrize(
    ("form", "groups", "order"),
    [
        (add(fused(*range(8)), "c"), [(0, 1, 2, 3, 4, 5, 6, 7)], None),
        (add(add(fused(0, 1, 2, 3), "c"), fused(4, 5, 6, 7)), [(0, 1, 2, 3)], None),
        (add(add(fused(4, 5, 6, 7), "c"), fused(0, 1, 2, 3)), [(0, 1, 2, 3)], (4, 5, 6, 7, 0, 1, 2, 3)),
        (add(add(fused(0, 2, 5, 7), "c"), fused(1, 3, 4, 6)), [(0, 1, 2, 3)], (0, 2, 5, 7, 1, 3, 4, 6)),
        (fused(fused(0, 2, 4, 6), fused(1, 3, 5, 7), "c"), [(0, 2, 4, 6), (1, 3, 5, 7)], None),
        (add(fused(fused(0, 3, 5), fused(1, 2, 4, 6, 7)), "c"), [(0, 3, 5), (1, 2, 4, 6, 7)], None),
        (add(fused(fused(0, 1, 2), 3, 4, 5, 6, 7), "c"), [(3, 4, 5, 6, 7), (0, 1, 2)], None),
    ],
    ids=["one sum", "steps", "backwards", "any lanes", "even and odd", "uneven", "some alone"],
)
def test_the_structure_of_a_tree(form: Any, groups: list[tuple[int, ...]], order: tuple[int, ...] | None) -> None:
    found = handed_on(form, 8, True)[0]
    assert list(found.groups) == groups
    assert found.structure.order == order
    tree = found.structure.build(TO)
    lanes = [node.lanes for node in walk(tree) if isinstance(node, Products)]
    assert sorted(lanes) == sorted(groups)
    assert isinstance(tree, Fused)
    assert tree.terms[-1] == Term(Accumulator())


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "fma", "acc": "c", "lanes": [0, 1, 2, 3, 4, 5, 6, 7]},
        fused("c", *range(8)),
        add(add(fused(0, 1, 2), "c"), fused(3, 4, 5, 6, 7)),
        add(add(fused(0, 1, 2), fused(3, 4)), fused(5, 6, 7)),
        add(fused({"kind": "add", "terms": [0, 1]}, *range(2, 8)), "c"),
        fused(fused(0, 1, 2, 3), fused(4, 5, 6, 7), "c", lossless=True),
        {"kind": "unknown", "terms": ["c", *range(8)]},
    ],
    ids=["chain", "one sum", "unequal steps", "no c", "rounded pair", "lossless", "unknown"],
)
def test_other_trees_are_none_of_its_business(form: Any) -> None:
    assert handed_on(form, 8, True) == []


def device(groups: list[tuple[int, ...]], step: int, seed: int, apart: bool) -> Datapath:
    """An invented unit: groups cut to so many bits, their sum to more where it is handed on once more, then C joins."""
    rng = random.Random(seed)
    bits, mode = rng.randint(18, 26), rng.choice(["RZ", "RD"])
    inner = [Fused.alike((Products(lanes),), bits, mode) for lanes in groups]
    whole = (Fused.alike(inner, 25, "RD"),) if apart else inner
    terms = (*(Term(node, 27, "RD") for node in whole), Term(Accumulator(), rng.randint(24, 27), "RD"))
    tree = Fused(terms, replace(TO, first=(29, "RZ")))
    order = tuple(rng.sample(range(8), 8))
    return Datapath("f16", "f16", "f32", "f32", 8, tree, step if step < 8 else 0, order)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("groups", "step", "apart"),
    [([(0, 1, 2, 3)], 4, False), ([(0, 2, 4, 6), (1, 3, 5, 7)], 8, True), ([(0, 1, 2), (3, 4, 5, 6, 7)], 8, True)],
    ids=["one group", "two groups", "uneven groups"],
)
def test_invented_sums_in_sums_are_read_off(groups: list[tuple[int, ...]], step: int, apart: bool, seed: int) -> None:
    """Whatever lanes are in a group: the tree of the probe, then numbers that agree on 20,000 plain vectors."""
    path = device(groups, step, seed, apart)
    derivation = derive(DatapathDevice(FORM, path), FORM, seed=seed)
    assert derivation.datapath is not None
    vectors = safe_vectors(FORM, seed + 99, 20_000)
    assert (evaluate(derivation.datapath, vectors) == evaluate(path, vectors)).all()
    assert derivation.launches < 50


def test_heavy_products_show_the_roundings_that_narrow_ones_hide() -> None:
    """A chain and an exact sum of e2m1 products differ in large sums alone; wider formats need no such vectors."""
    narrow = replace(FORM, k=32, a="e2m1", b="e2m1", c="f16", d="f16")
    assert adds_up(narrow)
    assert not adds_up(FORM)
    to, lanes = Encode("f16", "RNE"), tuple(range(32))
    chain = Datapath("e2m1", "e2m1", "f16", "f16", 32, Fma(Accumulator(), lanes, to))
    exact = replace(chain, tree=Exact((Accumulator(), Products(lanes)), to))
    vectors = [replace(each, c=0 * each.c) for each in (heavy_vectors(narrow, 0, 500), safe_vectors(narrow, 0, 500))]
    heavy, safe = ((evaluate(chain, each) != evaluate(exact, each)).mean() for each in vectors)
    assert heavy > 0.2
    assert safe < 0.02
