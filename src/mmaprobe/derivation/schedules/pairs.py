"""What was asked about pairs of lanes, and what elements of one class answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.orders import Numbers
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Asked, ProductCalls
from mmaprobe.probing.gemm.elements import distinct_rows
from mmaprobe.probing.gemm.paired import PairedRoom, paired_masks, paired_room
from mmaprobe.probing.gemm.sizes import (
    UNASKED,
    UNREAD,
    added_up,
    countable,
    live_parts,
    masks,
    most_lanes,
    read_counts,
    window,
)

MOST_KEYS = 1 << 24
"""Keys up to this one are looked up in a table; larger ones are sorted."""

GOLDEN = (5**0.5 - 1) / 2
"""A part of a whole whose multiples are spread evenly over it."""
ENDS = 4
"""Of the places outside of a class's grid one in so many is asked about the first lane, and one about the last."""


@dataclass(frozen=True)
class Pairs:
    """Sizes of pairs of lanes at one K; ``misfits`` answers were no sizes."""

    p: Numbers
    q: Numbers
    size: Numbers
    misfits: int = 0

    def __len__(self) -> int:
        return len(self.p)

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        return Pairs(self.p[chosen], self.q[chosen], self.size[chosen])

    def spread(self, most: int) -> Pairs:
        """So many at most, evenly spread and in step with nothing."""
        return self if len(self) <= most else self.take(np.arange(most) * int(GOLDEN * len(self)) % len(self))


def joint(parts: Sequence[Pairs]) -> Pairs:
    """All of them, every pair once, the smaller lane first."""
    p, q, size = (np.concatenate([getattr(each, name) for each in parts]) for name in ("p", "q", "size"))
    low, high = np.minimum(p, q), np.maximum(p, q)
    first = _first(low * (int(high.max(initial=0)) + 1) + high)
    return Pairs(low[first], high[first], size[first], sum(each.misfits for each in parts))


def _first(keys: Numbers) -> NDArray[np.intp]:
    """Where each key stands first, by the smallest key first."""
    size = int(keys.max(initial=0)) + 1
    if size > MOST_KEYS:
        return np.unique(keys, return_index=True)[1]
    place = np.full(size, -1, np.int32)
    place[keys[::-1]] = np.arange(len(keys), dtype=np.int32)[::-1]  # of a key that comes again the last is kept
    return place[place >= 0].astype(np.intp)


@dataclass(frozen=True)
class StepTable:
    """D of every pair of lanes of a step, the one with +M and the other with -M: calls, and which element of which call
    is whose."""

    asked: tuple[Asked, ...]
    call: Numbers
    i: Numbers
    j: Numbers

    @property
    def told(self) -> Numbers:
        """What was answered."""
        return self._picked([each.d for each in self.asked])

    def of(self, compute: Callable[[Bits, Bits], Bits]) -> Numbers:
        """The same of what computes D."""
        return self._picked([compute(each.a, each.b) for each in self.asked])

    def _picked(self, every: Sequence[Bits]) -> Numbers:
        found: Numbers = np.zeros(self.call.shape, np.int64)
        for number, d in enumerate(every):
            here = self.call == number
            found[here] = d[self.i[here], self.j[here]]
        return found


@dataclass(frozen=True)
class Grid:
    """A call that asks grids of pairs: lane p of each place along one side, lane q and part of each along the other,
    and the count of every element, the first side being rows."""

    p: Numbers
    q: Numbers
    part: Numbers
    counts: Numbers

    def tally(self, mask: NDArray[np.bool_]) -> Numbers:
        """Of each element of a mask that was asked: lanes p and q, the part, and the count."""
        i, j = np.nonzero(mask & (self.counts != UNASKED))
        return np.stack([self.p[i], self.q[j], self.part[j], self.counts[i, j]])


@dataclass(frozen=True)
class GridAnswers:
    """What calls of grids at one K were answered by all elements, whichever class they were made for."""

    k: int
    parts: int
    turned: bool
    grids: tuple[Grid, ...]

    def pairs(self, mask: NDArray[np.bool_]) -> Pairs:
        """Sizes that elements of a mask (M, N) tell."""
        mask = mask.T if self.turned else mask
        return _of_parts(self.k, np.concatenate([each.tally(mask) for each in self.grids], axis=1), self.parts)


@dataclass
class Heard:
    """Calls at one shape that every class of elements there has answered: grids, and matrices of tiny values."""

    grids: list[GridAnswers] = field(default_factory=list)
    tiny: list[Asked] = field(default_factory=list)


