"""Half-ulp pairs: which lanes are added before C is rounded, without any large anchor.

c = 2**(h+p) with p result bits, so 2**h is half of C's last place.  ``+h`` on
lanes i and j moves C by one place where the two meet before C is rounded (for
RZ, RD and RNE alike) and leaves it where they do not.  ``+h`` on i, ``-h`` on
j: half a place below C if i's step comes first (the +h is lost, the -h is not:
below a power of two the spacing is half); else C.  Works in formats with a
window of a few bits.  One lane is paired with all others, then one of those it
did not meet, and so on; from a lane that meets no other on, all are paired with all.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

from mmaprobe.probing.session import Session
from mmaprobe.probing.terms import UnrepresentableError, power


async def group_by_half_ulps(session: Session) -> list[tuple[int, ...]] | None:
    """Steps of lanes in the order in which they reach C; None where the experiment cannot be built."""
    if not session.instruction.c or session.k < 2:
        return None
    bits = session.d.fraction_bits + 1
    h = min(session.high, session.formats["c"].max_exponent - bits - 1, session.d.max_exponent - bits - 2)
    try:
        groups = await _groups(session, power(h + bits), power(h))
        return None if groups is None else await _in_order(session, groups, power(h + bits), power(h))
    except UnrepresentableError:
        return None


async def _groups(session: Session, c: Fraction, half: Fraction) -> list[tuple[int, ...]] | None:
    groups: list[tuple[int, ...]] = []
    rest = tuple(range(session.k))
    met: dict[tuple[int, int], bool] = {}
    while rest:
        alone = bool(groups) and len(groups[-1]) == 1
        pairs = list(combinations(rest, 2)) if alone else [(rest[0], lane) for lane in rest[1:]]
        pairs = [pair for pair in pairs if pair not in met]
        answers = await session.sums({"c": c, i: half, j: half} for i, j in pairs)
        if any(answer not in (c, c + 2 * half) for answer in answers):
            return None
        met |= {pair: answer == c + 2 * half for pair, answer in zip(pairs, answers, strict=True)}
        groups.append((rest[0], *(lane for lane in rest[1:] if met[rest[0], lane])))
        rest = tuple(lane for lane in rest if lane not in groups[-1])
    home = {lane: number for number, group in enumerate(groups) for lane in group}
    return groups if all(together == (home[i] == home[j]) for (i, j), together in met.items()) else None


async def _in_order(
    session: Session, groups: list[tuple[int, ...]], c: Fraction, half: Fraction
) -> list[tuple[int, ...]]:
    pairs = list(permutations(range(len(groups)), 2))
    answers = await session.sums({"c": c, groups[x][0]: half, groups[y][0]: -half} for x, y in pairs)
    before = [0] * len(groups)
    for (_, y), answer in zip(pairs, answers, strict=True):
        before[y] += answer != c
    return [groups[x] for x in sorted(range(len(groups)), key=before.__getitem__)]
