"""Cuts that are made again: of a term by the first cut of the result, of a step's result by the next step."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe import formats
from mmaprobe.equivalence.bounds import accumulator_span, start_span, trace
from mmaprobe.equivalence.headroom import granularity, headroom
from mmaprobe.equivalence.spans import NOTHING, Span
from mmaprobe.formats import Format
from mmaprobe.parameters.datapath import Accumulator, Datapath, Fused, Products, Term, walk


def cut_again(old: Datapath, new: Datapath, place: str) -> bool:
    """Whether only the fraction bits of the one term beside C changed, and both cuts are made again by the first cut.

    Let the term's label be e, C's E, the larger.  The term is a multiple of
    2**(e - g) and at most 2**(e + h), so with n bits it is cut only where
    e <= E - n + g - 1.  Where n >= g + h + 1 it is then at most 2**(E - 2), the sum at least
    2**(E - 1) if C is normal, and the first cut, f bits below that, is not below 2**(E - 1 - f):
    no finer than the term's where n >= f + 1, and where the term keeps every bit.  Both round
    down and C is a multiple of the finer place, so the coarser cut decides.  At the lowest exponent, C's label if C is
    subnormal, a zero's if C is zero, the first cut is f bits below it in any case.
    """
    index = _index(place)
    tree, rival = old.tree, new.tree
    if index is None or not isinstance(tree, Fused) or not isinstance(rival, Fused) or tree.to is None or old == new:
        return False
    if len(tree.terms) != 2 or len(rival.terms) != 2 or not isinstance(tree.terms[1 - index].of, Accumulator):
        return False
    if not _plain(tree):
        return False
    term, c, first = tree.terms[index], tree.terms[1 - index], tree.to.first
    mine, other = term.fraction_bits, rival.terms[index].fraction_bits
    terms = tuple(replace(t, fraction_bits=other) if i == index else t for i, t in enumerate(tree.terms))
    numbers = [bits for bits in (mine, other) if bits is not None]
    if new != replace(old, tree=replace(tree, terms=terms)) or not numbers or first is None:
        return False
    down = first[1] == term.rounding == "RD" and tree.to.rounding != "RD" and term.cutoff is None
    d, fine = formats.get(tree.to.format), granularity(term.of)
    if not down or fine is None or old.c != tree.to.format:
        return False
    low = all(zero is None or zero <= d.min_exponent for zero in (term.zero_exponent, c.zero_exponent))
    whole = c.fraction_bits is None or c.fraction_bits >= d.fraction_bits
    return low and whole and min(numbers) >= max(fine + headroom(old, term.of) + 1, first[0] + 1, d.fraction_bits)


def zero_cut_again(old: Datapath, new: Datapath, place: str) -> bool:
    """Whether only the exponent changed that C shows where it is zero, and what it cuts off the other term the first
    cut cuts off again.

    With C zero the sum is the term, rounded down n bits below the larger of its label and that exponent z, and then by
    the first cut, f bits below the sum or the lowest normal: no finer where z - n <= min_exponent - f.
    """
    index = _index(place)
    tree, rival = old.tree, new.tree
    if index is None or not isinstance(tree, Fused) or not isinstance(rival, Fused) or tree.to is None or old == new:
        return False
    if len(tree.terms) != 2 or len(rival.terms) != 2 or not isinstance(tree.terms[index].of, Accumulator):
        return False
    if not _plain(tree):
        return False
    c, term, first = tree.terms[index], tree.terms[1 - index], tree.to.first
    other = rival.terms[index].zero_exponent
    terms = tuple(replace(t, zero_exponent=other) if i == index else t for i, t in enumerate(tree.terms))
    if new != replace(old, tree=replace(tree, terms=terms)) or first is None or term.cutoff is not None:
        return False
    bits, fine = term.fraction_bits, granularity(term.of)
    if bits is None or fine is None or bits < fine or isinstance(term.of, Accumulator):
        return False
    down = first[1] == term.rounding == "RD" and tree.to.rounding != "RD"
    low = formats.get(tree.to.format).min_exponent + bits - first[0]
    return down and all(zero is None or zero <= low for zero in (c.zero_exponent, other))


def cut_between(old: Datapath, new: Datapath) -> bool:
    """Whether only a wider format is between steps, in which the accumulator keeps bits that the next step cuts off.

    Both formats round toward zero, and a normal sum keeps its exponent: the narrower one holds f bits below it.  The
    next step cuts the accumulator, toward zero, n bits below a label that is not smaller: no lower where n <= f.  No
    sum of any step is below the lowest normal of the narrower format, nor beyond its largest value; or what is there is
    the accumulator alone.
    """
    tree, rival = old.tree, new.tree
    if not isinstance(tree, Fused) or not isinstance(rival, Fused) or tree.to is None or rival.to is None:
        return False
    narrow, wide = formats.get(tree.to.format), formats.get(rival.to.format)
    moved = replace(
        old, tree=replace(tree, to=replace(tree.to, format=wide.name)), result=replace(tree.to, format=old.d)
    )
    own = [term for term in tree.terms if isinstance(term.of, Accumulator)]
    once = sum(isinstance(node, Accumulator) for node in walk(tree)) == len(own) == 1
    if old == new or moved != new or old.result is not None or not once or not _plain(tree) or old.d != narrow.name:
        return False
    held = _contains(narrow, wide) and tree.to.rounding == "RZ" and tree.to.first is None and not old.most_random_bits
    term = own[0]
    cut = term.fraction_bits is not None and term.fraction_bits <= narrow.fraction_bits
    down = term.rounding == "RZ" and term.cutoff is None
    sums = _sums_of_steps(new)
    normal = sums.least >= narrow.min_exponent and sums.top <= narrow.max_exponent + 1
    return held and cut and down and (normal or _alone_at_the_ends(new, tree, term, narrow))


def _alone_at_the_ends(datapath: Datapath, tree: Fused, own: Term, narrow: Format) -> bool:
    """Whether an accumulator below the lowest normal of a format is cut to zero beside a product, and not cut at all
    beside zeros; and one that ends at the largest exponent is one beside which every product is cut to zero."""
    spans = trace(datapath, accumulator_span(datapath)).spans
    beside = [(term, spans[f"tree.terms.{i}.of"]) for i, term in enumerate(tree.terms) if term is not own]
    if not all(isinstance(t.of, Products) and t.rounding == "RZ" and t.cutoff is None for t, _ in beside):
        return False
    zeros = [term.zero_exponent for term in tree.terms if term.zero_exponent is not None]
    bits, lowest = own.fraction_bits, narrow.min_exponent - narrow.fraction_bits
    if bits is None or bits < narrow.fraction_bits or start_span(datapath).lowest < lowest:
        return False
    whole = all(zero - bits <= lowest for zero in zeros)
    cut = all(narrow.min_exponent <= part.label_low - bits for _, part in beside)
    places = [term.fraction_bits for term, _ in beside]
    small = all(
        n is not None and part.top <= narrow.max_exponent - n for n, (_, part) in zip(places, beside, strict=True)
    )
    count = sum(len(term.of.lanes) for term, _ in beside if isinstance(term.of, Products))
    few = all(part.top + count.bit_length() <= narrow.max_exponent for _, part in beside)
    return whole and cut and small and few and start_span(datapath).top <= narrow.max_exponent + 1


def _contains(narrow: Format, wide: Format) -> bool:
    finer = wide.fraction_bits >= narrow.fraction_bits
    lower = wide.min_exponent <= narrow.min_exponent and wide.max_exponent >= narrow.max_exponent
    whole = narrow.max_fraction == (1 << narrow.fraction_bits) - 1
    return finer and lower and whole and all(fmt.is_float and fmt.signed and fmt.infinity for fmt in (narrow, wide))


def _sums_of_steps(datapath: Datapath) -> Span:
    """A span that holds of the sums of all steps, step by step."""
    accumulator, found = start_span(datapath), NOTHING
    for _ in datapath.steps:
        spans = trace(datapath, accumulator).spans
        found, accumulator = found.join(spans["tree.to"]), accumulator.join(spans["tree"])
    return found


def _plain(tree: Fused) -> bool:
    """Whether no term, inside too, shows another label than its own or is complemented."""
    sums = [node for node in walk(tree) if isinstance(node, Fused)]
    return not any(node.complement or any(term.label_offset for term in node.terms) for node in sums)


def _index(place: str) -> int | None:
    head, _, last = place.rpartition(".")
    return int(last) if head == "tree.terms" and last in ("0", "1") else None