@dataclass
class ClassView:
    """The elements of one class at one shape, asked through rows and columns that are wholly of the class.

    ``mask`` (M, N) are its elements; ``rows`` and ``columns`` the largest part of it that is a grid.  ``heard``: calls
    that were made for other classes, too.
    """

    calls: ProductCalls
    mask: NDArray[np.bool_]
    heard: Heard = field(default_factory=Heard)
    rows: NDArray[np.intp] = field(init=False)
    columns: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        self._before = len(self.heard.grids)
        best = 0
        for pattern in self.mask[distinct_rows(self.mask)[0]]:
            rows = np.flatnonzero(self.mask[:, pattern].all(1))
            if best < len(rows) * int(pattern.sum()):
                best = len(rows) * int(pattern.sum())
                self.rows, self.columns = rows, np.flatnonzero(pattern)

    def overheard(self) -> dict[int, list[Pairs]]:
        """What calls that were made for other classes tell of this one, by K."""
        found = dict[int, list[Pairs]]()
        for each in self.heard.grids[: self._before]:
            found.setdefault(each.k, []).append(each.pairs(self.mask))
        return found

    def sides(self, k: int) -> tuple[int, int]:
        """How many lanes one call asks along the longer side, and along the shorter one."""
        long, short = self._sides
        most = min(len(long), most_lanes(self.calls, k))
        parts = len(live_parts(self.calls, k, np.arange(most)))
        return most, max(1, len(short) // parts)

    def apart(self, k: int) -> bool:
        """Whether no lane can be asked about along both sides."""
        return window(self.calls, k).apart

    def ask_pairs(self, k: int, p: Numbers, q: Numbers) -> Pairs | None:
        """So many of these pairs, the first of them, as one call asks of pairs by themselves; None: it asks grids."""
        return None

    def ask_step(self, k: int, lanes: Numbers) -> StepTable | None:
        """Every pair of these lanes, those before them being live as far as D counts; None where a call has no room."""
        sides, count = (self.rows, self.columns), len(lanes)
        if min(map(len, sides)) < count or self.apart(k):
            return None
        live = np.zeros((self.mask.shape[1], k), bool)
        live[:, max(0, int(lanes[-1]) + 1 - countable(self.calls.d)) : int(lanes[-1]) + 1] = True
        places = [np.resize(lanes, length) for length in self.mask.shape]
        for place, side in zip(places, sides, strict=True):
            place[side] = np.resize(lanes, len(side))
        a, b = masks(self.calls, k, places[0], places[1], window(self.calls, k), live)
        asked = Asked(a, b, self.calls.ask(a, b))
        i, j = np.meshgrid(self.rows[:count], self.columns[:count], indexing="ij")
        return StepTable((asked,), np.zeros_like(i), i, j)

    @property
    def _turned(self) -> bool:
        return len(self.columns) > len(self.rows)

    @property
    def _sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return (self.columns, self.rows) if self._turned else (self.rows, self.columns)

    def ask(self, k: int, long: Numbers, short: Numbers) -> Pairs:
        """Every pair of a lane of ``long`` and one of ``short``, in as few calls as the grid allows, and what else the
        class's elements answer beside.

        Where D cannot count to K, a lane of ``short`` is asked once a part of the lanes.
        """
        found, (along, across) = [], self._sides
        most = min(len(along), most_lanes(self.calls, k))
        for i in range(0, len(long), most):
            p = long[i : i + most]
            live = live_parts(self.calls, k, p)
            q, part = np.repeat(short, len(live)), np.tile(np.arange(len(live)), len(short))
            grids = [
                self._call(k, p, q[j : j + len(across)], part[j : j + len(across)], live)
                for j in range(0, len(q), len(across))
            ]
            self.heard.grids.append(GridAnswers(k, len(live), self._turned, tuple(grids)))
            found.append(self.heard.grids[-1].pairs(self.mask))
        return joint(found)

    def _call(self, k: int, p: Numbers, q: Numbers, part: Numbers, live: NDArray[np.bool_]) -> Grid:
        """One call: places outside of the class's grid have these lanes, too, for what other classes answer."""
        sides = self.mask.T.shape if self._turned else self.mask.shape
        (along, across), numbers = self._sides, np.arange(len(q))
        at_p, at_q = _mixed(p, sides[0]), _mixed(numbers, sides[1])
        at_q[::ENDS], at_q[1::ENDS] = numbers[0], numbers[-1]
        at_p[along], at_q[across] = _mixed(p, len(along)), _mixed(numbers, len(across))
        shown = None if len(live) == 1 else live[part[at_q]]
        counts = read_counts(self.calls, k, at_p, q[at_q], shown, self._turned)
        return Grid(at_p, q[at_q], part[at_q], counts.T if self._turned else counts)


def _mixed(lanes: Numbers, count: int) -> Numbers:
    """So many places with all of these in turn, in no order that periods of an axis share."""
    return np.resize(lanes, count)[np.random.default_rng(count).permutation(count)]


def _of_parts(k: int, tallies: Numbers, parts: int) -> Pairs:
    """Sizes of the pairs of which every part was counted."""
    p, q, part, count = tallies
    misfits = int((count == UNREAD).sum())
    p, q, part, count = tallies[:, count != UNREAD]
    first = _first((p * k + q) * parts + part)
    keys = ((p * k + q) * parts + part)[first]
    whole = np.flatnonzero(keys % parts == 0)
    whole = whole[whole + parts <= len(keys)]
    whole = whole[keys[whole + parts - 1] == keys[whole] + parts - 1]
    at = first[whole[:, None] + np.arange(parts)]
    return Pairs(p[at[:, 0]], q[at[:, 0]], k - added_up(count[at]), misfits)


@dataclass
class PairedView(ClassView):
    """The same where an operand's format has no room for a unit and M: pair i of lanes is asked in row i and column i
    alone."""

    def sides(self, k: int) -> tuple[int, int]:
        """As many pairs as a call asks, and two."""
        return len(self._slots), 2

    @property
    def _slots(self) -> NDArray[np.intp]:
        return np.arange(min(len(self.rows), len(self.columns)))

    def apart(self, k: int) -> bool:
        """Never: every pair has a row and a column of its own."""
        return False

    def ask(self, k: int, long: Numbers, short: Numbers) -> Pairs:
        """Every pair of a lane of ``long`` and one of ``short``."""
        p, q = (each.ravel() for each in np.meshgrid(long, short, indexing="ij"))
        return self._all(k, p[p != q], q[p != q])

    def ask_pairs(self, k: int, p: Numbers, q: Numbers) -> Pairs | None:
        """The first of these pairs, as many as a call asks."""
        most = len(self._slots)
        return self._all(k, p[:most], q[:most])

    def _all(self, k: int, p: Numbers, q: Numbers) -> Pairs:
        room = paired_room(self.calls)
        parts = -(-max(k - 2, 1) // room.lanes)
        pair, part = np.repeat(np.arange(len(p)), parts), np.tile(np.arange(parts), len(p))
        counts = np.concatenate(
            [self._count(k, p[pair[at]], q[pair[at]], part[at], parts, room) for at in self._calls_of(len(pair))]
        )
        counts = counts.reshape(len(p), parts)
        read = (counts != UNREAD).all(1)
        return joint([Pairs(p[read], q[read], k - counts[read].sum(1), int((~read).sum()))])

    def _calls_of(self, count: int) -> list[slice]:
        most = len(self._slots)
        return [slice(start, start + most) for start in range(0, count, most)]

    def _count(self, k: int, p: Numbers, q: Numbers, part: Numbers, parts: int, room: PairedRoom) -> Numbers:
        """What each pair keeps of the part of the others that is live."""
        live = np.arange(k)[None, :] % parts == part[:, None]
        asked = self._ask_slots(k, p, q, live, room)
        d = asked.d[self.rows[: len(p)], self.columns[: len(p)]]
        with np.errstate(all="ignore"):
            kept = np.ldexp(self.calls.values(d), -room.unit)
        live[np.arange(len(p)), p] = live[np.arange(len(p)), q] = False
        read = (kept >= 0) & (kept <= live.sum(1)) & (kept == np.floor(kept))
        return np.where(read, np.where(read, kept, 0), UNREAD).astype(np.int64)

    def _ask_slots(self, k: int, p: Numbers, q: Numbers, live: NDArray[np.bool_], room: PairedRoom) -> Asked:
        m, n = self.mask.shape
        of_row, of_column = np.zeros(m, np.intp), np.zeros(n, np.intp)
        of_row[self.rows] = np.resize(np.arange(len(p)), len(self.rows))
        of_column[self.columns] = np.resize(np.arange(len(p)), len(self.columns))
        rows, columns = paired_masks(p, q, live, room)
        a, b = self.calls.bits(rows[of_row], self.calls.a), self.calls.bits(columns[of_column].T, self.calls.b)
        return Asked(a, b, self.calls.ask(a, b))

    def ask_step(self, k: int, lanes: Numbers) -> StepTable | None:
        """Every pair of these lanes, each by itself."""
        count, room = len(lanes), paired_room(self.calls)
        x, y = (each.ravel() for each in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
        x, y = x[x != y], y[x != y]
        live = np.zeros((1, k), bool)
        live[:, max(0, int(lanes[-1]) + 1 - room.lanes) : int(lanes[-1]) + 1] = True
        asked = list[Asked]()
        call, i, j = (np.full((count, count), each) for each in (-1, 0, 0))
        for at in self._calls_of(len(x)):
            slots = np.arange(len(x[at]))
            asked.append(self._ask_slots(k, lanes[x[at]], lanes[y[at]], np.repeat(live, len(slots), 0), room))
            call[x[at], y[at]] = len(asked) - 1
            i[x[at], y[at]], j[x[at], y[at]] = self.rows[slots], self.columns[slots]
        return StepTable(tuple(asked), call, i, j)


def view_of(calls: ProductCalls, mask: NDArray[np.bool_], k: int, heard: Heard | None = None) -> ClassView:
    """The elements of a class, asked in grids of pairs or, where the formats have no room for that, pair by pair.

    UsageError where they have no room for this either.
    """
    try:
        window(calls, k)
    except UsageError:
        paired_room(calls)
        return PairedView(calls, mask, heard or Heard())
    return ClassView(calls, mask, heard or Heard())
