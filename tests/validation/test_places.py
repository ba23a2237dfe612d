"""What the places of mismatches have in common: said where it is so, and never by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.validated import DOT, GPU, TILE, Changed
from mmaprobe.catalog.lookup import instruction
from mmaprobe.validation.places import LANES, ChunkPlaces, pattern, slots

DEVICE = Changed(lambda made, batch, d: d, GPU)
OUTPUTS = TILE.m * TILE.n


def tiles(wrong: list[tuple[int, int]], count: int = 30, keep: int | None = None) -> ChunkPlaces:
    """The outputs of these rows and columns in every one of ``count`` tiles, the first ``keep`` of them."""
    every = sorted(tile * OUTPUTS + row * TILE.n + column for tile in range(count) for row, column in wrong)
    return ChunkPlaces(np.array(every[:keep], np.int64), count, keep is None or keep >= len(every))


ROWS, COLUMNS = range(TILE.m), range(TILE.n)


@pytest.mark.parametrize(("wrong", "said"), [
    ([(row, column) for row in ROWS for column in COLUMNS], ()),
    ([(row, column) for row in ROWS for column in (1, 5)], ("only every 4th column, from 1",)),
    ([(row, column) for row in ROWS for column in (0, 3)], ("only column 0, 3",)),
    ([(row, column) for row in (2, 5, 8, 11, 14) for column in COLUMNS], ("only every 3rd row, from 2",)),
    ([(row, 3) for row in ROWS], ("only column 3",)),
    ([(7, column) for column in (0, 2, 4, 6)], ("only row 7", "only every 2nd column, from 0")),
])  # fmt: skip
def test_what_tiles_have_in_common(wrong: list[tuple[int, int]], said: tuple[str, ...]) -> None:
    assert pattern(DEVICE, TILE, [tiles(wrong)]) == said


def test_what_follows_the_last_place_that_is_kept_is_not_taken_for_right() -> None:
    """Of a tile that is wrong everywhere the first 30 lie in four rows: nothing is said of rows; nor of columns, where
    a row is not whole."""
    everywhere = [(row, column) for row in ROWS for column in COLUMNS]
    assert pattern(DEVICE, TILE, [tiles(everywhere, count=1, keep=30)] * 20) == ()
    wide = instruction("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "sm_90a")
    first = [ChunkPlaces(np.arange(100), 1, False)] * 20
    assert pattern(DEVICE, wide, first) == (), "all of row 0, and some of row 1"
    assert pattern(DEVICE, wide, [replace(each, whole=True) for each in first]) == ("only row 0, 1",)
    assert pattern(DEVICE, TILE, [tiles([(0, column) for column in COLUMNS], count=40, keep=100)]) == ("only row 0",)
    assert pattern(DEVICE, TILE, [ChunkPlaces(np.arange(0, 10_000, OUTPUTS), 80, False)]) == (
        "only row 0",
        "only column 0",
    )


def test_few_mismatches_say_nothing() -> None:
    assert pattern(DEVICE, TILE, []) == pattern(DEVICE, TILE, [tiles([(0, 0)], count=23)]) == ()
    assert pattern(DEVICE, TILE, [tiles([(0, 0)], count=24)])


def test_the_outputs_of_few_tiles_say_nothing() -> None:
    """They share rows and columns: one odd vector makes all of a row wrong."""
    row = [(5, column) for column in COLUMNS]
    assert pattern(DEVICE, TILE, [tiles(row, count=11)]) == ()
    assert pattern(DEVICE, TILE, [tiles(row, count=12)]) == ("only row 5",)


def test_lanes_and_diagonals() -> None:
    third = ChunkPlaces(np.arange(2, 3000, 8), 0, True)
    assert pattern(DEVICE, DOT, [third]) == ("only every 8th lane, from 2",)
    assert pattern(DEVICE, TILE, [third]) == ("only place on the diagonal 2",)
    assert pattern(GPU, TILE, [third]) == (), "a model takes vectors as they are"
    assert (slots(DEVICE, DOT), slots(DEVICE, TILE), slots(GPU, TILE)) == (LANES, 8, 1)


@given(st.sets(st.tuples(st.integers(0, TILE.m - 1), st.integers(0, TILE.n - 1)), min_size=1), st.integers(1, 900))
def test_no_claim_is_false(wrong: set[tuple[int, int]], keep: int) -> None:
    """Whatever is said of rows and columns holds of every wrong output, those that are not kept among them."""
    for words in pattern(DEVICE, TILE, [tiles(sorted(wrong), keep=keep)]):
        numbers = {place["column" in words] for place in wrong}
        if "every" in words:
            period, first = int("".join(filter(str.isdigit, words.split()[2]))), int(words.split()[-1])
            assert {number % period for number in numbers} == {first}
        else:
            assert numbers <= set(map(int, words.split(maxsplit=2)[2].split(", ")))
