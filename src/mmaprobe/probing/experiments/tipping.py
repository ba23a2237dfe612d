"""The smallest term that tips a rounding: fraction bits of the last sum without any cancellation.

C (or a lane) holds 1.5 * 2**m, another lane holds half a last place or nothing,
a third the tiny term +-2**(m-t).  Some of these combinations change the
result when the tiny term is there (a borrow under RZ, a broken tie to
nearest); the largest t that still does is the last bit that the sum keeps.
The tiny term stays at the lowest product and C moves, so formats with few
exponents reach far.  Where there are only two leaves the half place, or one and a
half, and the tiny term share one product.  What tips may have been rounded up to a
place: that it adds up, or tips in both signs, must show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.probing.experiments.ladders import count_good
from mmaprobe.probing.experiments.tiny_terms import adds_up, comes_out, heads, product_holds, to_nearest
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector
from mmaprobe.probing.tree import Leaf, Node

FIRST = 2
"""Places below C's first one at which the ladder begins."""
MOST = 160
"""Places below C's first one at which it ends in a lower bound."""


@dataclass(frozen=True)
class Tipped:
    """Bits kept; ``bounded`` where the ladder ended before anything was lost; the last vector that tipped."""

    bits: int
    bounded: bool
    shown: Vector


Ways = dict[tuple[Fraction, int], Tipped | None]
"""By the half place beside the anchor, and the sign of the tiny term."""


async def tips(session: ProbeSession, tree: Node) -> Tipped | None:
    """Fraction bits of products in the last sum; None where no combination tips below the places that show anyway."""
    found = await tipped_by(session, tree)
    least = session.d.fraction_bits + 1
    below = [tipped for tipped in found.values() if tipped is not None and tipped.bits > least]
    borrows = [tipped for (half, _), tipped in found.items() if not half and tipped is not None]
    borrows = [tipped for tipped in borrows if tipped.bits == least]
    if not below and borrows and await to_nearest(session, tree):
        return None  # a tie at the result's last place, not a borrow from it
    chosen = min(below or borrows, key=lambda tipped: tipped.bits, default=None)
    if chosen is None:
        return None
    half, sign = next(way for way, tipped in found.items() if tipped is chosen)
    whole = await adds_up(session, tree, half, sign, chosen.bits)
    if chosen.bounded:
        shared = half and len(tree.children) == 2
        signs = {s for (h, s), tipped in found.items() if shared and h and tipped is not None and tipped.bounded}
        both = len(signs) == 2  # as no directed rounding of an alignment does
        return chosen if whole or (whole is None and both) else None
    if whole is None:
        return replace(chosen, bits=chosen.bits - 1, bounded=True)
    return chosen if whole else replace(chosen, bits=chosen.bits - 1)


async def tipped_by(session: ProbeSession, tree: Node) -> Ways:
    """What each combination of a half place and a sign of the tiny term shows, found out once."""
    found: Ways = await session.fact("tipping", lambda asker: ladders_of(asker, tree))
    return found


async def ladders_of(session: ProbeSession, tree: Node) -> Ways:
    """What each combination shows of one sum, every leaf outside of it zero."""
    anchor, others = heads(tree)
    halves = (Fraction(0), Fraction(1, 2), *([Fraction(3, 2)] if len(others) == 1 else []))
    ways = [(half, sign) for half in halves for sign in (1, -1)]
    tried = await together(*(_ladder(session, anchor, others, half, sign) for half, sign in ways))
    return dict(zip(ways, tried, strict=True))


async def _ladder(session: ProbeSession, anchor: Leaf, others: list[Leaf], half: Fraction, sign: int) -> Tipped | None:
    """From two places down: a term above the result's last place tips it trivially.

    A product that holds the half place too has few of the lower ones, those that are a product.
    """
    pairs: dict[int, tuple[Vector, Vector]] = {}
    shared = bool(half) and len(others) == 1
    for t in range(session.d.fraction_bits + 2 if shared else FIRST, MOST):
        pair = _pair(session, anchor, others, half, sign, t)
        if pair is None and pairs and not shared:
            break
        if pair is not None:
            pairs[t] = pair

    async def judge(some: list[int]) -> list[bool]:
        codes = await session.ask([vector for t in some for vector in pairs[t]])
        return [codes[2 * n] != codes[2 * n + 1] for n in range(len(some))]

    steps = list(pairs)
    count = await count_good(steps, judge)
    if count == 0 or steps[count - 1] <= 1:
        return None
    shown, ended = pairs[steps[count - 1]][1], count == len(steps)
    ended = ended or None in await session.values(pairs[steps[count]])  # beyond a range, not below a place
    if not ended and half and len(others) == 1:
        ended = not await product_holds(session, anchor, others[0], half, sign, steps[count])
    elif not ended:
        ended = not await comes_out(session, pairs[steps[count]][1], others[0], sign * power(session.low))
    return Tipped(steps[count - 1], ended, shown)


def _pair(
    session: ProbeSession, anchor: Leaf, others: list[Leaf], half: Fraction, sign: int, t: int
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
