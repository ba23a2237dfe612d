"""The mask experiment: +M on one leaf, -M on another, units elsewhere; which units survive."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.probing.session.exact_values import Value, power
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Loss, Lost

Pair = tuple[Leaf, Leaf]

SIGNS = ((1, 1), (-1, 1), (1, -1), (-1, -1))
"""Of M on the first leaf and of the units: of what one leaves a trace in a directed rounding, another is swallowed."""


async def mask(session: ProbeSession, pairs: Sequence[Pair]) -> Loss | None:
    """Surviving units of the lowest kind beside each pair of leaves; None where an answer is no count of units.

    Pairs that give none are asked again with other signs.
    """
    counts: Loss = {}
    for anchor, unit in SIGNS:
        left = [pair for pair in pairs if pair not in counts]
        m, u = anchor * power(session.high), unit * power(session.low)
        answers = await session.sums_at((m, -m), left, u)
        for (i, j), answer in zip(left, answers, strict=True):
            count = None if answer is None else answer / u
            if count is not None and count.denominator == 1 and 0 <= count <= len(session.leaves) - 2:
                counts[i, j] = counts[j, i] = count.numerator
    return counts if all(pair in counts for pair in pairs) else None


async def lost_leaves(session: ProbeSession, pairs: Sequence[Pair], among: Sequence[Leaf] | None = None) -> Lost | None:
    """For each of the pairs the leaves that vanish (the two included): the mask with one unit at a time.

    ``among``: the leaves that hold the unit in turn, all where None; None where an answer is not finite.
    """
    asked = session.leaves if among is None else among
    cases = [(i, j, k) for i, j in pairs for k in asked if k not in (i, j)]
    lost: Lost = {pair: set(pair) for i, j in pairs for pair in ((i, j), (j, i))}
    for (i, j, k), gone in zip(cases, await vanished(session, cases), strict=True):
        if gone is None:
            return None
        if gone:
            lost[i, j].add(k)
            lost[j, i].add(k)
    return lost


async def vanished(session: ProbeSession, cases: Sequence[tuple[Leaf, Leaf, Leaf]]) -> list[bool | None]:
    """Whether a unit on the third leaf vanishes beside +M on the first and -M on the second; None where the answer is
    not finite.

    One that leaves a trace, anything but itself, has; where M and -M leave something themselves, one that leaves none.
    """
    unit, m = power(session.low), power(session.high)
    answers: list[Value] = await session.sums_at((m, -m, unit), cases)
    if session.complement is None:
        return [None if answer is None else answer != unit for answer in answers]
    bare = await session.sums_at((m, -m), [(i, j) for i, j, _ in cases])
    return [None if x is None or y is None else x == y for x, y in zip(answers, bare, strict=True)]
