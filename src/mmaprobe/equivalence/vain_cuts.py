"""Sums whose alignment cuts in vain: the exact sum, cut or rounded afterwards, is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, trace
from mmaprobe.equivalence.headroom import formats_of, headroom
from mmaprobe.equivalence.spans import FAR, Span
from mmaprobe.formats import Format
from mmaprobe.parameters.datapath import Datapath, Exact, Fused, Node, Products, Term, Zero, walk
from mmaprobe.parameters.rewrite import map_fused


def uncut_pair(datapath: Datapath, node: Node) -> Node:
    """The exact sum of the two values of formats that an alignment cuts where what it cuts off does not show in their
    rounded sum; else the node."""
    if not (isinstance(node, Fused) and len(node.terms) == 2 and node.to is not None) or node.complement:
        return node
    held = [formats_of(datapath, term.of) for term in node.terms]
    if not all(held) or node.carry_bits is not None or node.to.first is not None or node.to.random_bits:
        return node
    parts, to = [formats.get(name) for names in held for name in names], formats.get(node.to.format)
    if not all(fmt.is_float for fmt in (*parts, to)) or len({fmt.min_exponent for fmt in parts}) > 1:
        return node
    rounding = node.to.rounding
    vain = _odd_twice(node, parts, to) if rounding == "RO" else rounding[:2] == "RN" and _far_below(node, parts, to)
    return Exact(tuple(term.of for term in node.terms), node.to) if vain else node


def _odd_twice(node: Fused, parts: list[Format], to: Format) -> bool:
    """Whether two values are cut to odd, and their sum again, two places or more above the cut.

    At most one is cut, that with the smaller label, and leaves an odd multiple of the unit that the other is a whole
    multiple of: their sum stays strictly between the same even ones, where every coarser rounding to odd, and every
    comparison with a power of two, gives the same.  Where it is so much smaller than the larger label that the last
    rounding is no coarser, the labels differ by one at most, and neither is cut; that needs one lowest exponent.
    """
    least = 2 + max(fmt.fraction_bits for fmt in (*parts, to))
    bits = [term.fraction_bits for term in node.terms]
    plain = all(replace(term, of=Zero(), fraction_bits=None) == Term(Zero(), None, "RO") for term in node.terms)
    return plain and all(each is None or each >= least for each in bits)


def _far_below(node: Fused, parts: list[Format], to: Format) -> bool:
    """Whether the result, rounded to nearest, is the larger of two values wherever the other one is cut.

    Let E be the larger label and the values of p bits or fewer.  With n bits the other is cut only where its last place
    is below 2**(E - n): it is, before and after, at most 2**(E - n + p).  E is above the lowest exponent, so the larger
    is 2**E at least; the result holds it, with q bits, and half of what lies below its next one is 2**(E - q - 1) or
    more: where n >= p + q + 2 both sums are rounded to it.  A zero that shows an exponent cuts nothing off the other
    where that is n bits or less above the last place of the lowest one.
    """
    fraction = max(fmt.fraction_bits for fmt in parts)
    bits = [term.fraction_bits for term in node.terms if term.fraction_bits is not None]
    zeros = [term.zero_exponent for term in node.terms if term.zero_exponent is not None]
    plain = [Term(Zero(), rounding=term.rounding, zero_exponent=term.zero_exponent) for term in node.terms]
    if plain != [replace(term, of=Zero(), fraction_bits=None) for term in node.terms] or not bits:
        return False
    low = parts[0].min_exponent - fraction + min(bits)
    return (
        min(bits) >= fraction + to.fraction_bits + 4
        and all(zero <= low for zero in zeros)
        and to.min_exponent <= parts[0].min_exponent
        and all(_holds(to, fmt) for fmt in parts)
    )


def _holds(to: Format, fmt: Format) -> bool:
    """Whether a format has every normal number of another of the same, or a higher, lowest exponent."""
    finer = to.fraction_bits - fmt.fraction_bits
    largest = (fmt.max_exponent, fmt.max_fraction << max(finer, 0))
    return finer >= 0 and largest <= (to.max_exponent, to.max_fraction)


def uncut_groups(datapath: Datapath) -> Datapath:
    """The datapath with groups of two products that are cut in vain, and cut again outside, as their exact sums."""
    if _cancels_to_minus_zero(datapath):
        return datapath

    def at(node: Fused, parts: list[Span]) -> Fused:
        beside = [_shown_beside(node.terms, parts, i) for i in range(len(parts))]
        terms = [_uncut_group(datapath, term, shown) for term, shown in zip(node.terms, beside, strict=True)]
        return node if node.is_complemented else replace(node, terms=tuple(terms))

    return _at_sums(datapath, at, [term.of for term in _terms(datapath) if isinstance(term.of, Fused)])


def without_vain_zeros(datapath: Datapath) -> Datapath:
    """The datapath without the exponent that a zero term shows where another term shows as high a one in any case;
    where a sum that is rounded has no bit so low that it cuts it off, nor a label so low that it is dropped; or where
    no sum that low is rounded to anything but zero.

    Terms of one kind do not hide each other, and of two that do, only one goes.
    """

    def at(node: Fused, parts: list[Span]) -> Fused:
        for i in sorted(range(len(parts)), key=lambda i: repr(replace(node.terms[i], of=Zero()))):
            term, zero = node.terms[i], node.terms[i].zero_exponent
            shown = _shown_beside(node.terms, parts, i, alike=False)
            hidden = zero is not None and shown is not None and zero <= shown
            if hidden or _cuts_nothing(node, parts, i) or _vanishes(datapath, node, parts, i):
                node = replace(node, terms=(*node.terms[:i], replace(term, zero_exponent=None), *node.terms[i + 1 :]))
        return node

    return _at_sums(datapath, at, [term for term in _terms(datapath) if term.zero_exponent is not None])


def vain_zeros(old: Datapath, new: Datapath) -> bool:
    """Whether two datapaths differ in exponents alone that zeros show, and show for nothing."""

    def at(node: Fused) -> Fused:
        return replace(node, terms=tuple(replace(term, zero_exponent=None) for term in node.terms))

    alone = old != new and map_fused(old, at) == map_fused(new, at)
    return alone and without_vain_zeros(old) == without_vain_zeros(new)


def _terms(datapath: Datapath) -> list[Term]:
    return [term for node in walk(datapath.tree) if isinstance(node, Fused) for term in node.terms]


def _at_sums(datapath: Datapath, at: Callable[[Fused, list[Span]], Fused], wanted: Sequence[object]) -> Datapath:
    """The datapath with its aligned sums changed, those inside first, by what holds of their terms' values; as it is
    where nothing is ``wanted``."""
    if not wanted:
        return datapath
    spans = trace(datapath, accumulator_span(datapath)).spans

    def within(node: Node, path: str) -> Node:
        if isinstance(node, Exact):
            return replace(node, terms=tuple(within(term, f"{path}.terms.{i}") for i, term in enumerate(node.terms)))
        if not isinstance(node, Fused):
            return node
        terms = [replace(term, of=within(term.of, f"{path}.terms.{i}.of")) for i, term in enumerate(node.terms)]
        return at(replace(node, terms=tuple(terms)), [spans[f"{path}.terms.{i}.of"] for i in range(len(terms))])

    return replace(datapath, tree=within(datapath.tree, "tree"))


def _cuts_nothing(node: Fused, parts: list[Span], own: int) -> bool:
    """Whether the exponent that a zero shows leaves every bit of the values beside it where it is."""
    zero = node.terms[own].zero_exponent
    if zero is None or node.to is None or node.is_complemented or node.carry_bits is not None:
        return False
    for i, (term, part) in enumerate(zip(node.terms, parts, strict=True)):
        if i == own and not (isinstance(term.of, Products) and len(term.of.lanes) > 1):
            continue
        whole = term.fraction_bits is None or zero - term.fraction_bits <= part.lowest
        kept = term.cutoff is None or zero - term.cutoff <= part.label_low + term.label_offset
        if not (whole and kept and term.shift_limit is None):
            return False
    return True


def _vanishes(datapath: Datapath, node: Fused, parts: list[Span], own: int) -> bool:
    """Whether every sum in which a zero shows the largest exponent is rounded to the positive zero, and is without it.

    Terms that show less than 2**top add up to less than ``most``, with two units of the last place for each of their
    values, which a cut and a complement may add.
    """
    top, to = node.terms[own].zero_exponent, node.to
    if top is None or to is None or node.last_place is None or node.carry_bits is not None:
        return False
    most = Fraction(0)
    for term, part in zip(node.terms, parts, strict=True):
        if term.zero_exponent not in (None, top):
            return False
        lanes = len(term.of.lanes) if isinstance(term.of, Products) else 1
        live = part.label_low + term.label_offset < top
        largest = Fraction(2) ** (top - 1 - term.label_offset + headroom(datapath, term.of))
        most += lanes * (live * largest + Fraction(2) ** (top - node.last_place + 1))
    fmt = formats.get(to.format)
    inward = to.rounding in ("RNE", "RNA", "RZ") and to.first is None and not to.random_bits
    if not (fmt.is_float and inward and to.zero == "positive"):
        return False
    flushed = to.subnormals == "zero" and most <= Fraction(3, 4) * Fraction(2) ** fmt.min_exponent
    below = most <= Fraction(2) ** (fmt.min_exponent - fmt.fraction_bits - 2)
    return flushed or (below and to.subnormals == "keep" and to.underflow == "positive")


def _shown_beside(terms: Sequence[Term], parts: Sequence[Span], own: int, alike: bool = True) -> int | None:
    """A label that the terms beside one, or those of other rules, show whatever their values; None where all may show
    none."""
    rules = [replace(term, of=Zero()) for term in terms]
    shown = [
        min(rule.zero_exponent, part.label_low + rule.label_offset)
        for i, (rule, part) in enumerate(zip(rules, parts, strict=True))
        if i != own and (alike or rule != rules[own]) and rule.zero_exponent is not None
    ]
    return max(shown, default=None)


def _uncut_group(datapath: Datapath, term: Term, beside: int | None) -> Term:
    """A term that is an aligned sum of two products as the term of their exact sum, where the cuts inside are made
    again outside; without the exponent that a zero inside shows, where what it cuts off is cut off again; else the
    term.  ``beside``: a label that the terms beside it always show; None: they may show none.

    Let E be the larger label and the cuts inside down, n bits below it.  The product that shows it is a whole multiple
    of that unit, so what is left is the exact sum cut down once.  Outside that is cut down again at m bits below the
    largest label, no lower than m - s below E, where the term shows its label and s: no finer where m - s <= n.

    A zero inside that shows an exponent z raises no label where the terms beside show z + s or more.  The product
    beside it, then the only one, is cut at z - n and again at ``beside`` - m or above.

    What is cut to a zero, and what cancels with that which is cut, differ in the sign of their zeros where a sum that
    cancels is -0.
    """
    inner = term.of
    if not isinstance(inner, Fused) or inner.to is not None or inner.is_complemented or inner.carry_bits is not None:
        return term
    rules = {replace(each, of=Zero()) for each in inner.terms}
    pairs = [each.of for each in inner.terms if isinstance(each.of, Products)]
    if len(rules) != 1 or len(pairs) < len(inner.terms) or sum(len(pair.lanes) for pair in pairs) > 2:
        return term
    (rule,) = rules
    bits, zero, outer, shows = rule.fraction_bits, rule.zero_exponent, term.fraction_bits, term.label_offset
    again = replace(term, of=Zero(), zero_exponent=None) == Term(Zero(), outer, "RD", label_offset=shows)
    if rule != Term(Zero(), bits, "RD", zero) or bits is None or bits < _fineness(datapath) or not again:
        return term
    shown = [] if zero is None else [each for each in (zero + shows, term.zero_exponent) if each is not None]
    hidden = all(beside is not None and each <= beside for each in shown)
    if hidden and outer is not None and outer - shows <= bits:
        return replace(term, of=Exact(tuple(pairs)))
    if not hidden or zero is None or beside is None or outer is None or zero - bits > beside - outer:
        return term
    return replace(term, of=replace(inner, terms=tuple(replace(each, zero_exponent=None) for each in inner.terms)))


def _cancels_to_minus_zero(datapath: Datapath) -> bool:
    every = [getattr(node, "to", None) for node in walk(datapath.tree)]
    return any(to is not None and to.rounding == "RD" and to.zero != "positive" for to in every)


def _fineness(datapath: Datapath) -> int:
    """How far below its label an exact product's last bit lies at most; beyond all cuts where that is not known."""
    rules, operands = datapath.product, [formats.get(name) for name in (datapath.a, datapath.b)]
    known = rules.to is None and rules.split is None and not rules.missing_columns and datapath.scale is None
    return sum(fmt.fraction_bits for fmt in operands) + 1 if known and operands[0].is_float else FAR
