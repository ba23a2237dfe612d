"""The chooser of telling vectors, held against what all vectors tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.derivation.discriminate import telling

RNG = np.random.default_rng(0)
TABLES = [RNG.integers(0, values, (rows, 60)).astype(np.uint32) for values, rows in ((1, 5), (2, 9), (3, 40), (50, 4))]


def classes(table: NDArray[np.uint32]) -> int:
    return len(np.unique(table, axis=0))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{len(table)} rows")
def test_few_columns_tell_apart_what_all_do(table: NDArray[np.uint32]) -> None:
    chosen = telling(table)
    assert classes(table[:, chosen]) == classes(table)
    assert len(chosen) < len(table)
    assert [classes(table[:, chosen[:n]]) for n in range(1, len(chosen) + 1)] == sorted(
        {classes(table[:, chosen[:n]]) for n in range(1, len(chosen) + 1)}
    )  # each makes more classes


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{len(table)} rows")
def test_the_first_row_is_told_from_every_other_that_any_column_tells(table: NDArray[np.uint32]) -> None:
    chosen = telling(table, from_first=True)
    differs = table != table[0]
    assert (differs[:, chosen].any(axis=1) == differs.any(axis=1)).all()
    assert len(chosen) < len(table)
    left = np.ones(len(table), bool)
    for column in chosen:  # each is the best of all for the rows that are left
        assert (differs[left][:, column].sum()) == differs[left].sum(axis=0).max() > 0
        left &= ~differs[:, column]


def test_a_width_is_kept_to_and_filled_with_what_tells_anything() -> None:
    table = np.array([[0, 0, 0, 5], [0, 1, 1, 5], [0, 1, 2, 5]], np.uint32)
    assert telling(table).tolist() == [2]
    assert telling(table, 3, filled=True).tolist() == [2, 1]
    assert telling(table, 1, filled=True).tolist() == [2]
    assert telling(table, 0).size == telling(table[:1]).size == telling(table[:1], from_first=True).size == 0
