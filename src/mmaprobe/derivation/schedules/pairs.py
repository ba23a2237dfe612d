"""What was asked about pairs of lanes, and what elements of one class answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.orders import Numbers
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.elements import CLASSES
from mmaprobe.probing.gemm.sizes import UNREAD, read_sizes


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

    def ask(self, k: int, long: Numbers, short: Numbers) -> Pairs:
        """Every pair of a lane of ``long`` and one of ``short``, in as few calls as the grid allows, and what else the
        class's elements answer beside."""
        swapped = len(self.columns) > len(self.rows)
        p, q = (short, long) if swapped else (long, short)
        parts = []
        for i in range(0, len(p), len(self.rows)):
            for j in range(0, len(q), len(self.columns)):
                parts.append(self._call(k, p[i : i + len(self.rows)], q[j : j + len(self.columns)]))
        return joint(parts)

    def _call(self, k: int, p: Numbers, q: Numbers) -> Pairs:
        m, n = self.mask.shape
        at_rows, at_columns = np.resize(p, m), np.resize(q, n)
        at_rows[self.rows], at_columns[self.columns] = np.resize(p, len(self.rows)), np.resize(q, len(self.columns))
        sizes = read_sizes(self.calls, k, at_rows, at_columns)
        i, j = np.nonzero(self.mask & (at_rows[:, None] != at_columns[None, :]))
        read = sizes[i, j] != UNREAD
        misfits = int(len(i) - read.sum())
        return Pairs(at_rows[i[read]], at_columns[j[read]], sizes[i[read], j[read]], misfits)


def views(calls: ProductCalls, classes: CLASSES) -> list[ClassView]:
    """One view a class, the largest class first."""
    return [ClassView(calls, classes == number) for number in range(int(classes.max()) + 1)]
