"""Stream-K: the units of work of all tiles of a result, one tile after the other, divided evenly over workers.

A tile is M x N elements of D, a unit of work so many k of it.  A worker's share begins where that of the one before it
ends, in the middle of a tile as well: there that tile's K is cut.

Source: Osama, Merrill, Cecka, Garland and Owens, *Stream-K: work-centric parallel decomposition for dense matrix-matrix
multiplication on the GPU* (2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.tile_orders import TileOrder, grouped, turned
from mmaprobe.errors import UsageError

MOST_TILES = 1 << 20
"""Tiles of a result at most."""
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Shares:
    """How ``workers`` share the products of a result of this shape (M, N, K), in tiles of ``tile`` (M, N, K).

    Tiles are visited in groups of ``group`` rows, in a group down a column, then the next; or, where groups are of
    columns, with rows and columns exchanged.  Of U units of work worker w begins with unit floor(w U / workers).
    """

    tile: tuple[int, int, int]
    workers: int
    group: int
    of_columns: bool
    shape: tuple[int, int, int]

    @property
    def order(self) -> TileOrder:
        """The order in which tiles are visited."""
        rows, columns = (-(-length // size) for length, size in zip(self.shape[:2], self.tile[:2], strict=True))
        if rows * columns > MOST_TILES:
            raise UsageError(
                f"tile is {self.tile[0]} x {self.tile[1]}: {self.shape[0]:,} x {self.shape[1]:,} elements have "
                f"{rows * columns:,} tiles; workers share at most {MOST_TILES:,}"
            )
        return turned(grouped(columns, rows, self.group)) if self.of_columns else grouped(rows, columns, self.group)

    @property
    def units(self) -> int:
        """Units of work of a tile."""
        return -(-self.shape[2] // self.tile[2])

    def lengths(self) -> NDArray[np.object_]:
        """Of each tile (rows, columns of tiles) the lengths into which its K is cut, a tuple."""
        units, visits = self.units, np.array(self.order.grid(), np.int64)
        begun = np.unique(np.arange(self.workers, dtype=np.int64) * (units * visits.size) // self.workers)
        found = np.empty(visits.shape, object)
        for tile, visit in np.ndenumerate(visits):
            first, last = np.searchsorted(begun, (visit * units + 1, (visit + 1) * units))
            ends = [0, *(begun[first:last] - visit * units) * self.tile[2], self.shape[2]]
            found[tile] = tuple(np.diff(ends).tolist())
        return found

    def areas(self) -> Iterator[tuple[tuple[int, ...], Index, Index]]:
        """Lengths into which K is cut, and rows and columns of tiles of which all are cut so: each tile once."""
        lengths = self.lengths()
        of_tiles: list[tuple[int, ...]] = lengths.ravel().tolist()
        known = {each: number for number, each in enumerate(dict.fromkeys(of_tiles))}
        numbers = np.array([known[each] for each in of_tiles]).reshape(lengths.shape)
        rows, which = np.unique(numbers, axis=0, return_inverse=True)
        cuts = list(known)
        for number, row in enumerate(rows):
            for kind in np.unique(row):
                yield cuts[kind], np.flatnonzero(which.ravel() == number), np.flatnonzero(row == kind)
