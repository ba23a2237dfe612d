"""Formats that change nothing: of products that fit them, between a step and a conversion that rounds alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.spans import Span, exact_in, product_span
from mmaprobe.equivalence.zero_signs import complements
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Product,
    Products,
    walk,
)
from mmaprobe.parameters.rewrite import encodes


def products_fit(old: Datapath, new: Datapath) -> bool:
    """Products differ in the format they are rounded to alone, and each product is one of either format.

    Nothing may read a product's label, which its rounding changes.
    """
    if old == new or replace(old, product=replace(old.product, to=new.product.to)) != new:
        return False
    span = product_span(old)
    limit = old.product.overflow_exponent
    top = span.top if limit is None else min(span.top, limit)
    return not labels_read(old.tree) and all(
        to is None or _exact(old, replace(span, top=top), to) for to in (old.product.to, new.product.to)
    )


def labels_read(tree: Node) -> bool:
    """Whether an alignment sees the label of a product, or of a sum that has it from its products."""
    return any(_labelled(term.of) for node in walk(tree) if isinstance(node, Fused) for term in node.terms)


def _labelled(node: Node) -> bool:
    if isinstance(node, Exact):
        return node.to is None and not node.scaled and any(map(_labelled, node.terms))
    return isinstance(node, Products)


def _exact(datapath: Datapath, span: Span, to: Encode) -> bool:
    """Whether an Encode changes no product of this span; zeros keep their signs, or no sum shows them."""
    fmt = formats.get(to.format)
    first = to.first is None or exact_in(span, to.first[0], fmt.min_exponent)
    kept = to.subnormals == "keep" or (span.least >= fmt.min_exponent and to.subnormals != "zero")
    fits = exact_in(span, fmt.fraction_bits, fmt.min_exponent) and span.top <= fmt.max_exponent + 1
    limit = datapath.product.overflow_exponent
    beyond = limit is not None and product_span(datapath).top > limit
    infinite = beyond or any(formats.get(name).infinity for name in (datapath.a, datapath.b))
    signs = fmt.nan != "negative_zero" or all(
        e.zero == "positive" for e in encodes(replace(datapath, product=Product()))
    )
    whole = span.top <= fmt.max_exponent or fmt.max_fraction == (1 << fmt.fraction_bits) - 1
    return fits and first and kept and whole and to.zero == "ieee" and signs and (fmt.infinity or not infinite)


def fits(span: Span, to: Encode) -> bool:
    """Whether a rounding changes no sum of this span, a zero's sign neither; no sum is beyond the largest value."""
    fmt = formats.get(to.format)
    whole = span.top <= fmt.max_exponent or fmt.max_fraction == (1 << fmt.fraction_bits) - 1
    exact = exact_in(span, fmt.fraction_bits, fmt.min_exponent) and span.top <= fmt.max_exponent + 1 and whole
    kept = to.subnormals == "keep" or span.least >= fmt.min_exponent
    return exact and kept and fmt.is_float and fmt.infinity and to.first is None and to.zero == "ieee"


def rounded_alike(old: Datapath, new: Datapath) -> bool:
    """A wider format between the one step and the last conversion: exact, or for all but what overflows in any case;
    rounded in one direction, or to odd, twice; or a sum of two values of so few bits that rounding it to nearest twice
    is innocuous (S. Figueroa 1995, for values of the result's format)."""
    if old.result is not None or len(old.steps) != 1 or new.result is None:
        return False
    tree: Any = old.tree
    to: Encode = tree.to
    inner: Encode | None = getattr(new.tree, "to", None)
    if inner is None or to.format != old.d or _links(tree) > 1:
        return False
    expected = replace(old, tree=replace(tree, to=replace(to, format=inner.format)), result=replace(to, first=None))
    wide, d = formats.get(inner.format), formats.get(to.format)
    if new != expected or not _contains(wide, d) or to.overflow == "wrap":
        return False
    span = trace(old, accumulator_span(old)).spans["tree.to"]
    if old.most_random_bits or new.most_random_bits:  # twice: what passes is drawn for once
        return _passes(span, to, wide, d)
    return (
        _passes(span, to, wide, d)
        or _passes_or_overflows(span, to, wide, d)
        or _finer_alone(span, to, wide, d)
        or _one_direction(span, to, wide)
        or _rounds_two_values(old, span, wide, d)
    )


