"""Where in a tree a rounding is watched: which leaf carries the anchor, which the small term."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mmaprobe.probing.session.exact_values import Value
from mmaprobe.probing.tree import Leaf, Node, leaves_of


@dataclass(frozen=True)
class AnchorPlace:
    """Where a rounding is watched: the leaves that carry the anchor, the leaf with the small term, and
    the leaf that takes the anchor away again (None: the result shows the sum itself).  ``height``: the
    exponent of each anchor where it is not the session's."""

    anchors: tuple[Leaf, ...]
    term: Leaf
    away: Leaf | None
    height: int | None = None

    def terms(self, anchor: Fraction, term: Fraction) -> dict[Leaf, Fraction]:
        """``anchor`` on each anchor leaf, ``term``, and minus the whole anchor on ``away``."""
        out = dict.fromkeys(self.anchors, anchor) | {self.term: term}
        return out | {self.away: -anchor * len(self.anchors)} if self.away is not None else out

    def rest(self, answer: Value, anchor: Fraction) -> Value:
        """What stands beside the anchor in an answer."""
        return answer if answer is None or self.away is not None else answer - anchor * len(self.anchors)


def inner_place(tree: Node, leaf: Leaf) -> AnchorPlace | None:
    """A place at which ``leaf`` meets an anchor that is taken away later; None where none exists."""
    node = tree.parent_of(leaf)
    others = [child for child in node.children if child != leaf]
    beside = leaves_of(others[0])[0]
    if len(others) > 1:
        return AnchorPlace((beside,), leaf, leaves_of(others[1])[0])
    outside = outside_leaf(tree, node)
    return None if outside is None else AnchorPlace((beside,), leaf, outside)


def clean_place(tree: Node, shown: Node, leaf: Leaf) -> AnchorPlace | None:
    """``inner_place`` where no two of its leaves are in one group of the tree as ``shown``: what is added first
    is cut as one.  None where there are too few groups for it."""
    node = tree.parent_of(leaf)
    chosen: list[Leaf] = []
    taken = _mates(node, shown, leaf)
    for other in (leaves_of(child)[0] for child in node.children):
        if other not in taken:
            chosen.append(other)
            taken = taken | _mates(node, shown, other)
        if len(chosen) > 1:
            return AnchorPlace((chosen[0],), leaf, chosen[1])
    return None


def _mates(node: Node, shown: Node, leaf: Leaf) -> set[Leaf]:
    """The leaves that are added to this one before the others of a node are."""
    near = set(shown.parent_of(leaf).leaves)
    return {leaf} if near.issuperset(node.lanes) else near


def outside_leaf(tree: Node, node: Node) -> Leaf | None:
    """A leaf that joins the sum just after ``node`` is finished; None for the root."""
    if node == tree:
        return None
    parent = tree.parent_of(node)
    return next(leaves_of(child)[0] for child in parent.children if child != node)
