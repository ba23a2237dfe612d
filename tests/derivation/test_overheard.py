"""Calls that were made for one class of elements, read by another."""

from dataclasses import replace

import numpy as np

from cases.random_products import Modelled, alone
from mmaprobe.derivation.schedules.pairs import ClassView, Heard
from mmaprobe.derivation.schedules.search import read_order
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges
from mmaprobe.probing.gemm.calls import ProductCalls

K = 150
COLUMNS = np.broadcast_to(np.arange(40) < 30, (180, 40))
"""The first class; the other one has the last columns."""


def read_twice(refuted: bool = False) -> tuple[int, int, bool]:
    """Calls for one class, calls for another of the same order, and whether they read the same kernels; ``refuted``:
    the last call for the first says one more of every pair."""
    product = Modelled(alone(Ranges("uniform", 64), Accumulators("f32", 2), Join("f32")), (*COLUMNS.shape, K))
    calls, heard, rng = ProductCalls(product, 99), Heard(), np.random.default_rng(3)
    first = read_order(ClassView(calls, COLUMNS, heard), K, "f32", rng)
    count = calls.count
    if refuted:
        last = heard.grids[-1]
        (grid,) = last.grids
        heard.grids[-1] = replace(last, grids=(replace(grid, counts=np.maximum(grid.counts - 1, 0)),))
    second = read_order(ClassView(calls, ~COLUMNS, heard), K, "f32", rng)
    assert first.kernels
    return count, calls.count - count, {*first.kernels} == {*second.kernels}


def test_a_class_of_the_same_order_needs_no_calls_of_its_own() -> None:
    count, more, same = read_twice()
    assert (count, more, same) == (2, 0, True)


def test_an_order_that_the_last_call_refutes_is_none() -> None:
    count, more, same = read_twice(refuted=True)
    assert (count, more, same) == (2, 2, True)
