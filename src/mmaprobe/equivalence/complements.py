"""A sum of C and products that is complemented: whether results, or operand C, can be tiny in it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.headroom import formats_of
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Term

TINY = ("subnormals", "tininess", "underflow")
"""What an Encode says of tiny results."""


def stays_normal(old: Datapath, new: Datapath) -> bool:
    """Whether only what becomes of tiny results changed, and there are none: C alone beside zeros stays normal.

    Where a product is not zero the sum is a multiple of the last place below its label, which is normal.  Else it is C
    without a unit of its last place for each zero of the other sign: from the lowest normal it falls no further than
    half a place of the values below, and is rounded to it.
    """
    tree, to = old.tree, getattr(old.tree, "to", None)
    other = getattr(new.tree, "to", None)
    if old == new or not isinstance(tree, Fused) or not isinstance(to, Encode) or not isinstance(other, Encode):
        return False
    rules = {name: getattr(other, name) for name in TINY}
    if replace(old, tree=replace(tree, to=replace(to, **rules))) != new:
        return False
    judged = "before" not in (to.tininess, other.tininess)
    return judged and old.operand_c.subnormals != "keep" and _c_beside_zeros(old, tree, to)


def tiny_c_unseen(old: Datapath, new: Datapath) -> bool:
    """Whether only a subnormal C is kept, or not, and becomes the positive zero alone, and a zero of its sign beside a
    product that is none."""
    tree, to, choices = old.tree, getattr(old.tree, "to", None), {old.operand_c.subnormals, new.operand_c.subnormals}
    if choices != {"keep", "signed_zero"} or not isinstance(tree, Fused) or not isinstance(to, Encode):
        return False
    if replace(old, operand_c=replace(old.operand_c, subnormals=new.operand_c.subnormals)) != new or old.c is None:
        return False
    c, d = formats.get(old.c), formats.get(to.format)
    flushed = to.subnormals == "zero" and to.zero == "positive" and c.fraction_bits <= d.fraction_bits
    kept = replace(old, operand_c=replace(old.operand_c, subnormals="signed_zero"))
    return flushed and c.min_exponent == d.min_exponent and _c_beside_zeros(kept, tree, to)


def _c_beside_zeros(datapath: Datapath, tree: Fused, to: Encode) -> bool:
    """Whether a sum of products and a C that is normal or zero is normal or zero, rounded to nearest; beside a product
    that is not zero a subnormal C would be cut to a zero."""
    own = [term for term in tree.terms if isinstance(term.of, Accumulator)]
    beside = [(i, term, term.of) for i, term in enumerate(tree.terms) if isinstance(term.of, Products)]
    if not tree.is_complemented or tree.carry_bits is not None or len(own) != 1 or datapath.operand_c.mask is not None:
        return False
    plain = all(
        replace(term, of=own[0].of, fraction_bits=None, label_offset=0) == Term(own[0].of) for term in tree.terms
    )
    if not plain or len(beside) + 1 != len(tree.terms) or tree.last_place is None or datapath.result is not None:
        return False
    spans = trace(datapath, accumulator_span(datapath)).spans
    d, held = formats.get(to.format), [formats.get(name) for name in formats_of(datapath, Accumulator())]
    label = min(spans[f"tree.terms.{i}.of"].label_low + term.label_offset for i, term, _ in beside)
    bits, offset = own[0].fraction_bits, own[0].label_offset
    if bits is None or any(not fmt.is_float or fmt.min_exponent != d.min_exponent for fmt in held):
        return False
    whole = all(bits - offset >= fmt.fraction_bits for fmt in held)
    lost = sum(len(products.lanes) for _, _, products in beside) * Fraction(2) ** (offset - tree.last_place)
    nearest = to.rounding in ("RNE", "RNA") and to.first is None
    below = d.min_exponent + max(offset, 0) <= label - bits and label - tree.last_place >= d.min_exponent
    return whole and nearest and below and lost <= Fraction(2) ** (-d.fraction_bits - 2)
