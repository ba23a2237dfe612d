"""The order in which a kernel of a schedule adds K lanes, as sums of terms within sums of terms.

Every sum is a chain: its terms are added one after the other.  A term is a lane or a sum of the next level.  So for two
lanes the smallest partial sum that holds both lies in the deepest sum that both are in, and ends with the later one's
term there: its size is the larger of two prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe.parameters.schedule import Accumulators, GemmKernel, Promotion

Numbers = NDArray[np.int64]
REMEMBERED = 128
"""Orders of single ranges that are kept."""
Level = tuple[Numbers, Numbers]
"""For each part the sum that it is in, and the size of that sum up to and with the part."""


@dataclass(frozen=True)
class SumOrder:
    """``sums`` and ``prefixes`` (levels, K): the sum that a lane is in at each level, from the whole one inwards, and
    the size of that sum up to the lane's term."""

    sums: Numbers
    prefixes: Numbers

    def sizes(self, p: Numbers, q: Numbers) -> Numbers:
        """Products in the smallest partial sum that holds lanes p and q, which are two; arrays that fit each other."""
        size: Numbers = np.maximum(self.prefixes[0][p], self.prefixes[0][q])
        for sums, prefixes in zip(self.sums[1:], self.prefixes[1:], strict=True):
            size = np.where(sums[p] == sums[q], np.maximum(prefixes[p], prefixes[q]), size)
        return size


def order_of(kernel: GemmKernel, k: int, width: int | None = None) -> SumOrder:
    """The order of a kernel at K; ``width``: lanes of one step, which are added together, other than its own."""
    ranges, width = kernel.ranges.of(k), width or kernel.step.width
    lengths = np.array([len(each) for each in ranges], np.int64)
    top = joined(lengths, kernel.join.order)
    levels = [(np.repeat(sums, lengths), np.repeat(prefixes, lengths)) for sums, prefixes in top]
    known = {length: _within(kernel.accumulators, kernel.promotion, length, width) for length in {*map(len, ranges)}}
    parts = [known[len(each)] for each in ranges]
    for depth in range(len(parts[0]) if parts else 0):
        base, sums, prefixes = 0, [], []
        for part in parts:
            sums.append(part[depth][0] + base)
            prefixes.append(part[depth][1])
            base += int(part[depth][0].max()) + 1
        levels.append((np.concatenate(sums), np.concatenate(prefixes)))
    return SumOrder(np.array([sums for sums, _ in levels]), np.array([prefixes for _, prefixes in levels]))


def joined(sizes: Numbers, order: str) -> list[Level]:
    """The levels of a sum of parts of these sizes: ``chain``, ``last_first``, ``pairwise`` or ``halves``."""
    if order in ("chain", "last_first"):
        turned = int(order == "last_first")
        return [(np.zeros(len(sizes), np.int64), np.roll(np.cumsum(np.roll(sizes, turned)), -turned))]
    count, number, held = len(sizes), np.arange(len(sizes)), sizes.astype(np.int64)
    levels = list[Level]()
    while count > 1:
        half = (count + 1) // 2
        above, second = (number // 2, number % 2) if order == "pairwise" else (number % half, number // half)
        groups = np.arange(count)
        upper = groups // 2 if order == "pairwise" else groups % half
        whole = np.bincount(upper, held, half).astype(np.int64)
        levels.append((above, np.where(second, whole[above], held[number])))
        number, count, held = above, half, whole
    return levels[::-1] or [(number, held)]


@lru_cache(maxsize=REMEMBERED)
def _within(accumulators: Accumulators, promotion: Promotion | None, length: int, width: int) -> list[Level]:
    """The levels of one range: accumulators, promotions, steps."""
    steps = -(-length // width)
    lanes = np.full(steps, width)
    lanes[-1:] = length - (steps - 1) * width
    own, place = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    dealt = accumulators.dealt(steps)
    for number, each in enumerate(dealt):
        own[each], place[each] = number, np.arange(len(each))
    totals = np.array([lanes[each].sum() for each in dealt], np.int64)
    after = accumulators.after(steps).places()
    own[after] = len(dealt) + np.arange(len(after))
    levels = [(sums[own], prefixes[own]) for sums, prefixes in with_rest(accumulators, totals, lanes[after])]
    later = levels[0][1][after]
    if promotion is not None:
        chunk = own * steps + place // promotion.every
        ends = np.zeros(steps, np.int64)
        for each in dealt:
            at = np.minimum((np.arange(len(each)) // promotion.every + 1) * promotion.every, len(each))
            ends[each] = np.cumsum(lanes[each])[at - 1]
        levels.append((own, ends))
        own = chunk
    running = _running(own, lanes)
    running[after] = later
    levels.append((own, running))
    return [(np.repeat(sums, lanes), np.repeat(prefixes, lanes)) for sums, prefixes in levels]


def with_rest(accumulators: Accumulators, totals: Numbers, rest: Numbers) -> list[Level]:
    """The levels of a sum of accumulators of these sizes and of steps that go to none of them; the parts are those,
    then these."""
    before, own = accumulators.rest == "before", np.arange(len(rest))
    second = list(accumulators.terms()[1])
    later = (np.delete(totals, second) if before else totals).sum() + np.cumsum(rest)
    levels = [
        (np.r_[sums, sums.max(initial=0) + 1 + own], np.r_[prefixes, later])
        for sums, prefixes in joined(totals, accumulators.join)
    ]
    if before:  # one sum, in the second term of which the rest is, too
        levels[0] = np.zeros_like(levels[0][0]), levels[0][1]
        levels[0][1][second] += rest.sum()
    if accumulators.rest == "after":
        whole = np.full(len(totals), totals.sum())
        levels.insert(0, (np.zeros(len(totals) + len(rest), np.int64), np.r_[whole, later]))
    return levels


def _running(group: Numbers, sizes: Numbers) -> Numbers:
    """Running sums of sizes within each group, in the order of places."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(sizes[order])
    first = np.r_[True, group[order][1:] != group[order][:-1]]
    before = np.maximum.accumulate(np.where(first, total - sizes[order], 0))
    result = np.empty_like(total)
    result[order] = total - before
    return result
