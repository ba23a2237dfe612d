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

from mmaprobe.probing.ladders import STEPS
from mmaprobe.probing.rounds import together
from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Node, leaves_of
from mmaprobe.probing.terms import power
from mmaprobe.probing.vectors import Vector

MOST = 160
"""Steps after which the ladder ends in a lower bound."""


@dataclass(frozen=True)
class Tipped:
    """Bits kept; ``bounded`` where the ladder ended before anything was lost."""

    bits: int
    bounded: bool


async def tips(session: Session, tree: Node) -> Tipped | None:
    """Fraction bits of products in the last sum, found out once; None where no combination tips."""
    found: Tipped | None = await session.fact("tipping", lambda asker: _tips(asker, tree))
    return found


async def _tips(session: Session, tree: Node) -> Tipped | None:
    heads = [leaves_of(child)[0] for child in tree.children]
    anchor: Leaf = "c" if "c" in heads else heads[0]
    others = [head for head in heads if head != anchor]
    ways = [(half, sign) for half in (Fraction(0), Fraction(1, 2)) for sign in (1, -1)]
    tried = await together(*(_ladder(session, anchor, others, half, sign) for half, sign in ways))
    return min((tipped for tipped in tried if tipped is not None), key=lambda tipped: tipped.bits, default=None)


async def _ladder(session: Session, anchor: Leaf, others: list[Leaf], half: Fraction, sign: int) -> Tipped | None:
    start = session.d.fraction_bits + 2
    kept, last = start - 1, start + MOST
    while kept + 1 < last:
        steps = range(kept + 1, min(kept + 1 + STEPS, last))
        pairs = [_pair(session, anchor, others, half, sign, t) for t in steps]
        ready = [pair for pair in pairs[: pairs.index(None) if None in pairs else None] if pair is not None]
        codes = await session.ask([vector for pair in ready for vector in pair])
        tipped = [codes[2 * n] != codes[2 * n + 1] for n in range(len(ready))]
        count = next((n for n, tip in enumerate(tipped) if not tip), len(tipped))
        kept += count
        if count < len(steps):
            return Tipped(kept, count == len(ready)) if kept >= start else None
    return Tipped(kept, True)


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
