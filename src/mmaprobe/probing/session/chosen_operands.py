"""Vectors in which single lanes hold chosen operands rather than chosen products."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node, leaves_of


def with_operands(base: Vector, lane: int, a: int, b: int) -> Vector:
    """``base`` with these codes in one lane."""
    return replace(base, a=base.a.put(lane, a), b=base.b.put(lane, b))


def fused_lanes(tree: Node | None) -> tuple[list[int], bool]:
    """The lanes of the fused sum that has most of them (C's before others), and whether C is in it."""
    nodes = [] if tree is None else [node for node in tree.walk() if node.fused]
    if not nodes:
        return [], False
    node = max(nodes, key=lambda node: (len(node.lanes), "c" in node.children))
    return node.lanes, "c" in node.children


def beside(tree: Node, leaf: Leaf) -> Leaf:
    """The leaf that ``leaf`` meets first."""
    return next(leaves_of(child)[0] for child in tree.parent_of(leaf).children if child != leaf)
