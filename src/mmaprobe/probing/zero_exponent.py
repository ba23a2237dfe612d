"""The exponent that a zero term shows to the alignment.

Everything is zero except a lane whose sum sits at the result's last place (one,
half or one and a half places) and a tiny lane +-2**x that tips its rounding.  A
zero term with a large exponent raises the largest exponent of the sum, so the
tiny term is cut as soon as x < e_zero - F; the lowest x that still tips gives
e_zero = x + F, where F is the measured precision of products.

Answer: ``{"exponent": e or None, "at_most": e or None, "place": x or None}``: ``at_most`` where
the base lane itself was the largest, so that zeros show that exponent or a lower one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.accumulator_precision import kept_bits
from mmaprobe.probing.rounds import together
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf
from mmaprobe.probing.summation_tree import tree_of
from mmaprobe.probing.terms import power, top_exponent
from mmaprobe.probing.vectors import Vector


async def probe_zero_exponent(session: Session) -> Finding:
    """The zero exponent (see the module); exact and None where no sum aligns its terms."""
    none: dict[str, Any] = {"exponent": None, "at_most": None, "place": None}
    if not session.is_float:
        return session.finding("exact", none, "integers: nothing is aligned")
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", none, "needs a summation tree of two leaves or more")
    if not any(node.fused for node in tree.walk()):
        return session.finding("exact", none, "no fused sum: nothing is aligned")
    node = next(node for node in tree.walk() if node.fused)
    lanes = [leaf for leaf in node.children if isinstance(leaf, int)]
    if len(lanes) < 3:
        return session.finding("inconclusive", none, "needs three lanes in one fused sum")
    kept = (await kept_bits(session)).get(lanes[0], session.window)
    if kept >= session.window:
        return session.finding("bounded", none, "no cut within the window: no place where zeros could show")
    bases = (Fraction(1), Fraction(1, 2), Fraction(3, 2))
    places = await together(*(_ladders(session, lanes, base) for base in bases))
    found = [(x, base) for base, some in zip(bases, places, strict=True) for x in some]
    if not found:
        return session.finding("inconclusive", none, "no tiny term can tip the result's last place")
    place, base = max(found, key=lambda pair: pair[0])
    exponent = place + kept
    own = top_exponent(base * _last_place(session))
    if exponent <= own:
        answer = none | {"at_most": own, "place": place}
        return session.finding("bounded", answer, f"zeros show 2^{own} or less: the other terms hide it")
    answer = none | {"exponent": exponent, "place": place}
    return session.finding("exact", answer, f"a zero shows 2^{exponent} (cut below 2^{place})")


def _last_place(session: Session) -> Fraction:
    return power(session.d.min_exponent - session.d.fraction_bits)


async def _ladders(session: Session, lanes: list[int], base: Fraction) -> list[int]:
    """The lowest exponent that tips a base, of each sign of the tiny term that tips at all and stops tipping."""
    out = []
    for sign in (1, -1):
        start = top_exponent(base * _last_place(session)) - 2
        pairs: list[tuple[Vector, Vector]] = []
        one = _pair(session, lanes, Fraction(base), Fraction(0))
        for x in range(start, start - 2 * session.d.fraction_bits - 60, -1):
            other = _pair(session, lanes, Fraction(base), sign * power(x))
            if one is None or other is None:
                break
            pairs.append((one, other))
        codes = await session.ask([vector for pair in pairs for vector in pair])
        tipped = [codes[2 * n] != codes[2 * n + 1] for n in range(len(pairs))]
        if tipped and tipped[0] and not tipped[-1]:
            count = tipped.index(False)
            session.note(pairs[count - 1][1], codes[2 * count - 1], f"2^{start - count + 1} still tips the last place")
            session.note(pairs[count][1], codes[2 * count + 1], f"2^{start - count} does not")
            out.append(start - count + 1)
    return out


def _pair(session: Session, lanes: list[int], base: Fraction, tiny: Fraction) -> Vector | None:
    """``base`` last places (on one or two lanes) and the tiny term on the last lane."""
    whole, half = int(base), base - int(base)
    terms: dict[Leaf, Fraction] = {lanes[0]: whole * _last_place(session), lanes[1]: half * _last_place(session)}
    terms[lanes[-1]] = tiny
    return session.try_vector(terms)
