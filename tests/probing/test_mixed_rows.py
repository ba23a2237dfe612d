"""Elements of a product told apart by few calls: equal rows, and rows and columns of several values in one call."""

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.probing.gemm.elements import EqualRows, MixedRows, classes, distinct_rows

X = tuple(np.full(4, i, np.uint32) for i in range(2))
KINDS = np.add.outer((np.arange(12) % 3 == 0) * 1, (np.arange(10) > 6) * 1)
"""Three classes of elements, (12, 10)."""


def mixed(of_row: NDArray[np.intp], of_column: NDArray[np.intp]) -> MixedRows:
    """What elements of these classes answer: 100 times the class, 10 times x, y."""
    d = KINDS * 100 + of_row[:, None] * 10 + of_column
    return MixedRows(X, X, of_row, of_column, d.astype(np.uint32))


IN_TURN = mixed(np.arange(12) % 2, np.arange(10) % 2)


def test_one_call_of_mixed_rows_says_what_calls_of_equal_rows_would() -> None:
    told = IN_TURN.apart(KINDS, np.arange(3))
    assert told is not None
    assert [np.array_equal(each.d, KINDS * 100 + i * 11) for i, each in enumerate(told)] == [True, True]


def test_of_classes_that_are_not_asked_about_it_says_nothing() -> None:
    told = IN_TURN.apart(KINDS, np.array([1]))
    assert told is not None
    assert np.array_equal(told[1].d, np.where(KINDS == 1, 111, 0))


@pytest.mark.parametrize("at", [(0, 0), (0, 1), (11, 9)])
def test_a_class_of_which_an_element_answers_otherwise_is_none(at: tuple[int, int]) -> None:
    d = IN_TURN.d.copy()
    d[at] += 1
    call = MixedRows(X, X, IN_TURN.of_row, IN_TURN.of_column, d)
    assert call.apart(KINDS, np.arange(3)) is None
    others = np.setdiff1d(np.arange(3), KINDS[at])
    assert call.apart(KINDS, others) is not None


def test_a_class_without_an_element_of_each_value_is_not_told() -> None:
    assert mixed(np.zeros(12, np.intp), np.arange(10) % 2).apart(KINDS, np.arange(3)) is None


def test_classes_are_those_alike_in_all_answers_the_largest_first() -> None:
    rng = np.random.default_rng(5)
    answers = [rng.integers(0, 2, (9, 1)) * 2 + rng.integers(0, 2, (1, 11)) for _ in range(2)]
    found = classes([EqualRows(X[0], X[0], each.astype(np.uint32)) for each in answers])
    both = answers[0] * 4 + answers[1]
    assert all(
        (found == found[at]).sum() == ((both == both[at]) & (found == found[at])).sum() for at in np.ndindex(9, 11)
    )
    assert len(np.unique(found)) == len(np.unique(both))
    assert (np.diff(np.bincount(found.ravel())) <= 0).all()


def test_rows_that_are_none_before_them() -> None:
    first, number = distinct_rows(np.array([[1, 2], [3, 4], [1, 2], [4, 3]]))
    assert (first.tolist(), number.tolist()) == ([0, 1, 3], [0, 1, 0, 2])
