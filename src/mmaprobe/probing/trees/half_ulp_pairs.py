"""Half-ulp pairs: which lanes are added before C is rounded, without any large anchor.

c = 2**(h + q), with q the largest at which a lane of -2**h alone gives exactly c - 2**h: below a
power of two that is a last place, above it half of one.  Beside c, and beside the next number
c + 2**(h + 1), +2**h on lanes i and j gives just one place more where the two meet before C is
rounded; where they do not, no rounding gives that beside both.  ``+h`` on i, ``-h`` on j:
c where they meet or j's step comes first, since c - 2**h is a number; something else where
i's step does.  Where an alignment cuts 2**h before it is added nothing is learnt.  Works in
formats with a window of a few bits.  One lane is paired with all others, then one of those it
did not meet, and so on; from a lane that meets no other on, all are paired with all.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.session.exact_values import UnrepresentableError, power
from mmaprobe.probing.session.session import ProbeSession


async def group_by_half_ulps(session: ProbeSession) -> list[tuple[int, ...]] | None:
    """Steps of lanes in the order in which they reach C; None where the experiment cannot be built or tells nothing."""
    if not session.instruction.c or session.k < 2:
        return None
    most = session.d.fraction_bits + 1
    h = min(session.high, session.formats["c"].max_exponent - most - 1, session.d.max_exponent - most - 2)
    try:
        half = power(h)
        bits = await climb(
            session, 2, most,
            lambda q: {"c": power(h + q), 0: -half}, lambda q, value: value == power(h + q) - half,
        )  # fmt: skip
        c = power(h + bits)
        if bits < 2 or any(v != c - half for v in await session.sums({"c": c, k: -half} for k in range(session.k))):
            return None
        groups = await _groups(session, c, half)
        return None if groups is None else await _in_order(session, groups, c, half)
    except UnrepresentableError:
        return None


async def _groups(session: ProbeSession, c: Fraction, half: Fraction) -> list[tuple[int, ...]] | None:
    groups: list[tuple[int, ...]] = []
    rest = tuple(range(session.k))
    met: dict[tuple[int, int], bool] = {}
    while rest:
        alone = bool(groups) and len(groups[-1]) == 1
        pairs = list(combinations(rest, 2)) if alone else [(rest[0], lane) for lane in rest[1:]]
        pairs = [pair for pair in pairs if pair not in met]
        even = await session.sums_at((c, half, half), [("c", i, j) for i, j in pairs])
        odd = await session.sums_at((c + 2 * half, half, half), [("c", i, j) for i, j in pairs])
        met |= {
            pair: (x, y) == (c + 2 * half, c + 4 * half) for pair, x, y in zip(pairs, even, odd, strict=True)
        }  # fmt: skip
        groups.append((rest[0], *(lane for lane in rest[1:] if met[rest[0], lane])))
        rest = tuple(lane for lane in rest if lane not in groups[-1])
    home = {lane: number for number, group in enumerate(groups) for lane in group}
    return groups if all(together == (home[i] == home[j]) for (i, j), together in met.items()) else None


async def _in_order(
    session: ProbeSession, groups: list[tuple[int, ...]], c: Fraction, half: Fraction
) -> list[tuple[int, ...]] | None:
    """The groups by how many come before; None where those numbers are no order."""
    pairs = list(permutations(range(len(groups)), 2))
    answers = await session.sums({"c": c, groups[x][0]: half, groups[y][0]: -half} for x, y in pairs)
    before = [0] * len(groups)
    for (_, y), answer in zip(pairs, answers, strict=True):
        before[y] += answer != c
    ordered = sorted(range(len(groups)), key=before.__getitem__)
    return [groups[x] for x in ordered] if [before[x] for x in ordered] == list(range(len(groups))) else None
