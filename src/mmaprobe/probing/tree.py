"""Summation trees: from the loss matrix of the mask experiment to a tree, and to its JSON form.

The loss L[i, j] is the number of leaves that vanish when +M sits on leaf i, -M
on leaf j and a unit on every other leaf (i and j count).  A node that rounds,
or that aligns to its largest term, loses all leaves below the lowest common
node of i and j: L = its size.  A node that sums its terms without loss gives
L = size of the term that holds i + size of the term that holds j.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Leaf = int | str
"""A lane number (its product), or ``"c"``."""

Loss = dict[tuple[Leaf, Leaf], int]

Lost = dict[tuple[Leaf, Leaf], set[Leaf]]
"""For pairs the leaves that vanish, where the numbers alone leave a choice."""


@dataclass(frozen=True)
class Node:
    """A sum of two or more children; ``lossless``: nothing within the window was lost in it;
    ``aligned``: its terms are known to be aligned, also where there are two."""

    children: tuple[Node | Leaf, ...]
    lossless: bool = False
    aligned: bool = False

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for child in self.children for leaf in leaves_of(child))

    @cached_property
    def members(self) -> frozenset[Leaf]:
        """The leaves as a set."""
        return frozenset(self.leaves)

    @cached_property
    def inner(self) -> tuple[Node, ...]:
        """The children that are sums."""
        return tuple(child for child in self.children if isinstance(child, Node))

    @property
    def lanes(self) -> list[int]:
        """The children that are products."""
        return [child for child in self.children if isinstance(child, int)]

    @property
    def fused(self) -> bool:
        """Terms added before one rounding: three or more, or aligned ones."""
        return self.aligned or len(self.children) > 2

    def walk(self) -> list[Node]:
        """This node and every node below it, parents first."""
        return [self, *(node for child in self.inner for node in child.walk())]

    def parent_of(self, part: Node | Leaf) -> Node:
        """The node of which ``part`` is a child."""
        return next(node for node in self.walk() if part in node.children)

    def lost(self, x: Leaf, y: Leaf) -> Set[Leaf]:
        """The leaves that vanish when +M sits on x and -M on y."""
        node = self.meeting(x, y)
        if not node.lossless:
            return node.members
        parts = [part.members for part in node.inner if x in part.members or y in part.members]
        return frozenset((x, y)).union(*parts)

    def meeting(self, x: Leaf, y: Leaf) -> Node:
        """The lowest node that holds both leaves."""
        lower = next((child for child in self.inner if x in child.members and y in child.members), None)
        return self if lower is None else lower.meeting(x, y)


def leaves_of(part: Node | Leaf) -> tuple[Leaf, ...]:
    return part.leaves if isinstance(part, Node) else (part,)


def build(leaves: tuple[Leaf, ...], loss: Loss, lost: Lost | None = None) -> Node | Leaf | None:
    """The tree whose losses are exactly ``loss`` (and ``lost``); None where no tree has them.

    Two lossless sums can have the same numbers: the first is taken without ``lost``.
    """
    if len(leaves) == 1:
        return leaves[0]
    size = len(leaves)
    parts = _lossy_parts(leaves, loss, size)
    lossless = False
    if parts is None:
        parts, lossless = _lossless_parts(leaves, loss, lost), True
    if parts is None:
        return None
    children = [build(part, loss, lost) for part in parts]
    if any(child is None for child in children):
        return None
    known = tuple(child for child in children if child is not None)
    return Node(known, lossless and len(known) > 2)


def _lossy_parts(leaves: tuple[Leaf, ...], loss: Loss, size: int) -> list[tuple[Leaf, ...]] | None:
    parts = _components(leaves, lambda i, j: loss[i, j] < size)
    whole = all(loss[i, j] == size for p, q in _pairs(parts) for i in p for j in q)
    return parts if len(parts) > 1 and whole else None


def _lossless_parts(leaves: tuple[Leaf, ...], loss: Loss, lost: Lost | None) -> list[tuple[Leaf, ...]] | None:
    """Terms of sizes s with L[i, j] = s_i + s_j across terms; the size of the first leaf's term is tried."""
    first = leaves[0]
    for size in range(1, len(leaves)):
        inside = {j for j in leaves if j == first or loss[first, j] <= size}
        if len(inside) != size:
            continue
        sizes = {j: size if j in inside else loss[first, j] - size for j in leaves}
        parts = _components(leaves, lambda i, j, s=sizes: loss[i, j] <= min(s[i], s[j]))
        fits = all(sizes[i] == len(p) for p in parts for i in p) and all(
            loss[i, j] == len(p) + len(q) and (lost is None or lost.get((i, j), {*p, *q}) == {*p, *q})
            for p, q in _pairs(parts) for i in p for j in q
        )  # fmt: skip
        if fits and len(parts) > 1:
            return parts
    return None


def _pairs(parts: list[tuple[Leaf, ...]]) -> list[tuple[tuple[Leaf, ...], tuple[Leaf, ...]]]:
    return [(p, q) for n, p in enumerate(parts) for q in parts[n + 1 :]]


def _components(leaves: tuple[Leaf, ...], related: Any) -> list[tuple[Leaf, ...]]:
    """Connected components, each in the order of ``leaves``."""
    rest, parts = list(leaves), []
    while rest:
        found, edge = {rest[0]}, [rest[0]]
        while edge:
            near = [j for j in rest if j not in found and related(edge[-1], j)]
            edge.pop()
            found.update(near)
            edge.extend(near)
        parts.append(tuple(leaf for leaf in rest if leaf in found))
        rest = [leaf for leaf in rest if leaf not in found]
    return parts
