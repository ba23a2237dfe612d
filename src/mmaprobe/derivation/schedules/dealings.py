"""Sizes of pairs within ranges to the accumulators that products are dealt out to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from mmaprobe.derivation.schedules.cuts import Cut, Order
from mmaprobe.derivation.schedules.orders import Numbers, SumOrder, order_of, with_rest
from mmaprobe.derivation.schedules.pairs import Pairs
from mmaprobe.parameters.schedule import LONGEST, MOST_ACCUMULATORS, Accumulators, GemmKernel, Join, Promotion, Ranges

JOINS = ("chain", "pairwise", "halves")
"""Orders in which accumulators are added."""
RESTS = ("first", "after", "before")
"""What steps beyond the last whole block of a range are added to; the last one of three accumulators or more."""
MOST_LATE = 4
"""Late steps that are tried at most: those that a loop of a few stages has under way."""
LONGEST_RUN = 128
"""Longest run of steps of one accumulator that is tried."""
SHORT = 32
"""Ranges up to this length may have accumulators that no step goes to."""
REMEMBERED = 1 << 14
"""Dealings of which it is kept how many steps are surely in whole blocks."""
BLOCKS = 32
"""Multiples of count * run that a block may be."""
CHECKED = 400
"""Pairs that a kernel is held against before it is held against all."""


def kernels(cuts: Sequence[Cut], pairs: Pairs, fmt: str) -> list[GemmKernel]:
    """Every kernel of these cuts that agrees with all pairs; its ranges are given ones.

    The first of the cuts is one range.  Where one chain of it agrees, it may be what ranges of which the last has one
    lane seem to be, chains again.  Else ranges are dealt out; one range, and promoted accumulators, where nothing
    plainer agrees."""
    proper = [cut for cut in cuts if len(cut[0]) > 1]
    one_chain = _chains(cuts[0], fmt)
    if fits(one_chain, pairs):
        return [one_chain, *(kernel for kernel in (_chains(cut, fmt) for cut in proper) if fits(kernel, pairs))]
    for promoted in (False, True):
        for among in (proper, cuts[:1]):
            found = [
                kernel
                for lengths, order in among
                for kernel in dealt_out(lengths, order, pairs, fmt, promoted)
                if fits(kernel, pairs)
            ]
            if found:
                return found
    return []


def _chains(cut: Cut, fmt: str) -> GemmKernel:
    """A chain for each range."""
    return GemmKernel("kernel", Ranges("given", lengths=cut[0]), Join(fmt, cut[1]), Accumulators(fmt))


def dealt_out(lengths: tuple[int, ...], order: Order, pairs: Pairs, fmt: str, promoted: bool) -> Iterator[GemmKernel]:
    """Kernels of one cut that the sizes of a range's first lane leave; not all of them fit."""
    ranges, join = Ranges("given", lengths=lengths), Join(fmt, order)
    for accumulators, promotion in _dealings(lengths, pairs, fmt, promoted):
        yield GemmKernel("kernel", ranges, join, accumulators, promotion=promotion)


def fits(kernel: GemmKernel, pairs: Pairs, k: int | None = None) -> bool:
    """Whether all pairs have the sizes that the kernel's order gives them.

    Of two lanes of one accumulator the later one's step may keep some of its own lanes, and a step that both are in
    any."""
    order = order_of(kernel, sum(kernel.ranges.lengths) if k is None else k)
    return all(_agrees(order, each, kernel.step.width) for each in (pairs.spread(CHECKED), pairs))


def _agrees(order: SumOrder, pairs: Pairs, width: int) -> bool:
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
    longest, inner = max(lengths), _inner(lengths, pairs)
    for count, run in _counts(at, length, size, longest, promoted):
        if not _dealt_so(inner, longest, count, run, promoted):
            continue
        everies: list[int | None] = [None]
        if promoted:
            everies = list(_promotions(at, length, size, count, run))
        told = dict[tuple[object, ...], bool]()
        wholes = {} if promoted else {x: _Wholes.of(at[length == x], size[length == x], count, run) for x in {*lengths}}
        for own in _blocked(Accumulators(fmt, count, run), longest, wholes):
            alike = own.join, own.rest, *map(own.whole, {*lengths})
            if not promoted and alike not in told:
                told[alike] = bool((first_meets(own, length, at) == size).all())
            if promoted or told[alike]:
                yield from ((own, None if every is None else Promotion(every, fmt)) for every in everies)


