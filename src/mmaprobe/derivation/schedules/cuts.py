"""Sizes of pairs to the ranges that K is cut into: every cut of the schedule record that agrees.

Two lanes of different ranges meet where their ranges do, so how a range is added inside does not matter: their size is
that of the smallest sum of ranges that holds both, and two lanes of one range never meet later than its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.orders import Numbers, joined
from mmaprobe.derivation.schedules.pairs import Pairs
from mmaprobe.parameters.schedule import LONGEST, Ranges

Order = Literal["chain", "pairwise", "last_first"]
ORDERS: tuple[Order, ...] = ("chain", "pairwise", "last_first")
"""Orders in which ranges are added."""
UNITS = tuple(sorted({(1 << i) + beside for i in range(5) for beside in (-1, 0, 1)} - {0} | {32}))
"""Units that are tried where no half was seen: powers of two and what lies beside the first of them."""
Half = Literal["down", "up", "below"]
HALVES: tuple[Half, ...] = ("down", "up", "below")
"""How half of K may be rounded."""
FEW = 48
"""Pairs that are looked at first: enough to leave few cuts."""
PARTS = 4
"""Times as many parts as there are ranges that a split of K may have been asked for."""
Cut = tuple[tuple[int, ...], Order]
"""The lengths of the ranges, and the order in which they are added."""


def cuts(pairs: Pairs, k: int) -> list[Cut]:
    """Every cut of K by a rule that agrees with all pairs, the one without ranges first."""
    found = list[Cut]()
    first = _telling(pairs)
    for order in ORDERS:
        if any(len(lengths) > 3 for lengths, _ in found):
            break  # of so many ranges one order agrees at most
        for lengths in _candidates(pairs, first, k, order):
            if (lengths, order) not in found and agrees(lengths, order, pairs, k):
                found.append((lengths, order))
    return [((k,), "chain"), *(cut for cut in found if len(cut[0]) > 1)]


def agrees(lengths: tuple[int, ...], order: str, pairs: Pairs, k: int) -> bool:
    """Whether pairs of different ranges have the sizes of this cut, and those of one range none beyond it."""
    number = np.repeat(np.arange(len(lengths)), lengths)
    r, s = number[pairs.p], number[pairs.q]
    inside = pairs.size <= np.array(lengths)[r]
    return bool(np.where(r == s, inside, pairs.size == _meeting(np.array(lengths), order, r, s)).all())


def _meeting(lengths: Numbers, order: str, r: Numbers, s: Numbers) -> Numbers:
    size = np.zeros(r.shape, np.int64)
    for level, (sums, prefixes) in enumerate(joined(lengths, order)):
        both = np.maximum(prefixes[r], prefixes[s])
        size = both if not level else np.where(sums[r] == sums[s], both, size)
    return size


def _telling(pairs: Pairs) -> Pairs:
    """A few pairs, of the smallest lanes with all others and spread over them."""
    order = np.lexsort((pairs.q, pairs.p))
    lowest = order[: max(FEW, int((pairs.p == pairs.p.min()).sum()))]
    return pairs.take(np.unique(np.r_[_spread(lowest), _spread(order)]))


def _spread(order: Numbers) -> Numbers:
    chosen: Numbers = order[np.unique(np.linspace(0, len(order) - 1, FEW).astype(int))]
    return chosen


def _candidates(pairs: Pairs, first: Pairs, k: int, order: str) -> Iterator[tuple[int, ...]]:
    """Lengths that the first pairs leave, rule by rule."""
    length = np.arange(2, k)  # ranges of one lane are one chain of rounded products
    everything = np.full_like(length, 2 * k)
    for cut in ("uniform", "residue_first") if order != "last_first" else ("uniform",):
        lead = k % length if cut == "residue_first" else np.zeros_like(length)
        for each in length[_equal(first, k, length, lead, everything, order)]:
            yield Ranges(cut, int(each)).sizes(k)
    if order == "last_first":
        return
    if order == "chain":
        yield from _in_two(first, k)
    full = k // length - 1
    some = np.flatnonzero((full > (0 if order == "chain" else 1)) & (k % length > 0))  # three are added alike
    length, whole = length[some], (full * length)[some]
    for each in np.flatnonzero(_equal(first, k, length, np.zeros_like(length), whole, order)):
        yield from _halved(first, k, int(length[each]), order)


def _equal(pairs: Pairs, k: int, length: Numbers, lead: Numbers, limit: Numbers, order: str) -> NDArray[np.bool_]:
    """Of ranges of each length, after a lead of so many lanes: whether pairs agree whose sum of ranges ends within the
    limit."""
    alive = np.ones(len(length), bool)
    shift = np.where(lead, length - lead, 0)
    for p, q, size in zip(pairs.p, pairs.q, pairs.size, strict=True):
        some = np.flatnonzero(alive)
        own, moved = length[some], shift[some]
        r, s = (p + moved) // own, (q + moved) // own
        level = np.zeros_like(own)
        while order == "pairwise" and ((r >> level) != (s >> level)).any():
            level += (r >> level) != (s >> level)
        begin = np.zeros_like(own) if order == "chain" else np.maximum((s >> level << level) * own - moved, 0)
        end = ((s >> level) + 1 << level) * own - moved
        within = np.minimum((r + 1) * own - moved, k) - np.maximum(r * own - moved, 0)
        met = np.minimum(end, k) - begin
        if order == "last_first":
            last = (k - 1) // own
            met = (np.where(s == last, r, s) + 1) * own + k - last * own
        good = np.where(r == s, size <= within, size == met)
        alive[some] = good | (end > limit[some])
    return alive


def _in_two(pairs: Pairs, k: int) -> Iterator[tuple[int, ...]]:
    """Two ranges, the longer one first but for what rounding adds."""
    half = np.arange(max(1, k // 2), k)[:, None]
    r, s = pairs.p[None, :] >= half, pairs.q[None, :] >= half
    good = np.where(r == s, pairs.size <= np.where(r, k - half, half), pairs.size == k).all(1)
    for each in half[good, 0]:
        yield int(each), k - int(each)


def _halved(first: Pairs, k: int, length: int, order: str) -> Iterator[tuple[int, ...]]:
    """Full ranges of a length and then two of what is left."""
    full = k // length - 1
    left = k - full * length
    halves = np.arange(max(1, left // 2), min(length, left - 1) + 1)
    if order == "chain":  # the first lane meets all of the first half at its end
        met = first.size[(first.p == 0) & (first.q >= full * length) & (first.size < k)]
        halves = np.intersect1d(halves, np.unique(met)[:1] - full * length)
    for half in halves:
        lengths = (length,) * full + (int(half), left - int(half))
        if agrees(lengths, order, first, k):
            yield lengths


def rules(lengths: tuple[int, ...], k: int) -> Iterator[Ranges]:
    """Every rule of the record that cuts K into ranges of these lengths; lengths beyond K are not tried."""
    count, first = len(lengths), lengths[0]
    if count == 1:
        yield Ranges()
        return
    for rule in _possible(lengths, k, count, first):
        if rule.sizes(k) == lengths:
            yield rule


def _possible(lengths: tuple[int, ...], k: int, count: int, first: int) -> Iterator[Ranges]:
    yield Ranges("uniform", first)
    yield Ranges("residue_first", lengths[-1])
    longest = [first] if count > 2 else range(max(first, k // 2), k)
    for length in longest:
        full = k // length - 1 if k % length else k // length
        left = k - full * length
        for half in HALVES:
            unseen = UNITS[1:] if half == "below" else UNITS  # of 1 below is down
            seen = left not in (0, length)
            for unit in _units(left, half, lengths[full] if full < count else 0) if seen else _powers(unseen):
                yield Ranges("halve_last", length, unit, half=half)
            for unit in unseen if k >= 2 * length else _units(k, half, first):
                yield Ranges("halve_short", length, unit, half=half)
    for parts in range(count, min(k, PARTS * count) + 1):
        for unit in _up_to(-(-k // parts), first):
            yield Ranges("ceil_split", unit=unit, parts=parts)


def _powers(units: Sequence[int]) -> list[int]:
    """The powers of two among them."""
    return [unit for unit in units if unit & (unit - 1) == 0]


def _units(k: int, half: Half, rounded: int) -> list[int]:
    """Units by which half of K is rounded so."""
    if half == "below":
        return [unit for unit in UNITS[1:] if max(k // 2 - k // 2 % unit, unit) == rounded]
    return _up_to((k + (half == "up")) // 2, rounded)


def _up_to(least: int, rounded: int) -> list[int]:
    """What ``least`` is rounded up to a multiple of where that gives ``rounded``."""
    if least < 1 or rounded < least or rounded > LONGEST:
        return []
    return [unit for unit in range(1, rounded + 1) if rounded % unit == 0 and -(-least // unit) * unit == rounded]
