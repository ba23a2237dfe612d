"""How far below and above its label the values of a node reach, whatever the label is."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe import formats
from mmaprobe.equivalence.spans import FAR, product_span
from mmaprobe.parameters.datapath import Accumulator, Datapath, Exact, Fused, Node, Products, Term


def granularity(node: Node) -> int | None:
    """How far below its label the last bit of a handed-on aligned sum lies at most; None where nothing is known."""
    if not isinstance(node, Fused) or node.to is not None:
        return None
    known = [term.fraction_bits for term in node.terms if term.fraction_bits is not None]
    return max(known) if len(known) == len(node.terms) else None


def formats_of(datapath: Datapath, node: Node) -> tuple[str, ...]:
    """The formats of which a node is one value; none where it is a sum that is handed on, or several values."""
    if isinstance(node, Accumulator):
        first = (datapath.c,) if datapath.c is not None else ()
        return (*first, datapath.root.format) if len(datapath.steps) > 1 else first
    to = getattr(node, "to", None)
    return () if to is None else (to.format,)


def headroom(datapath: Datapath, node: Node) -> int:
    """h such that every value of a node is at most 2**(label + h)."""
    if isinstance(node, Products):
        if datapath.product.to is not None:
            return 1
        scaled = datapath.scale is not None and datapath.scale.where == "product"
        wide = scaled and datapath.scale is not None and formats.get(datapath.scale.format).fraction_bits > 0
        return 2 + 2 * wide
    if isinstance(node, Exact) and node.to is None:
        if node.scaled:
            assert datapath.scale is not None
            wide = formats.get(datapath.scale.format).fraction_bits > 0
            return product_span(datapath).top + (_terms(node) - 1).bit_length() + 2 * wide
        return max(headroom(datapath, part) for part in node.terms) + (_terms(node) - 1).bit_length()
    if isinstance(node, Fused) and node.to is None:
        up = any(term.rounding != "RZ" for term in node.terms)
        top = max(headroom(datapath, term.of) - term.label_offset for term in node.terms)
        return max(top, 0) + up + node.is_complemented + (_terms(node) - 1).bit_length()
    return 1


def _terms(node: Fused | Exact) -> int:
    """How many values a sum adds."""
    inner = [term.of if isinstance(term, Term) else term for term in node.terms]
    return sum(len(part.lanes) if isinstance(part, Products) else 1 for part in inner)


def aligned_width(datapath: Datapath, node: Fused) -> int:
    """The most significant bits of an aligned sum of terms that are all cut."""
    fine = granularity(replace(node, to=None))
    return FAR if fine is None else fine + headroom(datapath, replace(node, to=None)) + 1
