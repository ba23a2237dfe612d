"""The mask experiment: +M on one leaf, -M on another, units elsewhere; which units survive."""

from __future__ import annotations

from itertools import combinations

from mmaprobe.probing.session import Session
from mmaprobe.probing.structure import Leaf, Loss, Lost
from mmaprobe.probing.terms import Value, power


def mask(session: Session, pairs: list[tuple[Leaf, Leaf]], window: int, strict: bool) -> Loss | None:
    """Surviving units u = 2**(m - window) of pairs of leaves; None where an answer is no count of units.

    Not ``strict``: a trace that M left behind, a multiple of far more than all units, is taken off.
    """
    m, unit = session.high, power(session.high - window)
    answers = session.sums(({i: power(m), j: -power(m)} for i, j in pairs), unit)
    counts: Loss = {}
    for (i, j), answer in zip(pairs, answers, strict=True):
        count = _count(session, answer, window, strict)
        if count is None:
            return None
        counts[i, j] = counts[j, i] = count
    return counts


def lost_leaves(session: Session, window: int, strict: bool) -> Lost | None:
    """For each pair of leaves those that vanish (the two included): the mask with one unit at a time."""
    m, unit, leaves = session.high, power(session.high - window), session.leaves
    cases = [(i, j, k) for i, j in combinations(leaves, 2) for k in leaves if k not in (i, j)]
    answers = session.sums({i: power(m), j: -power(m), k: unit} for i, j, k in cases)
    lost: dict[tuple[Leaf, Leaf], set[Leaf]] = {(i, j): {i, j} for i in leaves for j in leaves if i != j}
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
