"""Structures made from a summation tree have that tree, whatever kinds of sums they are made of."""

from __future__ import annotations

from typing import Any

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.structures import Structure
from mmaprobe.derivation.hypotheses.tree_structures import structures_of
from mmaprobe.parameters.datapath import Encode, Fused, walk
from second_source.findings import claimed, shape, sums


def chain(acc: Any, *lanes: int) -> dict[str, Any]:
    return {"kind": "fma", "acc": acc, "lanes": list(lanes)}


def add(*terms: Any) -> dict[str, Any]:
    return {"kind": "add", "terms": list(terms)}


def fused(*terms: Any) -> dict[str, Any]:
    return {"kind": "fused", "terms": list(terms)}


TREES = {
    "a chain, remainders modulo 3": (chain("c", 0, 3, 1, 4, 2, 5), 6, 1),
    "steps of two, backwards": (fused(fused(fused("c", 4, 5), 2, 3), 0, 1), 6, 2),
    "steps of other sizes": (fused(fused("c", 4, 5, 3), 0, 1, 2), 6, 3),
    "steps that do not add alike": (fused(fused("c", 4, 5, 3, 2), 0, 1), 6, 6),
    "a tree over neighbours, then c": (add(add(add(0, 1), add(2, 3)), "c"), 4, 4),
    "a tree of four, step after step": (add(add(add(0, 1), add(2, 3)), add(add(add(4, 5), add(6, 7)), "c")), 8, 4),
    "even and odd groups": (fused(fused(0, 2, 4), fused(1, 3, 5), "c"), 6, 6),
    "groups of other sizes": (fused(fused(0, 1, 2), 3, "c"), 4, 4),
    "aligned sums of steps, c last": (add(fused(fused(0, 1, 2), 3, 4, 5), "c"), 6, 6),
    "a chain from zero, no c": (chain(add(0, 1), 2, 3), 4, 4),
}


def structures(name: str) -> tuple[Any, Instruction, int, list[Structure]]:
    answer, k, step = TREES[name]
    c = "f32" if "c" in str(answer).replace("acc", "") else None
    instruction = Instruction("test", "test", "test", 8, 8, k, "f16", "f16", c, "f32")
    return answer, instruction, step, list(structures_of(answer, k))


@pytest.mark.parametrize("name", TREES)
def test_every_structure_has_the_tree(name: str) -> None:
    answer, instruction, step, found = structures(name)
    assert found
    assert len({each.name for each in found}) == len(found)
    for each in found:
        path = grammar.build(instruction, each, Encode("f32", "RZ"))
        assert claimed(answer) == shape(sums(path)), each.name
        assert path.step in (step, 0)
        assert each.fused == any(isinstance(node, Fused) for node in walk(path.tree))


def test_trees_that_are_none_give_no_structures() -> None:
    assert not list(structures_of(0, 1))
    assert not list(structures_of({"kind": "unknown", "terms": ["c", 0, 1]}, 2))
    assert not list(structures_of(fused("c", 0, {"kind": "exact", "terms": [1, 2]}), 3))
    assert not list(structures_of(fused("c", 0, 1), 4))


@pytest.mark.long
def test_long_chains_are_ordered_at_once() -> None:
    """A chain of 256 lanes, then C: each sum is looked at once, not once for each sum around it."""
    found = list(structures_of(add(chain(add(0, 1), *range(2, 256)), "c"), 256))
    assert {each.step for each in found} == {256}
