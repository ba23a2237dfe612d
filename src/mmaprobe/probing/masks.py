"""The mask experiment: +M on one leaf, -M on another, units elsewhere; which units survive."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Loss, Lost
from mmaprobe.probing.terms import Value, power


async def mask(session: Session, pairs: list[tuple[Leaf, Leaf]], window: int, strict: bool) -> Loss | None:
    """Surviving units u = 2**(m - window) of pairs of leaves; None where an answer is no count of units.

    Not ``strict``: a trace that M left behind, a multiple of far more than all units, is taken off.
    """
    m, unit = session.high, power(session.high - window)
    answers = await session.sums(({i: power(m), j: -power(m)} for i, j in pairs), unit)
    counts: Loss = {}
    for (i, j), answer in zip(pairs, answers, strict=True):
        count = _count(session, answer, window, strict)
        if count is None:
            return None
        counts[i, j] = counts[j, i] = count
    return counts


async def lost_leaves(
    session: Session, window: int, pairs: Sequence[tuple[Leaf, Leaf]], strict: bool = True
) -> Lost | None:
    """For each of the pairs the leaves that vanish (the two included): the mask with one unit at a time."""
    m, unit = session.high, power(session.high - window)
    cases = [(i, j, k) for i, j in pairs for k in session.leaves if k not in (i, j)]
    answers = await session.sums({i: power(m), j: -power(m), k: unit} for i, j, k in cases)
    lost: Lost = {pair: set(pair) for i, j in pairs for pair in ((i, j), (j, i))}
    for (i, j, k), answer in zip(cases, answers, strict=True):
        count = _count(session, answer, window, strict)
        if count not in (0, 1):
            return None
        if count == 0:
            lost[i, j].add(k)
            lost[j, i].add(k)
    return lost


def _count(session: Session, answer: Value, window: int, strict: bool) -> int | None:
    """Units in an answer."""
    leaves = len(session.leaves)
    count = None if answer is None else answer / power(session.high - window)
    if count is not None and not strict and count.denominator == 1:
        count %= 1 << leaves.bit_length()
    return count.numerator if count is not None and count.denominator == 1 and 0 <= count <= leaves - 2 else None
