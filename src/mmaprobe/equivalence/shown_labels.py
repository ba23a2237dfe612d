"""A label that a term shows higher or lower than its own, where only sums tell that lose nothing by it."""

from __future__ import annotations

from mmaprobe.parameters.datapath import Fused, Node
from mmaprobe.parameters.rewrite import shown_plainly


def own_labels(node: Node, finest: tuple[int | None, ...]) -> Node:
    """A sum of two terms as one whose terms show their own labels, where that is the same function; else the node.

    Let e and E be the labels of a term and of the other, which shows E + s: the term is cut at max(e, E + s) - n.
    Without the offset and with n - s bits it is cut at max(e, E) - n + s: the same where e is neither above E nor above
    E + s.  Elsewhere both places are at or below e - n or e - n + s, where it has no bits if its last lies at most
    min(n, n - s) below its label.  Which of the two is dropped is the same for every distance E - e.  A zero that shows
    z beside s shows z - s without it, and is an E with E + s = z.  ``finest``: how far below its label each term's last
    bit lies at most; a term that itself shows e + t is cut at e + t - n there.
    """
    moved = shown_plainly(node)
    if moved == node or not (isinstance(node, Fused) and isinstance(moved, Fused)) or node.to is None:
        return node
    for term, plain, fine in zip(node.terms, moved.terms, finest, strict=True):
        if term.fraction_bits is None or plain.fraction_bits is None:
            continue
        if fine is None or min(term.fraction_bits - term.label_offset, plain.fraction_bits) < fine:
            return node
    return moved
