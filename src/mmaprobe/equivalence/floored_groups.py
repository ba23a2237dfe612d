"""Groups of two products that are cut downward inside a sum that cuts downward again: the first cut does not show."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.spans import Span
from mmaprobe.equivalence.zero_signs import complements
from mmaprobe.parameters.datapath import Datapath, Exact, Fused, Node, Products, Term, walk
from mmaprobe.parameters.rewrite import map_fused


def floored_again(old: Datapath, new: Datapath) -> bool:
    """Whether two datapaths are one where such groups are written as exact ones.

    Let a group of products x and y, x with the larger label L, be cut downward at n bits, and the term that it is be
    cut downward at m <= n bits below E >= L.  Where x is a multiple of 2**(L - n), floor(x) + floor(y) is
    floor(x + y) in units of 2**(L - n), and the second floor, in units of 2**(E - m), no finer, is that of x + y.
    The group is labelled L either way.  A zero group may differ in its sign, so nothing may complement, and the sum
    that it enters is rounded and its zeros positive.
    """
    aligned = any(isinstance(node, Fused) for node in walk(old.tree))
    return aligned and old != new and _plain(old) == _plain(new)


def _plain(path: Datapath) -> Datapath:
    """The datapath with the groups whose first cut does not show written as exact sums."""
    if complements(path) or path.product.to is not None or path.scale is not None:
        return path
    product = trace(path, accumulator_span(path)).spans["product"]

    def at(node: Fused) -> Fused:
        if node.to is None or node.to.zero != "positive":
            return node
        return replace(node, terms=tuple(replace(term, of=_whole(term, product)) for term in node.terms))

    return map_fused(path, at)


def _whole(term: Term, product: Span) -> Node:
    """The term's node, an exact sum of its two products where their own cut does not show."""
    group = term.of
    if not isinstance(group, Fused) or group.to is not None or term.rounding != "RD" or term.fraction_bits is None:
        return group
    if len(group.terms) != 1 or not isinstance(group.terms[0].of, Products) or len(group.terms[0].of.lanes) != 2:
        return group
    inner = group.terms[0]
    same = (inner.zero_exponent, inner.cutoff, inner.label_offset, term.label_offset) == (None, None, 0, 0)
    bits = inner.fraction_bits  # no bit of a product is further below its label than it has bits
    fine = bits is None or (inner.rounding == "RD" and bits >= max(term.fraction_bits, product.width))
    return Exact((inner.of,)) if same and fine else group