@dataclass(frozen=True)
class _Wholes:
    """How many steps of a range whole blocks may have: with each join at most, and with each rest at least."""

    most: dict[str, int]
    least: dict[str, int]

    @classmethod
    def of(cls, at: Numbers, size: Numbers, count: int, run: int) -> _Wholes:
        """By the sizes with the first lane.  In whole blocks its accumulator's lanes meet it as soon as they are added,
        and those of another all in one sum, which has that accumulator and those before it (by halves: it); steps
        beyond meet it after all that came before them or, where accumulators are added later, after less."""
        order = np.argsort(at)
        at, size, unit = at[order], size[order], count * run
        number = at // run % count
        seen, first = np.unique(number, return_index=True)
        met = np.where(number == 0, at // unit * run + at % run + 1, size[first][np.searchsorted(seen, number)])
        inside, most = at[size != met].min(initial=LONGEST), {}
        for join in JOINS:
            others = np.where(join == "halves", 1, number)
            turns, left = np.divmod(size, (others + 1) * run)
            held = turns * unit + np.where(left < run, left, (number - others) * run + left)
            most[join] = int(np.where(number, np.maximum(at, held), LONGEST).min(initial=inside))
        above, after = (int(at[wrong].max(initial=-1)) + 1 for wrong in (size > at, size != at + 1))
        return cls(most, {"first": above, "before": above, "after": after})

    def allow(self, own: Accumulators, length: int, join: str, rest: str) -> bool:
        """Whether they leave what these accumulators make of a range, with a join and a rest."""
        whole = own.whole(length)
        apart = (own.count if rest == "before" else 2) - 1  # so many accumulators may have all that came before
        return whole <= self.most[join] and (whole <= apart * own.run or whole >= self.least[rest])


def _blocked(own: Accumulators, longest: int, wholes: Mapping[int, _Wholes]) -> Iterator[Accumulators]:
    """These accumulators with every block, late steps, join and rest that ranges of each length leave; where nothing is
    said of any, accumulators are promoted."""
    count = own.count
    joins = JOINS[:1] if count < 3 else JOINS if count & (count - 1) == 0 else JOINS[:2]
    rests = RESTS if count > 2 else RESTS[:2]
    for block in _blocks(count, own.run, longest):
        for late in range(_most_late(block, longest) + 1):
            dealt = replace(own, block=block, late=late)
            for join, rest in product(joins, rests if block > 1 and wholes else rests[:1]):
                if all(each.allow(dealt, length, join, rest) for length, each in wholes.items()):
                    yield replace(dealt, join=join, rest=rest)  # type: ignore[arg-type]


def first_meets(own: Accumulators, length: Numbers, at: Numbers) -> Numbers:
    """Products in the smallest partial sum that holds the first lane of a range of each length and the one at each
    place, steps being of one lane."""
    found = np.zeros_like(at)
    for each in np.unique(length).tolist():
        here = length == each
        found[here] = _first_meets(own, each, at[here])
    return found


def _first_meets(own: Accumulators, length: int, at: Numbers) -> Numbers:
    whole, run = own.whole(length), own.run
    turns, left = divmod(whole, own.count * run)
    totals = turns * run + np.clip(left - np.arange(own.count) * run, 0, run)
    if own.rest == "first":
        totals[0] += length - whole
    levels = with_rest(own, totals, np.ones(own.after(length).count, np.int64))
    order = SumOrder(np.array([sums for sums, _ in levels]), np.array([ends for _, ends in levels]))
    beyond = 0 if own.rest == "first" else own.count + at - whole
    number = np.where(at < whole, at // run % own.count, beyond)
    met = order.sizes(np.zeros_like(number), number)
    first = np.where(at < whole, at // (own.count * run) * run + at % run, totals[0] - (length - at)) + 1
    return np.where(number == 0, first, met)


def _from_first(lengths: tuple[int, ...], pairs: Pairs) -> tuple[Numbers, Numbers, Numbers]:
    """Of the pairs of a range's first lane with another of its lanes: that lane's place, the range's length, sizes."""
    starts = np.r_[0, np.cumsum(lengths)[:-1]]
    number = np.repeat(np.arange(len(lengths)), lengths)
    own = (number[pairs.p] == number[pairs.q]) & (pairs.p == starts[number[pairs.p]])
    which = number[pairs.p[own]]
    return pairs.q[own] - starts[which], np.array(lengths)[which], pairs.size[own]


def _inner(lengths: tuple[int, ...], pairs: Pairs) -> Pairs:
    """Of the pairs in a longest range the places there."""
    starts, number = np.r_[0, np.cumsum(lengths)[:-1]], np.repeat(np.arange(len(lengths)), lengths)
    at_p, at_q = pairs.p - starts[number[pairs.p]], pairs.q - starts[number[pairs.q]]
    chosen = (number[pairs.p] == number[pairs.q]) & (np.array(lengths)[number[pairs.q]] == max(lengths))
    return Pairs(at_p, at_q, pairs.size).take(chosen)


@lru_cache(maxsize=REMEMBERED)
def _surely_dealt(length: int, count: int, run: int) -> int:
    """The first steps of a range that are in whole blocks, whatever a block is and whatever of it is late."""
    return min(length - length % block - _most_late(block, length) for block in _blocks(count, run, length))


def _most_late(block: int, longest: int) -> int:
    """Late steps of a block at most."""
    return min(MOST_LATE, block - 1, longest - block)


def _dealt_so(inner: Pairs, length: int, count: int, run: int, promoted: bool) -> bool:
    """Whether lanes of one accumulator meet as soon as the later one is added, and others when both are whole, as far
    as they are in whole blocks.  Promoted lanes of one meet in any number."""
    dealt = _surely_dealt(length, count, run)
    same = inner.p // run % count == inner.q // run % count
    through = inner.q // (run * count) * run + inner.q % run + 1
    whole = inner.size >= np.maximum(through + 1, 2 * run * (dealt // (run * count)))
    return bool(np.where(same, promoted | (inner.size == through), whole)[inner.q < dealt].all())


def _counts(at: Numbers, length: Numbers, size: Numbers, longest: int, promoted: bool) -> Iterator[tuple[int, int]]:
    """count and run that leave the lanes of accumulator 0 where the sizes say they are, in whole blocks of a longest
    range: a shorter one may have none."""
    if promoted or (size == at + 1).all():
        yield 1, 1
    at, size, length = (each[length == longest] for each in (at, size, length))
    for count in range(2, min(MOST_ACCUMULATORS, longest) + 1):
        most = longest // 2 if longest <= SHORT else min(LONGEST_RUN, longest // count)
        run = np.arange(1, max(1, most) + 1)[:, None]
        dealt = np.array([[_surely_dealt(longest, count, each)] for each in range(1, max(1, most) + 1)])
        place, turn = at[None, :] // run, at[None, :] // (run * count)
        own = place % count == 0
        through = turn * run + at[None, :] % run + 1
        before = np.minimum(turn * run + run, at[None, :])
        exact = through < 3 if promoted else np.ones_like(own)
        good = np.where(own, np.where(exact, size == through, size >= through), size > before)
        for each in run[(good | (at >= dealt)).all(1), 0]:
            low = at < dealt[each - 1]
            if _met_as_one(at[low] // each % count, length[low], size[low]):
                yield count, int(each)


def _met_as_one(accumulator: Numbers, length: Numbers, size: Numbers) -> bool:
    """Whether a range's first lane meets all lanes of another accumulator in one sum."""
    other = accumulator > 0
    where = length[other] * MOST_ACCUMULATORS + accumulator[other]
    return len(np.unique(where)) == len(np.unique(where * (size.max(initial=0) + 1) + size[other]))


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


def _blocks(count: int, run: int, longest: int) -> list[int]:
    """Blocks of which the longest range has a whole one, and none."""
    unit = count * run
    return [1, *(unit * each for each in range(1, min(BLOCKS, longest // unit) + 1 if count > 1 else 1))]
