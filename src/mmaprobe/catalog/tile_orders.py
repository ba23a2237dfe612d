"""In which order a kernel visits the tiles of its result: row by row, column by column, or in groups.

An order is a list of bands of whole rows (or columns) of tiles, and a layout each: from the step within a band to
the number of the tile in it, which counts down the band's columns.  It visits each tile once exactly where the bands
follow one another over all the rows and each layout is a bijection, which the algebra proves without counting.

Sources: the grouped order of Triton's tutorial on matrix multiplication (``GROUP_SIZE_M``); CUTLASS's
rasterisation of thread blocks; ``catalog.layout_algebra``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmaprobe.catalog.layout_algebra import Layout, is_bijection
from mmaprobe.errors import UsageError


@dataclass(frozen=True)
class Band:
    """Rows [first, first + rows) of tiles, and the layout from a step to m + rows * n, m counted from ``first``."""

    first: int
    rows: int
    order: Layout


@dataclass(frozen=True)
class TileOrder:
    """``rows`` x ``columns`` tiles, band after band; ``turned``: bands are of columns, and m and n change places."""

    rows: int
    columns: int
    bands: tuple[Band, ...]
    turned: bool = False

    def __call__(self, step: int) -> tuple[int, int]:
        """The tile (m, n) of a step; UsageError where there is none."""
        rest = step
        for band in self.bands if step >= 0 else ():
            if rest < band.order.size:
                n, m = divmod(band.order(rest), band.rows)
                return (n, band.first + m) if self.turned else (band.first + m, n)
            rest -= band.order.size
        raise UsageError(f"{self.rows} x {self.columns} tiles have steps 0 to {self.steps - 1}; {step} came")

    def __str__(self) -> str:
        lines = "columns" if self.turned else "rows"
        return "; ".join(f"{lines} {b.first} to {b.first + b.rows - 1}: {b.order}" for b in self.bands)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return sum(band.order.size for band in self.bands)

    @property
    def visits_each_once(self) -> bool:
        """Whether every tile has one step: the bands follow one another to the last row, and each is a bijection."""
        along, across = (self.columns, self.rows) if self.turned else (self.rows, self.columns)
        ends = [0, *(band.first + band.rows for band in self.bands)]
        follow = ends == [*(band.first for band in self.bands), along]
        return follow and all(band.order.size == band.rows * across and is_bijection(band.order) for band in self.bands)

    def grid(self) -> list[list[int]]:
        """The step of each tile, a list a row of tiles."""
        steps = {self(step): step for step in range(self.steps)}
        return [[steps[m, n] for n in range(self.columns)] for m in range(self.rows)]


def grouped(rows: int, columns: int, group: int) -> TileOrder:
    """Groups of ``group`` rows; in a group down a column, then the next; the last group has the rows that are left.

    Of q whole groups: (g, N, q):(1, q*g, g), step (i, n, b) at row b*g + i; of r rows left: (r, N):(1, r).
    """
    if min(rows, columns, group) < 1:
        raise UsageError(f"{rows} x {columns} tiles in groups of {group}: each is at least 1")
    whole, left = divmod(rows, group)
    bands = []
    if whole:
        high = whole * group
        bands.append(Band(0, high, Layout((group, columns, whole), (1, high, group))))
    if left:
        bands.append(Band(rows - left, left, Layout((left, columns), (1, left))))
    return TileOrder(rows, columns, tuple(bands))


def turned(order: TileOrder) -> TileOrder:
    """The same order with rows and columns exchanged: grouped columns, walked along a row."""
    return replace(order, rows=order.columns, columns=order.rows, turned=not order.turned)


def column_major(rows: int, columns: int) -> TileOrder:
    """Down each column: one group of all the rows."""
    return grouped(rows, columns, rows)


def row_major(rows: int, columns: int) -> TileOrder:
    """Along each row: groups of one row."""
    return grouped(rows, columns, 1)
