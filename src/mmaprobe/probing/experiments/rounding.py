"""What the eleven roundings make of a quarter, a half, three quarters of a place; which of them fit answers.

Tables: the roundings of ``formats.ROUNDINGS`` on both signs.  Two places where
a rounding can act are told apart: on the small ``term`` alone (an alignment
cut: directed modes look at the term's sign), or on the ``sum`` of anchor and
term (a rounded result: they look at the sum's sign).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmaprobe.formats import ROUNDINGS
from mmaprobe.probing.experiments.anchor_places import AnchorPlace
from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.session.exact_values import Value, power
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector

PLACES = tuple(Fraction(n, 4) for n in (1, 2, 3, 5, 6, 7, 9, 10, 11))
"""Multiples of the last place that tell all eleven roundings apart, with both signs."""

FEW = tuple(Fraction(n, 4) for n in (1, 2, 3, 6))
"""Those that still tell them apart, for places that are expected to do as another one did."""


def round_to(value: Fraction, quantum: Fraction, rounding: str) -> Fraction:
    """``value`` rounded to a multiple of ``quantum``."""
    scaled = value / quantum
    low = math.floor(scaled)
    rest = scaled - low
    if rest == 0:
        return value
    negative, odd = value < 0, low % 2 == 1
    up = {
        "RU": True, "RD": False, "RZ": negative, "RA": not negative, "RO": not odd,
    }.get(rounding)  # fmt: skip
    if up is None:
        tie = {"RNU": True, "RND": False, "RNZ": negative, "RNA": not negative, "RNE": odd, "RNO": not odd}[rounding]
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and tie)
    return (low + up) * quantum


@dataclass(frozen=True)
class RoundingCase:
    """An anchor sum, a small term beside it, and what came out beside the anchor."""

    anchor: Fraction
    term: Fraction
    got: Value
    vector: Vector
    code: int


def fit(cases: Sequence[RoundingCase], quantum: Fraction) -> dict[str, list[str]]:
    """The roundings that explain every case, acting on the ``term`` or on the ``sum``."""
    return {
        "term": [r for r in ROUNDINGS if all(c.got == round_to(c.term, quantum, r) for c in cases)],
        "sum": [r for r in ROUNDINGS if all(c.got == round_to(c.anchor + c.term, quantum, r) - c.anchor
                                            for c in cases)],
    }  # fmt: skip


async def fraction_bits(session: ProbeSession, place: AnchorPlace, most: int) -> int | None:
    """Largest t <= most such that every 2**(m-s), s <= t, comes out whole beside an anchor of 1.5 * 2**m.

    ``m`` is the exponent of the anchor sum; None where not even the first place can be built.  With
    an anchor above every product the ladder starts at the largest product.
    """
    anchor, m = anchor_of(session, place)
    start = max(0, m - session.high - 1) if place.height is not None else 0
    bits = await climb(
        session, start + 1, min(most, m - session.lowest(place.term)),
        lambda t: place.terms(anchor, power(m - t)), lambda t, value: place.rest(value, anchor) == power(m - t),
    )  # fmt: skip
    return bits or None


async def keeps(session: ProbeSession, place: AnchorPlace, bits: int) -> bool:
    """Whether a place keeps just so many fraction bits: the last one comes out whole, half of it does not."""
    anchor, m = anchor_of(session, place)
    terms = [power(m - t) for t in (bits, bits + 1) if m - t >= session.lowest(place.term)]
    values = await session.sums(place.terms(anchor, term) for term in terms)
    whole = [place.rest(value, anchor) == term for value, term in zip(values, terms, strict=True)]
    return whole == [True, False][: len(terms)]


async def watch(
    session: ProbeSession,
    place: AnchorPlace,
    bits: int,
    least: int | None = None,
    places: Sequence[Fraction] = PLACES,
    anchors: Sequence[int] = (1, -1),
) -> tuple[list[RoundingCase], Fraction]:
    """Cases around the last place of ``bits`` fraction bits, and that place.

    Terms with bits below 2**(m - least) are left out (``least`` fraction bits survive an alignment);
    ``anchors``: their signs, which an alignment does not look at.
    """
    anchor, m = anchor_of(session, place)
    quantum = power(m - bits)
    low = session.lowest(place.term)
    floor = power(low if least is None else max(low, m - least))
    if any((x * quantum / floor).denominator > 1 for x in places):
        places = [x for x in PLACES if (x * quantum / floor).denominator == 1]
    wanted = [(s * anchor, t * x * quantum) for s in anchors for t in (1, -1) for x in places]
    pairs = [(a, t, v) for a, t in wanted if (v := session.try_vector(place.terms(a, t))) is not None]
    codes = await session.ask([v for _, _, v in pairs])
    values = session.decode(codes)
    return [
        RoundingCase(a * len(place.anchors), t, place.rest(value, a), v, code)
        for (a, t, v), value, code in zip(pairs, values, codes, strict=True)
    ], quantum


def anchor_of(session: ProbeSession, place: AnchorPlace) -> tuple[Fraction, int]:
    """1.5 * 2**h for each anchor leaf, and the exponent of their sum; 1.5 keeps sums off a change of binade."""
    height = session.high - len(place.anchors).bit_length() + 1 if place.height is None else place.height
    return 3 * power(height - 1), height + len(place.anchors).bit_length() - 1


def keep_evidence(session: ProbeSession, cases: Sequence[RoundingCase], count: int = 4) -> None:
    """The first cases that were rounded, as witnesses."""
    telling = [case for case in cases if case.got != case.term] or list(cases)
    for case in telling[:count]:
        session.note(case.vector, case.code, f"anchor {case.anchor}, term {case.term}")
