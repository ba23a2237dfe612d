"""The exponent that a zero term shows to the alignment, zero products and a zero C.

Everything is zero except a lane whose sum sits at the result's last place (one,
half or one and a half places) and a tiny lane +-2**x that tips its rounding.  A
zero term with a large exponent raises the largest exponent of the sum, so the
tiny term is cut as soon as x < e_zero - F; the lowest x that still tips gives
e_zero = x + F, where F is the measured precision of products.  Then all lanes that
were zero hold the smallest product instead: only C is still zero, and the lowest x is C's.

Answer: ``{"exponent": e or None, "at_most": e or None, "place": x or None, "c": e or None}``:
``at_most`` where the base lane itself was the largest, so that zeros show that exponent or a
lower one, and where no product reaches the result's last place: the lowest product then comes
out whole beside zeros, so that they show no more than F bits above it.  ``c``: what a zero C
alone shows, None where it shows no more than the other terms.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.ladders import count_good
from mmaprobe.probing.experiments.pair_alignment import nothing_aligned
from mmaprobe.probing.questions.accumulator_precision import kept_bits
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power, top_exponent
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node

THREE = 3
"""Lanes of one sum that the experiment takes."""

GUARD = 8
"""Places between the tiny terms and what stands in for zeros."""


async def probe_zero_exponent(session: ProbeSession) -> Finding:
    """The zero exponent (see the module); exact and None where no sum aligns its terms."""
    none: dict[str, Any] = {"exponent": None, "at_most": None, "place": None, "c": None}
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", none, "needs a summation tree of two leaves or more")
    if not any(node.fused for node in tree.walk()):
        return await nothing_aligned(session, tree, none)
    node = max((node for node in tree.walk() if node.fused), key=lambda node: len(_lanes(node)))
    lanes = _lanes(node)
    bits = await kept_bits(session)
    kept = bits.get(lanes[0], session.window) if lanes else session.window
    if kept >= session.window:
        return session.finding("bounded", none, "no cut within the window: no place where zeros could show")
    if len(lanes) < THREE:
        return _bound(session, kept, "no sum has three products, to tip a rounding beside zeros")
    bases = (Fraction(1), Fraction(1, 2), Fraction(3, 2))
    filled = _filler(session) if session.instruction.c else None
    ways = [(base, filler) for base in bases for filler in dict.fromkeys((Fraction(0), filled)) if filler is not None]
    places = await together(*(_lowest(session, lanes, base, filler) for base, filler in ways))
    found = {way: place for way, place in zip(ways, places, strict=True) if place is not None}
    zeros = [(place, base) for (base, filler), place in found.items() if filler == 0]
    if not zeros:
        return _bound(session, kept, "no product tips the result's last place")
    place, base = max(zeros)
    exponent = place + kept
    own = top_exponent(base * _last_place(session))
    if exponent <= own:
        answer = none | {"at_most": own, "place": place}
        return session.finding("bounded", answer, f"zeros show 2^{own} or less: the other terms hide it")
    alone = max((p + kept for (_, filler), p in found.items() if filler != 0), default=None)
    c = alone if alone is not None and alone > own else None
    answer = none | {"exponent": exponent, "place": place, "c": c}
    text = f"a zero shows 2^{exponent} (cut below 2^{place})"
    text += "" if filled is None else f"; C alone {f'2^{c}' if c is not None else 'no more than other terms'}"
    return session.finding("exact", answer, text)


def _lanes(node: Node) -> list[int]:
    return [leaf for leaf in node.children if isinstance(leaf, int)]


def _bound(session: ProbeSession, kept: int, why: str) -> Finding:
    """The lowest product comes out whole beside zeros (``window.unit_exponent``): they show no more than it does."""
    at_most = session.low + kept
    answer = {"exponent": None, "at_most": at_most, "place": None, "c": None}
    text = f"out of reach of these formats ({why}): 2^{at_most} or less"
    return session.finding("bounded", answer, text)


def _last_place(session: ProbeSession) -> Fraction:
    return power(session.d.min_exponent - session.d.fraction_bits)


def _filler(session: ProbeSession) -> Fraction | None:
    """The smallest product of normal operands, if it is far below the result's last place."""
    smallest = power(session.formats["a"].min_exponent + session.formats["b"].min_exponent)
    return smallest if smallest < _last_place(session) * power(-GUARD) else None


async def _lowest(session: ProbeSession, lanes: list[int], base: Fraction, filler: Fraction) -> int | None:
    """The lowest exponent that tips a base, with the sign of the tiny term that tips and stops tipping."""
    found = await together(*(_ladder(session, lanes, base, filler, sign) for sign in (1, -1)))
    return max((place for place in found if place is not None), default=None)


async def _ladder(session: ProbeSession, lanes: list[int], base: Fraction, filler: Fraction, sign: int) -> int | None:
    start = top_exponent(base * _last_place(session)) - 2
    stop = start - 2 * session.d.fraction_bits - 60
    stop = max(stop, top_exponent(filler) + GUARD) if filler else stop
    plain = _sum(session, lanes, base, Fraction(0), filler)
    tiny: dict[int, Vector] = {}
    for x in range(start, stop, -1):
        vector = _sum(session, lanes, base, sign * power(x), filler)
        if vector is None or plain is None:
            break
        tiny[x] = vector

    async def judge(some: list[int]) -> list[bool]:
        without, *codes = await session.ask([bare, *(tiny[x] for x in some)])
        return [code != without for code in codes]

    if plain is None or not tiny:
        return None
    bare, steps = plain, list(tiny)
    count = await count_good(steps, judge)
    if count in (0, len(steps)):
        return None
    for n, text in ((count - 1, "still tips the last place"), (count, "does not")):
        session.note(tiny[steps[n]], (await session.ask([tiny[steps[n]]]))[0], f"2^{steps[n]} {text}")
    return steps[count - 1]


def _sum(session: ProbeSession, lanes: list[int], base: Fraction, tiny: Fraction, filler: Fraction) -> Vector | None:
    """``base`` last places (on one or two lanes) and the tiny term on the last lane; the filler on all others."""
    whole, half = int(base), base - int(base)
    terms: dict[Leaf, Fraction] = dict.fromkeys(range(session.k), filler)
    terms |= {lanes[0]: whole * _last_place(session), lanes[1]: half * _last_place(session)}
    terms = {leaf: value or filler for leaf, value in terms.items()}
    if tiny:
        terms[lanes[-1]] = tiny
    return session.try_vector(terms)


PROBE = Probe(
    order=180,
    asks="which exponent zero terms show, and a zero C alone",
    rivals="an exponent, at most one",
    experiment=probe_zero_exponent,
    applies=floats,
    otherwise=({"exponent": None, "at_most": None, "place": None, "c": None}, "integers: nothing is aligned"),
)
