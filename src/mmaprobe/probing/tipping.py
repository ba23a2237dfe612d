"""The smallest term that tips a rounding: fraction bits of the last sum without any cancellation.

C (or a lane) holds 1.5 * 2**m, another lane holds half a last place or nothing,
a third the tiny term +-2**(m-t).  Some of these combinations change the
result when the tiny term is there (a borrow under RZ, a broken tie to
nearest); the largest t that still does is the last bit that the sum keeps.
The tiny term stays at the lowest product and C moves, so formats with few
exponents reach far.  Where there are only two leaves the half place and the
tiny term share one product.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Node, leaves_of
from mmaprobe.probing.terms import power
from mmaprobe.probing.vectors import Vector


@dataclass(frozen=True)
class Tipped:
    """Bits kept; ``bounded`` where the ladder ended before anything was lost."""

    bits: int
    bounded: bool


def tips(session: Session, tree: Node) -> Tipped | None:
    """Fraction bits of products in the last sum; None where no combination tips."""
    heads = [leaves_of(child)[0] for child in tree.children]
    anchor: Leaf = "c" if "c" in heads else heads[0]
    others = [head for head in heads if head != anchor]
    found = []
    for half in (Fraction(0), Fraction(1, 2)):
        for sign in (1, -1):
            kept = _ladder(session, anchor, others, half, sign)
            if kept is not None:
                found.append(kept)
    return min(found, key=lambda tipped: tipped.bits) if found else None


def _ladder(session: Session, anchor: Leaf, others: list[Leaf], half: Fraction, sign: int) -> Tipped | None:
    start = session.d.fraction_bits + 2
    steps: list[tuple[Vector, Vector]] = []
    for t in range(start, start + 160):
        pair = _pair(session, anchor, others, half, sign, t)
        if pair is None:
            break
        steps.append(pair)
    if not steps:
        return None
    codes = session.ask([vector for pair in steps for vector in pair])
    tipped = [codes[2 * n] != codes[2 * n + 1] for n in range(len(steps))]
    if not tipped[0]:
        return None
    count = next((n for n, tip in enumerate(tipped) if not tip), len(tipped))
    session.note(steps[count - 1][1], codes[2 * count - 1], f"tipped by a term {start + count - 1} bits down")
    return Tipped(start + count - 1, count == len(tipped))


def _pair(
    session: Session, anchor: Leaf, others: list[Leaf], half: Fraction, sign: int, t: int
) -> tuple[Vector, Vector] | None:
    """The sum without and with the tiny term, m as low as the formats allow."""
    m = session.low + t
    big, place, tiny = 3 * power(m - 1), power(m - session.d.fraction_bits), sign * power(m - t)
    base: dict[Leaf, Fraction] = {anchor: big}
    full: dict[Leaf, Fraction] = {anchor: big}
    if half and len(others) > 1:
        base[others[1]] = full[others[1]] = half * place
        full[others[0]] = tiny
    else:
        base[others[0]], full[others[0]] = half * place, half * place + tiny
    one, other = session.try_vector(base), session.try_vector(full)
    return None if one is None or other is None or m > session.d.max_exponent - 2 else (one, other)
