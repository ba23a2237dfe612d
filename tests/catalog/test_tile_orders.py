"""Orders of tiles: each visits every tile once, and the grouped one is Triton's, the short last group included."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaprobe.catalog.layout_algebra import Layout, joined, logical_divide
from mmaprobe.catalog.tile_orders import Band, TileOrder, column_major, grouped, row_major, turned
from mmaprobe.errors import UsageError

SIDE = st.integers(1, 9)
laws = settings(max_examples=80, deadline=None, derandomize=True)


def tiles(order: TileOrder) -> list[tuple[int, int]]:
    return [order(step) for step in range(order.steps)]


def triton(step: int, rows: int, columns: int, group: int) -> tuple[int, int]:
    """Triton's tutorial 03, in its terms: a group's first row, and as many rows as are left."""
    number, inside = divmod(step, group * columns)
    first = number * group
    height = min(rows - first, group)
    return first + inside % height, inside // height


def as_printed(step: int, rows: int, columns: int, group: int) -> tuple[int, int]:
    """A founding text's rule: it shrinks the group before it counts the position, and the rows before it."""
    number = step // (group * columns)
    group = min(group, rows - number * group)
    inside = step % (group * columns)
    return inside % group + number * group, inside // group


@laws
@given(SIDE, SIDE, SIDE)
def test_each_tile_is_visited_once_in_tritons_order(rows: int, columns: int, group: int) -> None:
    order = grouped(rows, columns, group)
    assert tiles(order) == [triton(step, rows, columns, group) for step in range(rows * columns)]
    assert order.visits_each_once
    across = turned(order)
    assert across.visits_each_once
    assert tiles(across) == [(n, m) for m, n in tiles(order)]
    assert turned(across) == order
    for each in (order, across):
        assert sorted(tiles(each)) == [(m, n) for m in range(each.rows) for n in range(each.columns)]


@laws
@given(SIDE, SIDE)
def test_rows_and_columns(rows: int, columns: int) -> None:
    assert tiles(row_major(rows, columns)) == [(m, n) for m in range(rows) for n in range(columns)]
    assert tiles(column_major(rows, columns)) == [(m, n) for n in range(columns) for m in range(rows)]
    assert row_major(rows, columns).visits_each_once
    assert column_major(rows, columns).visits_each_once


def test_a_founding_text_misses_the_last_row_of_a_short_group() -> None:
    """7 x 4 tiles in groups of 4: of the second group, 3 rows high, it visits row 3 again and never row 6."""
    visited = {as_printed(step, 7, 4, 4) for step in range(28)}
    assert len(visited) == 24
    assert {m for m, _ in visited} == {0, 1, 2, 3, 4, 5}
    wrong = TileOrder(7, 4, (Band(0, 4, Layout((4, 4), (1, 4))), Band(3, 3, Layout((3, 4), (1, 3)))))
    assert {wrong(step) for step in range(28)} == visited
    assert not wrong.visits_each_once
    right = grouped(7, 4, 4)
    assert right.visits_each_once
    assert len(set(tiles(right))) == 28
    assert str(right) == "rows 0 to 3: (4,4,1):(1,4,4); rows 4 to 6: (3,4):(1,3)"
    assert right.grid() == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
                            [16, 19, 22, 25], [17, 20, 23, 26], [18, 21, 24, 27]]  # fmt: skip


def test_whole_groups_are_a_division() -> None:
    """(8,16):(1,8) divided by 4 rows, its modes in the order (4,16,2): what the grouped order is in the algebra."""
    divided = logical_divide(Layout((8, 16), (1, 8)), (4,))
    rows, columns = divided.modes
    within, groups = rows.modes
    (band,) = grouped(8, 16, 4).bands
    assert joined(within, columns, groups) == band.order == Layout((4, 16, 2), (1, 8, 4))


@pytest.mark.parametrize("bands", [
    (Band(0, 4, Layout((4, 4), (1, 4))),),
    (Band(0, 7, Layout((7, 4), (1, 6))),),
    (Band(0, 7, Layout((7, 2), (1, 7))),),
    (Band(4, 3, Layout((3, 4), (1, 3))), Band(0, 4, Layout((4, 4), (1, 4)))),
], ids=["rows are missing", "no bijection", "columns are missing", "out of order"])  # fmt: skip
def test_what_is_no_order(bands: tuple[Band, ...]) -> None:
    assert not TileOrder(7, 4, bands).visits_each_once


def test_what_it_refuses() -> None:
    with pytest.raises(UsageError, match="7 x 4 tiles have steps 0 to 27; 28 came"):
        grouped(7, 4, 4)(28)
    with pytest.raises(UsageError, match="steps 0 to 27; -1 came"):
        grouped(7, 4, 4)(-1)
    with pytest.raises(UsageError, match="7 x 4 tiles in groups of 0: each is at least 1"):
        grouped(7, 4, 0)
