"""The order of one class of elements at one K: kernels that agree with few answers; where they differ is asked next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmaprobe.derivation.schedules.cuts import cuts
from mmaprobe.derivation.schedules.dealings import fits, kernels
from mmaprobe.derivation.schedules.orders import Numbers, order_of
from mmaprobe.derivation.schedules.pairs import ClassView, Pairs, joint
from mmaprobe.parameters.schedule import GemmKernel

ROUNDS = 4
"""Times that a search begins anew with the answers that none of its kernels gave."""
LANES = 96
"""Lanes that are asked about together, in several calls where a class is smaller."""
ANCHORS = 2
"""Lanes, the first and the last, that all of these are asked with at least."""
LOOKED_AT = 4096
"""Pairs on which kernels are compared with each other before one is asked."""
NEAR = 70
"""Lanes apart that every second of these pairs is at most."""


@dataclass(frozen=True)
class OrderRead:
    """What one class answered at one K, and the kernels that agree, alike at this K; none: the order is outside of the
    grammar."""

    k: int
    pairs: Pairs
    kernels: tuple[GemmKernel, ...]


def read_order(view: ClassView, k: int, fmt: str, rng: np.random.Generator) -> OrderRead:
    """Ask until the kernels left are alike at this K and foretell a call of random pairs, which may be one that was
    made for other elements."""
    overheard = _overheard(view, k, fmt, rng)
    if overheard is not None:
        return overheard
    pairs = survey(view, k)
    for _ in range(ROUNDS):
        living = [] if pairs.misfits else kernels(cuts(pairs, k), pairs, fmt)
        living, pairs = apart(view, k, living, pairs, rng)
        if not living:
            return OrderRead(k, pairs, ())
        told = view.ask(k, *random_lanes(view, k, rng))
        pairs = joint([pairs, told])
        if not told.misfits and all(fits(each, told, k) for each in living):
            return OrderRead(k, pairs, tuple(living))
    return OrderRead(k, pairs, ())


def _overheard(view: ClassView, k: int, fmt: str, rng: np.random.Generator) -> OrderRead | None:
    """The order by calls that were made for other classes, the last of which is foretold; None where they tell none."""
    heard = [each for each in view.overheard().get(k, []) if len(each)]
    if len(heard) < 2 or any(each.misfits for each in heard):
        return None
    told, last = joint(heard[:-1]), heard[-1]
    if min(int((told.p == 0).sum()), int((told.q == k - 1).sum())) < min(LANES, k // 2):
        return None  # of the first and the last lane too little is known
    living, pairs = apart(view, k, kernels(cuts(told, k), told, fmt), told, rng)
    if not living or not all(fits(each, last, k) for each in living):
        return None
    return OrderRead(k, joint([pairs, last]), tuple(living))


def apart(
    view: ClassView, k: int, living: list[GemmKernel], pairs: Pairs, rng: np.random.Generator
) -> tuple[list[GemmKernel], Pairs]:
    """Ask pairs on which living kernels differ until those left are alike at this K."""
    while len(living) > 1:
        differing = differences(living, k, rng)
        if not len(differing[0]):
            break
        told = ask_grid(view, k, *differing)
        pairs = joint([pairs, told])
        left = [each for each in living if fits(each, told, k)]
        if told.misfits or len(left) == len(living):
            return [], pairs
        living = left
    return living, pairs


def differences(living: Sequence[GemmKernel], k: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Pairs of lanes of which the kernels say different sizes, in random order."""
    p, q = sampled(k, rng)
    table = np.array([order_of(each, k).sizes(p, q) for each in living])
    where = rng.permutation(np.flatnonzero((table != table[0]).any(0)))
    return p[where], q[where]


def sampled(k: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Pairs of lanes to compare kernels on: all of few lanes, else random ones, half of them near each other."""
    if k * k <= 2 * LOOKED_AT:
        every: tuple[Numbers, Numbers] = np.triu_indices(k, 1)
        return every
    p = rng.integers(0, k, LOOKED_AT)
    p[: LOOKED_AT // 8] = rng.integers(max(0, k - NEAR), k, LOOKED_AT // 8)
    near = np.clip(p + rng.integers(-NEAR, NEAR + 1, LOOKED_AT), 0, k - 1)
    q = np.where(np.arange(LOOKED_AT) % 2, near, rng.integers(0, k, LOOKED_AT))
    return p[p != q], q[p != q]


def survey(view: ClassView, k: int) -> Pairs:
    """The first, the last and spread lanes, against the first and the last and, in a large class, others.

    Where no lane can be on both sides these others are asked against the first and the last by themselves."""
    long, short = view.sides(k)
    ends = np.unique(np.linspace(0, k - 1, max(short, ANCHORS)).astype(np.int64))
    found = view.ask(k, _spread_lanes(k, max(long, LANES)), ends)
    if len(ends) > ANCHORS and view.apart(k):
        found = joint([found, view.ask(k, ends[1:-1], ends[[0, -1]])])
    return found


def _spread_lanes(k: int, count: int) -> Numbers:
    """So many lanes at most: the first and the last ones, and some in between."""
    if k <= count:
        return np.arange(k)
    back = np.geomspace(count // 8, k // 2, count // 4).astype(np.int64)  # a last half lies somewhere in each octave
    dense = np.r_[np.arange(count // 2), np.arange(k - count // 8, k)]
    spread = np.linspace(count // 2, k - 1, count - len(dense) - len(back)).astype(np.int64)
    return np.unique(np.r_[dense, k - 1 - back, spread])


def random_lanes(view: ClassView, k: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """Random lanes for both sides of a call, with which a foretelling is tried."""
    long, short = view.sides(k)
    return rng.integers(0, k, max(long, ANCHORS)), rng.integers(0, k, max(short, ANCHORS))


def ask_grid(view: ClassView, k: int, p: Numbers, q: Numbers) -> Pairs:
    """As many of these pairs, the first of them, as one call asks, and all others of their lanes."""
    alone = view.ask_pairs(k, p, q)
    if alone is not None:
        return alone
    long, short = view.sides(k)
    if view.apart(k):
        p, q = _parted(p, q, long, short)
    count = min(long, len(p))
    while count > 1 and len(np.unique(q[:count])) > short:
        count //= 2
    return view.ask(k, np.unique(p[:count]), np.unique(q[:count]))


def _parted(p: Numbers, q: Numbers, long: int, short: int) -> tuple[Numbers, Numbers]:
    """Of these pairs, the first of them, those that have their lanes on two sides of which no lane is on both."""
    along, across, chosen = set[int](), set[int](), list[tuple[int, int]]()
    for pair in zip(p.tolist(), q.tolist(), strict=True):
        for one, two in (pair, pair[::-1]):
            fits = len(along | {one}) <= long and len(across | {two}) <= short
            if fits and one not in across and two not in along:
                along.add(one)
                across.add(two)
                chosen.append((one, two))
                break
        if len(chosen) == long:
            break
    found = np.array(chosen, np.int64)
    return found[:, 0], found[:, 1]
