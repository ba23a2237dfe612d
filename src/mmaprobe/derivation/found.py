"""Structures from the probes' summation tree: what the values showed, spelled in the ways that values cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mmaprobe.derivation.structures import ACC, Structure
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Add, Encode, Exact, Fma, Fused, Node, Products, Term, Zero

Tree = Any
"""The answer of the summation tree question: ``probing.summation_tree`` defines its form."""


def found_structures(finding: Finding | None, k: int, has_c: bool) -> list[Structure]:
    """The structures that a finding describes; none where it is not sure of the whole tree."""
    if finding is None or finding.status not in ("exact", "bounded") or not isinstance(finding.answer, dict):
        return []
    tree = finding.answer
    kinds = set(_kinds(tree))
    if "unknown" in kinds:
        return []
    if kinds & {"fused", "exact"}:
        return list(_fused(tree, k))
    return list(_binary(tree, k))


def _kinds(tree: Tree) -> Iterator[str]:
    if isinstance(tree, dict):
        yield tree["kind"]
        for part in (*tree.get("terms", ()), tree.get("acc")):
            yield from _kinds(part)


def _binary(tree: Tree, k: int) -> Iterator[Structure]:
    """Chains and additions: products exact or rounded, a chain's first sum plain or begun at zero."""
    for zero in (True, False):
        kind = " from zero" if zero else ""
        yield Structure(f"the tree found{kind}", k, lambda to, z=zero: _node(tree, to, z))  # type: ignore[misc]
    yield Structure("the tree found, products rounded", k, lambda to: _adds(tree, to), rounded=True)


def _node(tree: Tree, to: Encode, zero: bool) -> Node:
    if isinstance(tree, int):
        return Products((tree,))
    if tree == "c":
        return ACC
    if tree["kind"] == "fma":
        acc, lanes = _node(tree["acc"], to, zero), tuple(tree["lanes"])
        return Fma(acc.acc, (*acc.lanes, *lanes), to) if isinstance(acc, Fma) else Fma(acc, lanes, to)
    x, y = tree["terms"]
    if isinstance(x, int) and isinstance(y, int):
        return Fma(Zero(), (x, y), to) if zero else Add(Products((x,)), Products((y,)), to)
    return Add(_node(x, to, zero), _node(y, to, zero), to)


def _adds(tree: Tree, to: Encode) -> Node:
    if isinstance(tree, int):
        return Products((tree,))
    if tree == "c":
        return ACC
    if tree["kind"] == "fma":
        node = _adds(tree["acc"], to)
        for lane in tree["lanes"]:
            node = Add(node, Products((lane,)), to)
        return node
    return Add(_adds(tree["terms"][0], to), _adds(tree["terms"][1], to), to)


@dataclass(frozen=True)
class _Step:
    lanes: tuple[int, ...]
    c: bool


def _fused(tree: Tree, k: int) -> Iterator[Structure]:
    """A chain of aligned sums of equal length, C inside the first or added after the last."""
    c_after = tree["kind"] == "add" and "c" in tree["terms"]
    inner = next((term for term in tree["terms"] if term != "c"), None) if c_after else tree
    steps: list[_Step] = []
    while isinstance(inner, dict) and inner["kind"] == "fused":
        lanes = tuple(term for term in inner["terms"] if isinstance(term, int))
        steps.insert(0, _Step(lanes, "c" in inner["terms"]))
        inner = next((term for term in inner["terms"] if isinstance(term, dict)), None)
    length = len(steps[0].lanes) if steps else 0
    order = tuple(lane for step in steps for lane in step.lanes)
    if not length or any(len(step.lanes) != length for step in steps) or len(order) != k or inner is not None:
        return
    if c_after and len(steps) > 1:
        return
    products = Products(tuple(range(length)))
    taken = None if order == tuple(range(k)) else order
    has_c = any(step.c for step in steps)
    if c_after:
        yield Structure("fused, c after", length, lambda to: Add(_sum(products, False, to), ACC, to), taken, fused=True)
        return
    yield Structure("fused", length, lambda to: _sum(products, has_c, to), taken, fused=True)
    yield Structure("exact", length, lambda to: Exact((*((ACC,) if has_c else ()), products), to), taken)


def _sum(products: Products, has_c: bool, to: Encode) -> Fused:
    return Fused((*((Term(ACC),) if has_c else ()), Term(products)), None, "RZ", None, to)
