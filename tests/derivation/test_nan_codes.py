"""Which NaNs a device answers, in an order that chance does not decide."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.search.nan_order import nan_codes
from mmaprobe.operands.batch import Batch

FORM = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80")
ONE, QUIET, INFINITY = 0x3C00, 0x7E00, 0x7C00


def asked(answers: list[int], invalid: int = 0) -> list[int]:
    """The codes of these answers: to so many invalid products first, then to a NaN."""
    a, b = np.full((2, len(answers), FORM.k), ONE, np.uint16)
    a[:, 0] = QUIET
    a[:invalid, 0], b[:invalid, 0] = INFINITY, 0
    return nan_codes(FORM, Batch(a, b, np.zeros(len(answers), np.uint32)), np.array(answers, np.uint32))


@pytest.mark.parametrize("answers", [[5, 5, 3], [3, 3, 5], [5, 3]])
def test_codes_of_operands_are_in_the_order_of_the_codes(answers: list[int]) -> None:
    """However often each is met: unit 51001, whose seeds named either of two codes that nothing tells apart."""
    assert asked([0x7FC00000 + each for each in answers]) == [0x7FC00003, 0x7FC00005]


def test_that_of_an_invalid_operation_is_first() -> None:
    assert asked([0x7FFFFFFF, 0x7FC00001, 0x7FC00001], invalid=1) == [0x7FFFFFFF, 0x7FC00001]
    assert asked([0x7FFFFFFF, 0x7FFFFFFF, 0x7FC00009, 0x7FC00009, 0x7FC00009], invalid=3)[0] == 0x7FFFFFFF


def test_where_there_is_none_it_is_that_of_the_format() -> None:
    assert asked([0x3F800000]) == [0x7FC00000]