def _links(tree: Node) -> int:
    """How often the root rounds: a chain does so at every lane."""
    return len(tree.lanes) if isinstance(tree, Fma) else 1


def odd_first(old: Datapath, new: Datapath) -> bool:
    """Whether the two are one where a rounding to odd with two more bits, then a last conversion, is that conversion
    alone (S. Boldo, G. Melquiond 2008)."""
    return old != new and _converted_once(old) == _converted_once(new)


def _converted_once(path: Datapath) -> Datapath:
    to, last = getattr(path.tree, "to", None), path.result
    if not isinstance(to, Encode) or last is None or len(path.steps) != 1 or _links(path.tree) > 1:
        return path
    wide, d = formats.get(to.format), formats.get(last.format)
    odd = to.rounding == "RO" and to.first is None and to.subnormals == "keep" and to.overflow == "ieee"
    more = wide.fraction_bits >= d.fraction_bits + 2 and wide.max_exponent > d.max_exponent
    low = wide.min_exponent - wide.fraction_bits <= d.min_exponent - d.fraction_bits - 2
    signs = (to.zero, to.underflow) == (last.zero, last.underflow) and last.first is None
    alike = last.rounding != "RD" and not complements(path)  # the sign of what cancels
    if not (odd and more and low and signs and alike and _contains(wide, d)):
        return path
    tree: Any = path.tree
    return replace(path, tree=replace(tree, to=last), result=None)


def _one_direction(span: Span, to: Encode, wide: formats.Format) -> bool:
    """Whether both round in one direction, or to odd, and what is flushed is judged by the rounded value, or by one
    that no rounding brings to a power of two."""
    judged = to.tininess != "before" or to.rounding in ("RZ", "RO")
    kept = to.subnormals == "keep" or (judged and span.least >= wide.min_exponent)
    return to.rounding in ("RZ", "RD", "RU", "RO") and to.first is None and kept


def _contains(wide: formats.Format, d: formats.Format) -> bool:
    """Every value of d is one of the wide format, and the two treat infinities alike."""
    low = wide.min_exponent - wide.fraction_bits <= d.min_exponent - d.fraction_bits
    alike = wide.is_float and d.is_float and wide.infinity and d.infinity and wide.signed and d.signed
    return alike and low and wide.fraction_bits >= d.fraction_bits and wide.max_exponent >= d.max_exponent


def _passes(span: Span, to: Encode, wide: formats.Format, d: formats.Format) -> bool:
    """Whether every sum, or what a first cut leaves of it, is one of the wide format, normal there, and the cut is the
    same in both."""
    cut = span if to.first is None else replace(span, width=min(span.width, to.first[0] + 1), top=span.top + 1)
    exact = exact_in(cut, wide.fraction_bits, wide.min_exponent) and cut.top <= wide.max_exponent + 1
    first = to.first is None or span.lowest >= d.min_exponent - to.first[0]
    return exact and first and (to.subnormals == "keep" or span.least >= wide.min_exponent)


def _finer_alone(span: Span, to: Encode, wide: formats.Format, d: formats.Format) -> bool:
    """Whether the wide format has as many bits as d, and what is below the lowest normal of d fits into them: a normal
    value is rounded once, and to no other place; a tiny one passes as it is."""
    first = to.first is None or to.first[0] >= d.fraction_bits
    kept = to.subnormals == "keep" or span.least >= wide.min_exponent
    low = max(d.min_exponent - wide.fraction_bits - 1, wide.min_exponent - wide.fraction_bits)
    return first and kept and wide.fraction_bits == d.fraction_bits and span.lowest >= low


