"""Maps of products: which orders there are at which shape, whose they are, and whether rows keep their bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.random_products import Modelled, alone
from mmaprobe.derivation.schedules.mapping import axis_changes, map_product, row_witness
from mmaprobe.devices.products import open_product
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges, schedule_named
from mmaprobe.report.tables.product_maps import map_json, map_lines

PLAIN = alone(Ranges("uniform", 40), Accumulators("f32"), Join("f32"))
PAIRS = alone(Ranges("uniform", 40), Accumulators("f32", 2), Join("f32"))
HASWELL = "openblas_haswell_f32"


def alone_in_small(a: Any, b: Any, d: Any) -> Any:
    """Of a product of less than four rows all elements are of two accumulators."""
    return Gemm(PAIRS).run(a[None], b[None])[0] if len(a) < 4 else d


@pytest.mark.long
def test_one_order_at_every_shape_is_one_rule_and_invariant() -> None:
    shapes = [(m, 24, k) for k in (30, 100, 170) for m in (1, 4, 20)]
    found = map_product({0: Modelled(PLAIN)}, shapes, {"plain": PLAIN, "pairs": PAIRS})
    assert [row.shape for row in found.rows] == shapes
    assert {row.schedules for row in found.rows} == {("plain",)}
    (order,) = [each for each in found.orders if each.seen]
    assert sorted(order.seen) == [30, 100, 170]
    assert order.kernels[0].ranges == Ranges("uniform", 40)
    assert [each.at for each in axis_changes(found)] == [None, None]
    assert all(row_witness(rows) is None for _, rows in found.batches())
    said = [each for each in map_lines(found) if isinstance(each, str)]
    assert "M changes no order here" in said
    assert "N = 24, K = 30: a row has the same bits at every place of M = 1, 4, 20" in said


def test_a_row_whose_bits_the_batch_changes_has_a_witness() -> None:
    found = map_product({0: Modelled(PLAIN, change=alone_in_small)}, [(m, 24, 100) for m in (2, 8)], {"plain": PLAIN})
    assert [row.schedules for row in found.rows] == [(), ("plain",)]
    ((_, rows),) = found.batches()
    witness = row_witness(rows)
    assert witness is not None
    assert witness.places == (((2, 24, 100), 0, 0), ((8, 24, 100), 0, 0))
    x, y = (np.array(each, np.uint32) for each in (witness.x, witness.y))
    expected = tuple(int(Gemm(each).run(x[None, None], y[None, :, None])[0, 0, 0]) for each in (PAIRS, PLAIN))
    assert witness.answers == expected
    (change,) = axis_changes(found)
    assert change.axis == "M"
    assert map_json(found)["batches"][0]["witness"]["answers"] == list(map(hex, expected))


def test_regions_of_a_shipped_schedule_and_what_it_has_no_shape_for() -> None:
    product = open_product(f"gemm:{HASWELL}")
    found = map_product({0: product}, [(1, 40, 700), (8, 40, 700), (24, 40, 700)], {HASWELL: schedule_named(HASWELL)})
    assert [row.shape for row in found.rows] == [(8, 40, 700), (24, 40, 700)]
    assert {row.schedules for row in found.rows} == {(HASWELL,)}
    assert found.absent[0].startswith("1 x 40 x 700: M is 1; the schedule holds for M from 2")
    assert len(found.rows[1].rows) == 2
    assert sorted(each.kernels[0].accumulators.count for each in found.orders) == [1, 2]


@pytest.mark.long
def test_threads_are_an_axis_of_their_own() -> None:
    found = map_product({1: Modelled(PLAIN), 2: Modelled(PAIRS)}, [(4, 8, 90)], {})
    assert [(row.threads, row.number[0, 0]) for row in found.rows] == [(1, 0), (2, 1)]
    (change,) = axis_changes(found)
    assert change.axis == "threads"


def test_calls_that_are_too_few_leave_orders_unread() -> None:
    found = map_product({0: Modelled(PLAIN)}, [(4, 8, 90)], {}, budget=5)
    assert found.unread == "a budget of 5 calls was too small; more with --budget"
    assert not found.orders[0].read
    assert "a: not read; seen at K = 90" in [each for each in map_lines(found) if isinstance(each, str)]


def test_an_order_outside_of_the_grammar_is_said_to_be_that() -> None:
    def scrambled(a: Any, b: Any, d: Any) -> Any:
        order = np.random.default_rng(7).permutation(a.shape[1])
        return Gemm(PLAIN).run(a[None][:, :, order], b[None][:, order])[0]

    found = map_product({0: Modelled(PLAIN, change=scrambled)}, [(20, 24, 90)], {})
    assert (found.orders[0].read, found.orders[0].kernels) == (True, [])


def test_too_many_shapes_are_refused() -> None:
    with pytest.raises(UsageError, match="500 shapes; a map has at most 400"):
        map_product({0: Modelled(replace(PLAIN))}, [(m, 1, 1) for m in range(1, 501)], {})
