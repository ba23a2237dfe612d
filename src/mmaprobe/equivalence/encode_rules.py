"""Rules of the checker about one Encode; the span at its place is what enters it."""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe import formats
from mmaprobe.equivalence import record_rules
from mmaprobe.equivalence.cases import Case
from mmaprobe.equivalence.spans import Span, exact_in, vanishes
from mmaprobe.equivalence.zero_signs import complements
from mmaprobe.parameters.datapath import Encode, Exact, Fma


def encodes(case: Case) -> tuple[Encode, Encode, Span, formats.Format]:
    old, new = case.both()
    if not isinstance(old, Encode) or not isinstance(new, Encode):
        raise KeyError(case.place)
    return old, new, case.spans[case.place], formats.get(old.format)


def _zeros_alike(case: Case, old: Encode, new: Encode) -> bool:
    """Whether zero sums have the same sign where it shows: rounding down makes it that of what cancels, in the sums
    inside as well, whose zeros a complement sees."""
    positive = old.zero == "positive" and not complements(case.old)
    return case.place == "product.to" or positive or "RD" not in (old.rounding, new.rounding)


def never_rounds(case: Case) -> bool:
    old, new, span, fmt = encodes(case)
    zeros = _zeros_alike(case, old, new)
    exact = exact_in(span, fmt.fraction_bits, fmt.min_exponent)
    return fmt.infinity and zeros and exact and _stays_finite(span, old) and old.first is None


def flushed_or_exact(case: Case) -> bool:
    old, new, span, fmt = encodes(case)
    zeros = _zeros_alike(case, old, new)
    fits = span.width <= fmt.fraction_bits and old.first is None and old.subnormals != "keep"
    alike = old.overflow != "ieee" or _direction(old.rounding) == _direction(new.rounding)
    return fmt.infinity and zeros and fits and (alike or _stays_finite(span, old))


def _direction(rounding: str) -> str:
    """Roundings of one direction give the same result beyond the largest finite value."""
    return {"RO": "RZ", "RU": "RU", "RD": "RD", "RZ": "RZ"}.get(rounding, "nearest or away")


def _stays_finite(span: Span, to: Encode) -> bool:
    """No rounding, nor a first cut, brings a value of the span over the largest finite value."""
    fmt = formats.get(to.format)
    bits = fmt.fraction_bits if to.first is None else min(fmt.fraction_bits, to.first[0])
    if (
        to.rounding == "RZ"
        and (to.first is None or to.first[1] == "RZ")
        and fmt.max_fraction + 1 == 1 << fmt.fraction_bits
    ):
        return span.top <= fmt.max_exponent + 1
    return span.top <= fmt.max_exponent or (span.top == fmt.max_exponent + 1 and span.width <= bits)


def never_tiny(case: Case) -> bool:
    _, _, span, fmt = encodes(case)
    return fmt.is_float and span.least >= fmt.min_exponent


def tiny_is_exact(case: Case) -> bool:
    old, _, span, fmt = encodes(case)
    return fmt.is_float and span.lowest >= fmt.min_exponent - fmt.fraction_bits and old.first is None


def rounds_inward(case: Case) -> bool:
    old, _, _, fmt = encodes(case)
    inward = old.rounding == "RZ" and (old.first is None or old.first[1] == "RZ")
    return fmt.is_float and inward and (old.underflow == "signed" or old.subnormals == "zero")


def never_vanishes(case: Case) -> bool:
    old, _, span, fmt = encodes(case)
    kept = old.subnormals == "keep" or span.least >= fmt.min_exponent
    return fmt.is_float and ((kept and not vanishes(span, old)) or old.subnormals == "zero")


def vanishes_positive(case: Case) -> bool:
    old, _, _, fmt = encodes(case)
    downward = old.rounding == "RD" and (old.first is None or old.first[1] == "RD")
    return fmt.is_float and downward and old.subnormals == "keep"


def never_overflows(case: Case) -> bool:
    old, _, span, fmt = encodes(case)
    return fmt.infinity and _stays_finite(span, old)


