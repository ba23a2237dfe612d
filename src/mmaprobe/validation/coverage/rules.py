"""Which cells there are: six rules, each a row of ``RULES``.

A rule maps a vector to a whole number, the number of its cell, and says which cells the formats can reach.  Let p_1,
..., p_L be the products of the lanes that are multiplied (block scales in them, the signs of modifiers too), C the
addend where there is one, S their exact sum, and e(x) = floor(log2 |x|).  Nothing here knows what a unit computes:
the cells are those of the question, not of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mmaprobe.formats import INFINITE, NAN, SUBNORMAL, ZERO, Decoded, Format, bit_length
from mmaprobe.validation.coverage.reach import SumReach
from mmaprobe.validation.coverage.sums import Bools, Ints
from mmaprobe.validation.coverage.terms import SumTerms

NOT_FINITE, NO_TERM, NO_C, NO_PRODUCT, TO_ZERO, EVERY_LANE = range(1 << 20, (1 << 20) + 6)
"""Cells that are no number."""
WORDS = {
    NOT_FINITE: "a term is not finite", NO_TERM: "no term but zeros", NO_C: "C is zero",
    NO_PRODUCT: "no product but zeros", TO_ZERO: "to zero", EVERY_LANE: "every lane",
}  # fmt: skip
"""What they are called."""
CellNumbers = Sequence[int]


@dataclass(frozen=True)
class CellRule:
    """``numbers``: the cell of each vector; ``cells``: those that the formats can reach; ``called``: the name of one;
    ``why``: why there are no more, where there are not."""

    name: str
    numbers: Callable[[SumTerms, SumReach], Ints]
    cells: Callable[[SumReach], CellNumbers]
    called: Callable[[int, SumReach], str]
    why: Callable[[SumReach], str]


def _doubling(count: Ints) -> Ints:
    """0, 1, 2, 3 to 4, 5 to 8, ... as 0, 1, 2, 3, 4, ..."""
    return np.where(count > 0, bit_length(np.maximum(count - 1, 0)) + 1, 0)


def _first(bucket: int) -> int:
    """The least count of a bucket of ``_doubling``."""
    return bucket if bucket < 3 else (1 << (bucket - 2)) + 1


def _span(bucket: int, most: int) -> str:
    """The counts of a bucket, in words."""
    first, last = _first(bucket), min(bucket if bucket < 2 else 1 << (bucket - 1), most)
    return f"{first}" if first >= last else f"{first} to {last}"


def live_lanes(terms: SumTerms, reach: SumReach) -> Ints:
    """How many products are not 0 (an infinite or NaN one is not): 0, 1, 2, 3 to 4, 5 to 8, ..., L.

    A fault of one lane shows where that lane is alone; one of an adder tree where its other inputs are there.
    """
    count = (~terms.zero[:, terms.products]).sum(axis=1)
    return np.where(count == terms.lanes, EVERY_LANE, _doubling(count))


def _lane_cells(reach: SumReach) -> CellNumbers:
    return [*(bucket for bucket in range(reach.lanes.bit_length() + 2) if _first(bucket) < reach.lanes), EVERY_LANE]


def zero_lanes(terms: SumTerms, reach: SumReach) -> Ints:
    """The signs of the products that are 0, as a set, beside a term that is not: {}, {+0}, {-0}, both; and where every
    term is 0 the signs of products and of C, which decide the sign of the result.

    sign(p_k) = sign(a_k) xor sign(b_k); a zero of integers is +0.  Number: s + 4 c where s has bit 0 for +0 among the
    products and bit 1 for -0, and c is 0 beside a term that is not 0, else 1 without C, 2 where it is +0, 3 where -0.
    """
    zero, negative = terms.zero[:, terms.products], terms.negative[:, terms.products]
    signs = (zero & ~negative).any(axis=1) + 2 * (zero & negative).any(axis=1)
    c = np.where(terms.negative[:, -1], 3, 2) if terms.has_c else 1
    return np.asarray(signs + 4 * np.where(terms.nothing, c, 0))


def _zero_cells(reach: SumReach) -> CellNumbers:
    negative = reach.a.is_float and reach.b.is_float and reach.signed
    one = [1, *[2] * negative]
    both = [3] * (negative and reach.lanes > 1)
    some = [sign for sign in (*one, *both) if reach.lanes + reach.has_c > 1 + (sign == 3)]
    c_negative = reach.c is not None and reach.c.has_sign_bit
    alone = [2, *[3] * c_negative] if reach.has_c else [1]
    return [0, *some, *(sign + 4 * c for c in alone for sign in (*one, *both))]


def _zeros_called(number: int, reach: SumReach) -> str:
    signs = ("no product is", "+0", "-0", "+0 and -0")[number % 4]
    c = ("", ", no other term", ", C is +0, no other term", ", C is -0, no other term")[number // 4]
    return signs + c


@lru_cache(maxsize=64)
def _starts(reach: SumReach) -> tuple[int, ...]:
    """Where cells of places begin: 0, 1, 2, 3, 5, 9, ... by doubling; where D's P bits end P - 1, P and P + 1 have
    cells of their own, and what is further has one."""
    ends = range(reach.places - 2, reach.places + 2)
    return (*(first for bucket in range(reach.places) if (first := _first(bucket)) < ends[0]), *ends)


def _stepped(places: Ints, reach: SumReach) -> Ints:
    """The cells of places, with their sign."""
    return np.asarray(np.sign(places) * (np.searchsorted(_starts(reach), abs(places), side="right") - 1))


def _steps_between(low: int, high: int, reach: SumReach) -> CellNumbers:
    """The cells in which the places from ``low`` to ``high`` lie."""
    ends = _stepped(np.array([low, high]), reach).tolist()
    return range(ends[0], ends[1] + 1)


def _step_called(number: int, reach: SumReach) -> str:
    """The places of a cell, in words."""
    starts, sign = _starts(reach), "-" if number < 0 else "+"
    first = starts[abs(number)]
    if abs(number) == len(starts) - 1:
        return f"{sign}{first} and further"
    last = starts[abs(number) + 1] - 1
    return f"{sign if first else ''}{first}" + (f" to {sign}{last}" if last > first else "")


def c_distance(terms: SumTerms, reach: SumReach) -> Ints:
    """e(C) - max_k e(p_k), in steps (``_starts``) up to a place beyond D's precision.

    How far C is shifted against the products, or they against C, before they are added.
    """
    if not terms.has_c:
        return np.where(terms.finite, NO_C, NOT_FINITE)
    distance = _stepped(terms.exponent[:, -1] - terms.largest(terms.products), reach)
    c, product = terms.live[:, -1], terms.live[:, terms.products].any(axis=1)
    return np.select([~terms.finite, terms.nothing, ~c, ~product], [NOT_FINITE, NO_TERM, NO_C, NO_PRODUCT], distance)


def _distance_cells(reach: SumReach) -> CellNumbers:
    special = [NOT_FINITE] * reach.special
    if reach.c_low is None:
        return [NO_C, *special]
    distances = _steps_between(reach.c_low - reach.top, reach.c_top - reach.low, reach)
    return [*distances, NO_TERM, NO_C, NO_PRODUCT, *special]


def _distance_why(reach: SumReach) -> str:
    if reach.c_low is None:
        return "the instruction has no C"
    return f"products lie from 2^{reach.low} to 2^{reach.top}, C from 2^{reach.c_low} to 2^{reach.c_top}"


def cancellation(terms: SumTerms, reach: SumReach) -> Ints:
    """max e(x) over all terms x that are not 0, minus e(S): the leading places that cancel; below 0 where the sum
    carries above its largest term, to as many places as 2^n <= L equal products reach.

    In steps (``_starts``) up to a place beyond D's precision; S = 0 of terms that are not in another cell.
    """
    depth = terms.largest(slice(None)) - terms.sums.top
    deep = np.where(depth < 0, np.maximum(depth, -_carries(reach)), _stepped(depth, reach))
    return np.select([~terms.finite, terms.nothing, terms.sums.zero], [NOT_FINITE, NO_TERM, TO_ZERO], deep)


def _carries(reach: SumReach) -> int:
    meets = reach.c_low is not None and reach.c_low <= reach.top and reach.low <= reach.c_top
    return (reach.lanes + (meets and reach.lanes == 1)).bit_length() - 1


def _depth_cells(reach: SumReach) -> CellNumbers:
    zero = [TO_ZERO] * (reach.cancels is not None)
    return [
        *range(-_carries(reach), 0),
        *_steps_between(0, reach.depth, reach),
        *zero,
        NO_TERM,
        *[NOT_FINITE] * reach.special,
    ]


def _depth_called(number: int, reach: SumReach) -> str:
    if number >= 0:
        return _step_called(number, reach).replace("+", "")
    return f"{number} and further" if number == -_carries(reach) else str(number)


def _depth_why(reach: SumReach) -> str:
    if reach.cancels is None:
        return "no two terms have different signs"
    return f"terms have bits from 2^{reach.lowest} on, and certainly cancel up to 2^{reach.cancels}"


EXACT = 0
"""The cell of sums with nothing below the last place."""
TIE = 1
"""That of sums with a half of it."""
RUNS = 7
"""Cells beside a tie, and as many beside a number of D: runs of 1, 2, 3 to 4, ... 17 to 32, and more."""
NEAR_TIE = 2
"""The first cell beside a tie."""
NEAR_EXACT = NEAR_TIE + RUNS
"""The first one beside a number of D."""


def sticky(terms: SumTerms, reach: SumReach) -> Ints:
    """How far below D's last place it is decided where S lies: u = 2^max(e(S) - f, e_min), with f fraction bits of D
    and its lowest value 2^e_min; r = |S| / u mod 1, written 0.h b b b ...: the half bit h, then the run of bits b that
    are alike.

    r = 0 is exact, r = 1/2 a tie.  Else the run's length is what a unit must look past below its half bit: towards a
    tie where b is not h (0.1000..1, 0.0111..0), towards a number of D where it is.
    """
    f = reach.d.fraction_bits
    low = reach.d.min_exponent - (f if reach.d.subnormal else 0) if reach.d.is_float else 0
    place = np.maximum(terms.sums.top - f, low) if reach.d.is_float else np.zeros(len(terms.finite), np.int64)
    any_bit, half, first, run = terms.sums.below(place)
    beside = np.minimum(_doubling(np.maximum(run, 1)), RUNS) - 1
    near = np.where(half != first, NEAR_TIE, NEAR_EXACT) + beside
    tie = half & ~terms.sums.rest(place - 1)
    return np.select(
        [~terms.finite, terms.nothing, terms.sums.zero, ~any_bit, tie], [NOT_FINITE, NO_TERM, TO_ZERO, EXACT, TIE], near
    )


def _sticky_cells(reach: SumReach) -> CellNumbers:
    zero = [TO_ZERO] * (reach.cancels is not None)
    plain = [EXACT, *zero, NO_TERM, *[NOT_FINITE] * reach.special]
    below = reach.sum_top - reach.d.fraction_bits - reach.lowest
    if not reach.d.is_float or below < 1:
        return plain
    runs = [run for run in range(RUNS) if _first(run + 1) <= below - 1]
    return [*plain, TIE, *(NEAR_TIE + run for run in runs), *(NEAR_EXACT + run for run in runs)]


def _sticky_called(number: int, reach: SumReach) -> str:
    if number in (EXACT, TIE):
        return ("exact", "a tie")[number]
    beside, run = ("an exact sum", number - NEAR_EXACT) if number >= NEAR_EXACT else ("a tie", number - NEAR_TIE)
    span = f"over {_first(run + 1) - 1}" if run == RUNS - 1 else _span(run + 1, 1 << RUNS)
    return f"beside {beside}, a run of {span}"


def _sticky_why(reach: SumReach) -> str:
    if not reach.d.is_float:
        return "a sum of integers has no bits below the last place"
    return f"sums lie below 2^{reach.sum_top + 1}, and no term has a bit below 2^{reach.lowest}"


RULES = (
    CellRule("live lanes", live_lanes, _lane_cells, lambda n, reach: _span(n, reach.lanes - 1), lambda _: ""),
    CellRule("zero lanes", zero_lanes, _zero_cells, _zeros_called,
             lambda reach: "" if reach.a.is_float else "an integer's zero has no sign"),
    CellRule("exponent of C above the products'", c_distance, _distance_cells, _step_called, _distance_why),
    CellRule("places that cancel", cancellation, _depth_cells, _depth_called, _depth_why),
    CellRule("below the last place", sticky, _sticky_cells, _sticky_called, _sticky_why),
)  # fmt: skip
"""Every rule by which a vector falls into one cell."""


def name_of(rule: CellRule, number: int, reach: SumReach) -> str:
    """What a cell is called."""
    return WORDS[number] if number in WORDS else rule.called(number, reach)


def specials(terms: SumTerms, reach: SumReach) -> dict[str, tuple[bool, Bools]]:
    """By name whether the formats can reach a cell, and which vectors do; a vector may be in several.

    Of each operand its special codes, in any lane; 0 times infinity, and infinities of both signs among the terms; and
    S beyond D: |S| >= 2^(e_max + 1), 0 < |S| below its least normal, and below its least value.
    """
    found = dict(_codes(terms, reach))
    negative, infinite = terms.negative, terms.infinite
    a, b = terms.operands["a"].kind, terms.operands["b"].kind
    invalid = ((a == ZERO) & (b == INFINITE)) | ((a == INFINITE) & (b == ZERO))
    product, c = reach.a.infinity or reach.b.infinity, reach.c is not None and reach.c.infinity
    found["0 times infinity"] = (product, np.asarray(invalid.any(axis=1)))
    both = (infinite & negative).any(axis=1) & (infinite & ~negative).any(axis=1)
    found["infinities of both signs"] = (product and (reach.lanes > 1 or c), np.asarray(both))
    d, some = reach.d, terms.finite & ~terms.sums.zero
    beyond = d.max_exponent + 1 if d.is_float else d.bits - d.signed
    found[f"|S| of 2^{beyond} or more"] = (reach.sum_top >= beyond, some & (terms.sums.top >= beyond))
    if d.is_float:
        for at in dict.fromkeys((d.min_exponent, d.min_exponent - d.fraction_bits * d.subnormal)):
            found[f"|S| below 2^{at}"] = (reach.lowest < at, some & (terms.sums.top < at))
    return found


def _codes(terms: SumTerms, reach: SumReach) -> Sequence[tuple[str, tuple[bool, Bools]]]:
    """The special codes of each operand."""
    rows: list[tuple[str, tuple[bool, Bools]]] = []
    known: list[tuple[str, str, Format | None]] = [
        ("A", "a", reach.a), ("B", "b", reach.b), ("C", "c", reach.c), ("scale of A", "scale_a", reach.scale),
        ("scale of B", "scale_b", reach.scale),
    ]  # fmt: skip
    for said, name, fmt in known:
        if fmt is None or name not in terms.operands:
            continue
        decoded = terms.operands[name]
        for word, (there, where) in _kinds(fmt, decoded).items():
            rows.append((f"{said} {word}", (there, np.asarray(where.reshape(len(where), -1).any(axis=1)))))
    return rows


def _kinds(fmt: Format, decoded: Decoded) -> dict[str, tuple[bool, Bools]]:
    """The special codes of a format, whether it has them, and where they are."""
    zero = decoded.kind == ZERO
    if not fmt.is_float:
        lowest = decoded.negative & (decoded.significand == 1 << (fmt.bits - 1))
        largest = ~decoded.negative & (decoded.significand == fmt.largest)
        return {"the largest": (True, largest), "the lowest": (fmt.signed and fmt.kind == "integer", lowest)}
    top = (decoded.exponent + fmt.fraction_bits == fmt.max_exponent) & (decoded.kind < INFINITE)
    largest = top & (decoded.significand == (fmt.max_fraction | 1 << fmt.fraction_bits))
    return {
        "a NaN": (fmt.nan != "none", decoded.kind == NAN),
        "infinite": (fmt.infinity, decoded.kind == INFINITE),
        "subnormal": (fmt.subnormal and fmt.fraction_bits > 0, decoded.kind == SUBNORMAL),
        "-0": (fmt.has_sign_bit, zero & decoded.negative),
        "the largest": (True, largest),
    }
