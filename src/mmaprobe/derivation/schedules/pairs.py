"""What was asked about pairs of lanes, and what elements of one class answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.orders import Numbers
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.sizes import UNASKED, UNREAD, added_up, live_parts, most_lanes, read_counts


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

    def some(self, most: int, rng: np.random.Generator) -> Pairs:
        """So many at most, at random."""
        return self if len(self) <= most else self.take(np.sort(rng.choice(len(self), most, replace=False)))


def joint(parts: Sequence[Pairs]) -> Pairs:
    """All of them, every pair once, the smaller lane first."""
    p, q, size = (np.concatenate([getattr(each, name) for each in parts]) for name in ("p", "q", "size"))
    low, high = np.minimum(p, q), np.maximum(p, q)
    k = int(high.max()) + 1 if len(high) else 1
    _, first = np.unique(low * k + high, return_index=True)
    return Pairs(low[first], high[first], size[first], sum(each.misfits for each in parts))


@dataclass
class ClassView:
    """The elements of one class at one shape, asked through rows and columns that are wholly of the class.

    ``mask`` (M, N) are its elements; ``rows`` and ``columns`` the largest part of it that is a grid.
    """

    calls: ProductCalls
    mask: NDArray[np.bool_]
    rows: NDArray[np.intp] = field(init=False)
    columns: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        best = 0
        for pattern in np.unique(self.mask[self.mask.any(1)], axis=0):
            rows = np.flatnonzero(self.mask[:, pattern].all(1))
            if best < len(rows) * int(pattern.sum()):
                best = len(rows) * int(pattern.sum())
                self.rows, self.columns = rows, np.flatnonzero(pattern)

    def sides(self, k: int) -> tuple[int, int]:
        """How many lanes one call asks along the longer side, and along the shorter one."""
        long, short = self._sides
        most = min(len(long), most_lanes(self.calls, k))
        parts = len(live_parts(self.calls, k, np.arange(most)))
        return most, max(1, len(short) // parts)

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
            tallies = [
                self._call(k, p, q[j : j + len(across)], part[j : j + len(across)], live)
                for j in range(0, len(q), len(across))
            ]
            found.append(_of_parts(k, np.concatenate(tallies, axis=1), len(live)))
        return joint(found)

    def _call(self, k: int, p: Numbers, q: Numbers, part: Numbers, live: NDArray[np.bool_]) -> Numbers:
        """Of each element of the class that was asked: lanes p and q, the part, and the count."""
        sides = self.mask.T.shape if self._turned else self.mask.shape
        (along, across), numbers = self._sides, np.arange(len(q))
        at_p, at_q = np.resize(p, sides[0]), np.resize(numbers, sides[1])
        at_p[along], at_q[across] = np.resize(p, len(along)), np.resize(numbers, len(across))
        shown = None if len(live) == 1 else live[part[at_q]]
        counts = read_counts(self.calls, k, at_p, q[at_q], shown, self._turned)
        i, j = np.nonzero(self.mask & (counts != UNASKED))
        if self._turned:
            i, j, counts = j, i, counts.T
        return np.stack([at_p[i], q[at_q[j]], part[at_q[j]], counts[i, j]])


def _of_parts(k: int, tallies: Numbers, parts: int) -> Pairs:
    """Sizes of the pairs of which every part was counted."""
    p, q, part, count = tallies
    misfits = int((count == UNREAD).sum())
    p, q, part, count = tallies[:, count != UNREAD]
    keys, first = np.unique((p * k + q) * parts + part, return_index=True)
    whole = np.flatnonzero(keys % parts == 0)
    whole = whole[whole + parts <= len(keys)]
    whole = whole[keys[whole + parts - 1] == keys[whole] + parts - 1]
    at = first[whole[:, None] + np.arange(parts)]
    return Pairs(p[at[:, 0]], q[at[:, 0]], k - added_up(count[at]), misfits)
