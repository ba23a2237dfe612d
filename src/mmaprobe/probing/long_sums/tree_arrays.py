"""Summation trees of thousands of leaves, as arrays; and their JSON form.

Leaves are 0 .. n-1 (lane k is leaf k; C, where there is one, is leaf K).  Node
n + i adds its children, each a leaf or an earlier node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mmaprobe.errors import UsageError


@dataclass(frozen=True)
class TreeArrays:
    """``nodes[i]`` are the children of node ``leaves + i``; the last node is the root.

    A node of more than two children is fused, or, where it is in ``unknown``,
    adds its leaves in an order that was not found.  UsageError where a leaf
    or a node is not used exactly once.
    """

    leaves: int
    nodes: tuple[tuple[int, ...], ...]
    unknown: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        used = sorted(child for children in self.nodes for child in children)
        late = any(child >= self.leaves + i for i, children in enumerate(self.nodes) for child in children)
        if (
            self.leaves < 1
            or used != list(range(max(self.root, 0)))
            or late
            or min(map(len, self.nodes), default=2) < 2
        ):
            raise UsageError(f"a tree of {self.leaves} leaves: every leaf and node is used once, below a later node")

    @property
    def root(self) -> int:
        return self.leaves + len(self.nodes) - 1

    def children(self, node: int) -> tuple[int, ...]:
        """What ``node`` adds; nothing for a leaf."""
        return self.nodes[node - self.leaves] if node >= self.leaves else ()

    @cached_property
    def sizes(self) -> list[int]:
        """Leaves below each leaf (1) and node."""
        out = [1] * self.leaves
        for children in self.nodes:
            out.append(sum(out[child] for child in children))
        return out

    @cached_property
    def firsts(self) -> list[int]:
        """The lowest leaf below each leaf and node."""
        out = list(range(self.leaves))
        for children in self.nodes:
            out.append(min(out[child] for child in children))
        return out

    @cached_property
    def parents(self) -> list[int]:
        """The node above each leaf and node; -1 for the root."""
        out = [-1] * (self.root + 1)
        for i, children in enumerate(self.nodes):
            for child in children:
                out[child] = self.leaves + i
        return out

    @cached_property
    def depths(self) -> list[int]:
        """Additions that each leaf and node goes through on its way to the root."""
        out = [0] * (self.root + 1)
        for node in range(self.root, self.leaves - 1, -1):
            for child in self.children(node):
                out[child] = out[node] + 1
        return out

    @cached_property
    def ordered(self) -> tuple[tuple[int, ...], ...]:
        """Each node's children, the larger first, then by lowest leaf: the order of operands is not seen in values."""
        sizes, firsts = self.sizes, self.firsts
        return tuple(tuple(sorted(children, key=lambda c: (-sizes[c], firsts[c]))) for children in self.nodes)

    def below(self, node: int) -> list[int]:
        """The leaves below ``node``, ascending."""
        found, todo = [], [node]
        while todo:
            here = todo.pop()
            if here < self.leaves:
                found.append(here)
            todo.extend(self.children(here))
        return sorted(found)

    def chain(self, node: int) -> list[int]:
        """A node of two as the longest run of additions ((t0 + t1) + t2) + ... along its larger children."""
        terms: list[int] = []
        while node >= self.leaves and len(self.children(node)) == 2 and node not in self.unknown:
            node, term = self.ordered[node - self.leaves]
            terms.append(term)
        return [node, *reversed(terms)]


def to_json(tree: TreeArrays, lanes: int | None = None, node: int | None = None) -> Any:
    """The tree (or what is below ``node``) nested no deeper than log2 of its leaves; equal trees have equal forms.

    A lane number; ``"c"`` for the leaf after ``lanes`` lanes; or kind and
    terms: ``chain`` is ((t0 + t1) + t2) + ..., ``fused`` one sum before one
    rounding, ``unknown`` an order that was not found.
    """
    here = tree.root if node is None else node
    if here < tree.leaves:
        return "c" if here == lanes else here
    if here in tree.unknown:
        return {"kind": "unknown", "terms": [to_json(tree, lanes, leaf) for leaf in tree.below(here)]}
    fused = len(tree.children(here)) > 2
    terms = list(tree.ordered[here - tree.leaves]) if fused else tree.chain(here)
    return {"kind": "fused" if fused else "chain", "terms": [to_json(tree, lanes, term) for term in terms]}


def from_json(form: Any, lanes: int) -> TreeArrays:
    """The tree whose JSON form this is; ``"c"`` is leaf ``lanes``.  UsageError for another form."""
    found = Builder()
    root = _read(form, lanes, found)
    return found.tree(root)


def _read(form: Any, lanes: int, found: Builder) -> int:
    if form == "c" or isinstance(form, int):
        return found.leaf(lanes if form == "c" else form)
    if not isinstance(form, Mapping) or form.get("kind") not in ("chain", "fused", "unknown"):
        raise UsageError(f"a tree is a lane, 'c', or kind (chain, fused, unknown) and terms, not {form!r:.60}")
    terms = [_read(term, lanes, found) for term in form["terms"]]
    if form["kind"] != "chain":
        return found.node(terms, form["kind"] == "unknown")
    out = terms[0]
    for term in terms[1:]:
        out = found.node((out, term))
    return out


class Builder:
    """Makes a tree from the leaves up; node numbers are negative until the number of leaves is known."""

    def __init__(self) -> None:
        self._leaves = 0
        self._nodes: list[tuple[int, ...]] = []
        self._unknown: list[int] = []

    def leaf(self, leaf: int) -> int:
        """A leaf."""
        self._leaves = max(self._leaves, leaf + 1)
        return leaf

    def node(self, children: Iterable[int], unknown: bool = False) -> int:
        """The sum of ``children``, which were made before."""
        self._nodes.append(tuple(children))
        if unknown:
            self._unknown.append(len(self._nodes) - 1)
        return -len(self._nodes)

    def chain(self, terms: Sequence[int]) -> int:
        """((t0 + t1) + t2) + ..."""
        out = terms[0]
        for term in terms[1:]:
            out = self.node((out, term))
        return out

    def tree(self, root: int) -> TreeArrays:
        """The whole tree; ``root`` must be the node that was made last."""
        if self._nodes and root != -len(self._nodes):
            raise UsageError("the root is the node that is made last")
        n = self._leaves
        nodes = tuple(tuple(c if c >= 0 else n - c - 1 for c in children) for children in self._nodes)
        return TreeArrays(n, nodes, frozenset(n + i for i in self._unknown))