def first_is_exact(case: Case) -> bool:
    old, new, span, fmt = encodes(case)
    cuts = [to.first[0] for to in (old, new) if to.first is not None]
    return fmt.is_float and all(exact_in(span, bits, fmt.min_exponent) for bits in cuts)


def no_negative_zero(case: Case) -> bool:
    old, _, span, _ = encodes(case)
    return old.rounding != "RD" and not span.minus_zero


def positive_underflow(case: Case) -> bool:
    old, new, _, _ = encodes(case)
    return old.underflow == new.underflow == "positive" and "keep" not in (old.subnormals, new.subnormals)


def ties_alike(case: Case) -> bool:
    """Only the way of a tie changed, to even or away, and what is rounded there is rounded alone, toward zero, to a
    format of fewer bits.

    Every value of that format ends in a zero here: a tie below it is rounded to it both ways, one above it to it or to
    the next here, and any other tie to two values between which, and at which, that format has none.  A tie between
    zero and the smallest value is flushed, or there is none.
    """
    old, new, span, fine = encodes(case)
    outer = record_rules.part_at(case.old, case.place.removesuffix(".terms.0.to"))
    if not isinstance(outer, Exact) or len(outer.terms) != 1 or outer.scaled or outer.to is None:
        return False
    if isinstance(outer.terms[0], Fma) and len(outer.terms[0].lanes) > 1:  # a chain rounds at every lane
        return False
    if {old.rounding, new.rounding} != {"RNE", "RNA"} or outer.to.rounding != "RZ" or outer.to.first is not None:
        return False
    coarse = formats.get(outer.to.format)
    fewer = coarse.is_float and coarse.fraction_bits < fine.fraction_bits and coarse.max_exponent <= fine.max_exponent
    low = coarse.min_exponent - coarse.fraction_bits > fine.min_exponent - fine.fraction_bits
    vanishing = old.subnormals == "keep" and span.lowest < fine.min_exponent - fine.fraction_bits
    return fewer and low and not vanishing and fine.max_fraction == (1 << fine.fraction_bits) - 1


Rule = Callable[[Case], bool]
RULES: dict[str, tuple[Rule, str, frozenset[str]]] = {
    "never rounds": (never_rounds, "every value is one of the format, so nothing is rounded",
                     frozenset({"rounding", "random_bits", "random_from"})),
    "flushed or exact": (
        flushed_or_exact, "a normal value fits the format without rounding, a tiny one is flushed in any case",
        frozenset({"rounding", "tininess"})),
    "never tiny": (never_tiny, "no value other than zero is below the lowest normal",
                   frozenset({"subnormals", "tininess", "underflow"})),
    "tiny is exact": (tiny_is_exact, "every value is a multiple of the result's lowest place, so a tiny one needs no "
                      "rounding", frozenset({"tininess"})),
    "rounds inward": (rounds_inward, "rounded toward zero, a tiny value stays tiny and no other becomes tiny",
                      frozenset({"tininess"})),
    "positive underflow": (positive_underflow, "a flushed value becomes the positive zero either way",
                           frozenset({"subnormals"})),
    "ties alike": (ties_alike, "what is rounded there is rounded again, toward zero, to fewer bits: no tie shows",
                   frozenset({"rounding"})),
    "never vanishes": (never_vanishes, "no value other than zero becomes a zero whose sign is still to be chosen",
                       frozenset({"underflow"})),
    "vanishes positive": (vanishes_positive, "rounded down, only positive values become zero",
                          frozenset({"underflow"})),
    "never overflows": (never_overflows, "no value exceeds the largest finite one", frozenset({"overflow"})),
    "first is exact": (first_is_exact, "no value has bits below the first cut", frozenset({"first"})),
    "no negative zero": (no_negative_zero, "one operand is never -0, so no zero sum is negative", frozenset({"zero"})),
}  # fmt: skip
"""By name: the check, the sentence, and the fields that it speaks of."""