def _passes_or_overflows(span: Span, to: Encode, wide: formats.Format, d: formats.Format) -> bool:
    """Whether every sum below the power of two above d's values is one of the wide format, normal there; a larger one
    stays as large, and overflows in d in any case."""
    exact = d.max_exponent - span.lowest <= wide.fraction_bits and span.lowest >= wide.min_exponent - wide.fraction_bits
    finite = span.top <= wide.max_exponent
    return exact and finite and to.first is None and (to.subnormals == "keep" or span.least >= wide.min_exponent)


def _rounds_two_values(datapath: Datapath, span: Span, wide: formats.Format, d: formats.Format) -> bool:
    """Whether the root adds two values, rounded to nearest, so that no sum that the wide format does not hold is
    rounded there onto a point halfway between two values of d, or across one.

    Let X be the larger value, of p bits and a multiple of 2**x, Y the smaller one, of q bits and a multiple of 2**y,
    and r and w the bits of d and of the wide format; e is the exponent of the sum.  A sum that is not held has more
    than w bits.

    Say r >= p, X a multiple of the lowest place of d, w > r + q.  Where e is that of X or less, X is half a place of d,
    2**(e - r), away from every halfway point: a Y that brings the sum so far, or nearer than 2**(e - w), has its last
    bit above that, and the sum is held.  Where e is larger, Y is not smaller than the last place of X, and the sum has
    p + q bits.  Where X is no multiple of the lowest place of d, e is below the p-th place from there: a sum of so many
    places down to min(x, y) is held.

    Else the sum has its last bit at y or above, or among the last p + 1: it is held, up to the largest exponent of d,
    where w is as many; beyond it overflows in both.

    What may be flushed, a sum below the lowest normal of d, is held.
    """
    parts = _two_values(datapath)
    to: Encode | None = getattr(datapath.tree, "to", None)
    if parts is None or to is None or to.rounding not in ("RNE", "RNA") or to.first is not None:
        return False
    low = span.lowest >= wide.min_exponent - wide.fraction_bits and span.top <= wide.max_exponent
    if not low or (to.subnormals != "keep" and span.lowest < d.min_exponent - wide.fraction_bits - 1):
        return False
    return all(_held_or_far(x, y, wide.fraction_bits + 1, d) for x, y in (parts, parts[::-1]))


def _held_or_far(larger: Span, smaller: Span, bits: int, d: formats.Format) -> bool:
    """Whether a sum of two values has at most so many bits, or is not near a point halfway between two values of d."""
    lowest, places = d.min_exponent - d.fraction_bits, d.fraction_bits + 1
    fine = larger.lowest >= lowest or lowest + larger.width - min(larger.lowest, smaller.lowest) <= bits
    far = larger.width <= places and fine and bits > places + smaller.width
    return far or (bits > larger.width and bits > d.max_exponent - smaller.lowest)


def _two_values(datapath: Datapath) -> tuple[Span, Span] | None:
    """The spans of the two values of which the root is the exact sum; None where it is none."""
    tree, spans = datapath.tree, trace(datapath, accumulator_span(datapath)).spans
    if isinstance(tree, Add):
        parts = [("tree.x", tree.x), ("tree.y", tree.y)]
    elif isinstance(tree, Exact) and not tree.scaled:
        parts = [(f"tree.terms.{i}", term) for i, term in enumerate(tree.terms)]
    elif isinstance(tree, Fma) and len(tree.lanes) == 1:
        parts = [("tree.acc", tree.acc), ("product", Products(tree.lanes))]
    else:
        return None
    if len(parts) != 2 or any(isinstance(part, Products) and len(part.lanes) > 1 for _, part in parts):
        return None
    return spans[parts[0][0]], spans[parts[1][0]]
