"""Sizes of pairs within ranges to the accumulators that products are dealt out to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from mmaprobe.derivation.schedules.cuts import Cut, Order
from mmaprobe.derivation.schedules.orders import Numbers, order_of
from mmaprobe.derivation.schedules.pairs import Pairs
from mmaprobe.parameters.schedule import MOST_ACCUMULATORS, Accumulators, GemmKernel, Join, Promotion, Ranges

JOINS = ("chain", "pairwise", "halves")
"""Orders in which accumulators are added."""
RESTS = ("first", "after")
"""What steps beyond the last whole block of a range are added to."""
LONGEST_RUN = 128
"""Longest run of steps of one accumulator that is tried."""
SHORT = 32
"""Ranges up to this length may have accumulators that no step goes to."""
BLOCKS = 32
"""Multiples of count * run that a block may be."""
CHECKED = 400
"""Pairs that every dealing is held against before it is held against all."""


def kernels(cuts: Sequence[Cut], pairs: Pairs, fmt: str, rng: np.random.Generator) -> list[GemmKernel]:
    """Every kernel of these cuts that agrees with all pairs; its ranges are given ones.

    One range that is dealt out, and promoted accumulators, are tried where nothing plainer agrees.  The first of the
    cuts is one range: one chain of it may be what ranges of which the last has one lane seem to be."""
    some = pairs.some(CHECKED, rng)
    one_chain = GemmKernel("kernel", Ranges("given", lengths=cuts[0][0]), Join(fmt), Accumulators(fmt))
    plain = [one_chain] if fits(one_chain, pairs) else []
    proper = [cut for cut in cuts if len(cut[0]) > 1]
    for promoted in (False,) if plain else (False, True):
        for among in (proper, [] if plain else cuts[:1]):
            found = [
                kernel
                for lengths, order in among
                for kernel in dealt_out(lengths, order, pairs, fmt, promoted)
                if fits(kernel, some) and fits(kernel, pairs)
            ]
            if found:
                return plain + found
    return plain


def dealt_out(lengths: tuple[int, ...], order: Order, pairs: Pairs, fmt: str, promoted: bool) -> Iterator[GemmKernel]:
    """Kernels of one cut that the sizes of a range's first lane leave; not all of them fit."""
    ranges, join = Ranges("given", lengths=lengths), Join(fmt, order)
    for accumulators, promotion in _dealings(lengths, pairs, fmt, promoted):
        yield GemmKernel("kernel", ranges, join, accumulators, promotion=promotion)


def fits(kernel: GemmKernel, pairs: Pairs, k: int | None = None) -> bool:
    """Whether all pairs have the sizes that the kernel's order gives them.

    Of two lanes of one accumulator the later one's step may keep some of its own lanes, and a step that both are in
    any."""
    lanes = sum(kernel.ranges.lengths) if k is None else k
    order, width = order_of(kernel, lanes), kernel.step.width
    most = order.sizes(pairs.p, pairs.q)
    if width == 1:
        return bool((most == pairs.size).all())
    own, ends = order.sums[-1], order.prefixes[-1]
    alone = own[pairs.p] != own[pairs.q]
    least = np.where(alone, most, np.where(ends[pairs.p] == ends[pairs.q], 0, most - width + 1))
    return bool(((least <= pairs.size) & (pairs.size <= most)).all())


def _dealings(
    lengths: tuple[int, ...], pairs: Pairs, fmt: str, promoted: bool
) -> Iterator[tuple[Accumulators, Promotion | None]]:
    """Ways to deal out a range that its first lane leaves."""
    at, length, size = _from_first(lengths, pairs)
    longest = max(lengths)
    for count, run in _counts(at, length, size, longest, promoted):
        everies: list[int | None] = [None]
        if promoted:
            everies = list(_promotions(at, length, size, count, run))
        blocks = [1] if count == 1 else _blocks(count * run, longest)
        joins = JOINS[:1] if count < 3 else JOINS if count & (count - 1) == 0 else JOINS[:2]
        for every in everies:
            for block in blocks:
                for join, rest in product(joins, RESTS if block > 1 and not promoted else RESTS[:1]):
                    promotion = None if every is None else Promotion(every, fmt)
                    yield Accumulators(fmt, count, run, block, "zero", join, rest), promotion  # type: ignore[arg-type]


def _from_first(lengths: tuple[int, ...], pairs: Pairs) -> tuple[Numbers, Numbers, Numbers]:
    """Of the pairs of a range's first lane with another of its lanes: that lane's place, the range's length, sizes."""
    starts = np.r_[0, np.cumsum(lengths)[:-1]]
    number = np.repeat(np.arange(len(lengths)), lengths)
    own = (number[pairs.p] == number[pairs.q]) & (pairs.p == starts[number[pairs.p]])
    which = number[pairs.p[own]]
    return pairs.q[own] - starts[which], np.array(lengths)[which], pairs.size[own]


def _counts(at: Numbers, length: Numbers, size: Numbers, longest: int, promoted: bool) -> Iterator[tuple[int, int]]:
    """count and run that leave the lanes of accumulator 0 where the sizes say they are."""
    low = at < np.maximum(length // 2, 1)
    at, size, length = at[low], size[low], length[low]
    if promoted or (size == at + 1).all():
        yield 1, 1
    for count in range(2, min(MOST_ACCUMULATORS, longest) + 1):
        most = longest // 2 if longest <= SHORT else min(LONGEST_RUN, longest // count)
        run = np.arange(1, max(1, most) + 1)[:, None]
        place, turn = at[None, :] // run, at[None, :] // (run * count)
        own = place % count == 0
        through = turn * run + at[None, :] % run + 1
        before = np.minimum(turn * run + run, at[None, :])
        exact = through < 3 if promoted else np.ones_like(own)
        good = np.where(own, np.where(exact, size == through, size >= through), size > before).all(1)
        for each in run[good, 0]:
            if _met_as_one(at // each % count, length, size):
                yield count, int(each)


def _met_as_one(accumulator: Numbers, length: Numbers, size: Numbers) -> bool:
    """Whether a range's first lane meets all lanes of another accumulator in one sum."""
    other = accumulator > 0
    met = np.unique(np.stack([length[other], accumulator[other], size[other]]), axis=1)
    return np.unique(met[:2], axis=1).shape == met[:2].shape


def _promotions(at: Numbers, length: Numbers, size: Numbers, count: int, run: int) -> Iterator[int]:
    """After how many steps the sizes of accumulator 0 first jump."""
    own = (at // run % count == 0) & (at < np.maximum(length // 2, 1))
    place, seen, total = (at // (run * count) * run + at % run)[own], size[own], (length // count)[own] - run
    late = place[seen != place + 1]
    if not len(late):
        return
    early = place[(seen == place + 1) & (place < late.min())]
    for every in range(max(2, int(early.max(initial=0)) + 1), int(late.min()) + 1):
        chunk = (place // every + 1) * every
        later = (seen == chunk) | ((chunk > total) & (seen > place))
        if np.where(place < every, seen == place + 1, later).all():
            yield every


def _blocks(unit: int, longest: int) -> list[int]:
    most = max(1, longest // unit)
    return [1, *(unit * each for each in range(1, min(BLOCKS, most) + 1))]
