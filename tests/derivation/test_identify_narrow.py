"""Schedules of products whose D cannot count to K: bf16 and f16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.random_products import Modelled, alone, differ, drawn, rounded
from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.pairs import ClassView
from mmaprobe.devices.products import Manner
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Accumulators, GemmStep, Join, Ranges
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.families import FAMILIES, operands
from mmaprobe.probing.gemm.sizes import window

LONG = alone(Ranges("uniform", 150), Accumulators("f32", 4, join="halves"), Join("f32"))


@pytest.mark.parametrize(
    ("fmt", "sides", "k"), [("bf16", (6, 40), 700), ("bf16", (40, 6), 1000), ("f16", (12, 9), 2500)]
)
def test_parts_of_the_lanes_together_are_the_sizes_of_the_order(fmt: str, sides: tuple[int, int], k: int) -> None:
    """In as few calls as columns, or rows, have room for the parts."""
    product, rng = Modelled(rounded(LONG, fmt), (*sides, k)), np.random.default_rng(2)
    calls = ProductCalls(product, 100)
    p, q = rng.choice(k, 14, replace=False), rng.choice(k, 5, replace=False)
    found = ClassView(calls, np.ones(sides, bool)).ask(k, p, q)
    assert found.misfits == 0
    assert len(found) == len(
        {tuple(sorted(pair)) for pair in ((int(x), int(y)) for x in p for y in q) if len(set(pair)) > 1}
    )
    assert (order_of(LONG.kernels[0], k).sizes(found.p, found.q) == found.size).all()


def test_where_a_lane_has_no_room_for_both_rows_and_columns_have_their_own() -> None:
    calls = ProductCalls(Modelled(rounded(LONG, "f16")), 9)
    assert window(calls, 2000).apart
    assert not window(ProductCalls(Modelled(rounded(LONG, "bf16")), 9), 2000).apart
    lanes = np.arange(12)
    found = ClassView(calls, np.ones((24, 24), bool)).ask(90, lanes, np.array([3, 80]))
    assert {tuple(pair) for pair in zip(found.p.tolist(), found.q.tolist(), strict=True)} == {
        tuple(sorted((x, y))) for x in lanes.tolist() for y in (3, 80) if x != 3
    }


def test_formats_without_room_are_refused() -> None:
    with pytest.raises(UsageError, match="e4m3 and e4m3 leave no room for K = 100"):
        window(ProductCalls(Modelled(rounded(LONG, "e4m3")), 1), 100)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_schedules_are_recovered_or_left_open(seed: int) -> None:
    """Of bf16 or f16, some with partial sums of D's format; what is found gives the same bits elsewhere."""
    rng = np.random.default_rng(40 + seed)
    fmt = ("bf16", "f16")[seed % 2]
    truth = rounded(drawn(rng), fmt, ("f32", "f32", fmt)[seed % 3])
    found = identify(Modelled(truth, (24, 24, (96, 300)[seed % 5 == 0])), seed=seed)
    assert found.status in ("exact", "bounded"), found.why
    assert found.schedule is None or differ(found.schedule, truth, 201) == 0, truth


@pytest.mark.parametrize("fmt", ["bf16", "f16"])
@pytest.mark.parametrize("partials", ["f32", "narrow"])
def test_partial_sums_of_d_are_told_from_wide_ones(fmt: str, partials: str) -> None:
    of = fmt if partials == "narrow" else "f32"
    found = identify(Modelled(rounded(LONG, fmt, of), (24, 24, 600)))
    assert (found.status, found.why) == ("exact", [])
    (kind,) = found.kinds
    assert kind.kernel is not None
    assert (kind.kernel.join.format, kind.kernel.accumulators.format) == (of, "f32")
    verdicts = {each.field: each.verdict for each in kind.neighbours}
    assert (verdicts["join.format"], verdicts["accumulators.format"]) == ("refuted", "refuted")
    assert verdicts["step.by"] == ("refuted" if fmt == "bf16" else "equal")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", [GemmStep("fma", beyond="multiply_add"), GemmStep("multiply_add", beyond="fma")])
@pytest.mark.parametrize("fmt", ["f32", "bf16"])
def test_products_beyond_whole_blocks_are_told_by_themselves(step: GemmStep, fmt: str) -> None:
    """Though no K that was named has any."""
    own = Accumulators("f32", 4, block=4)
    truth = rounded(alone(Ranges(), own, Join("f32")), fmt)
    truth = replace(truth, kernels=(replace(truth.kernels[0], step=step),))
    found = identify(Modelled(truth, (24, 24, 96)))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert found.schedule.kernels[0].step == step


def test_accumulators_of_d_itself() -> None:
    kernel = replace(LONG.kernels[0], accumulators=replace(LONG.kernels[0].accumulators, format="f16"))
    truth = replace(rounded(LONG, "f16"), kernels=(replace(kernel, join=Join("f16"), step=GemmStep("multiply_add")),))
    found = identify(Modelled(truth, (24, 24, 600)))
    assert found.schedule is not None
    assert differ(found.schedule, truth, 1003) == 0


def lost_tail(a: Any, b: Any, d: Any) -> Any:
    k = a.shape[1] // 64 * 64
    return Gemm(rounded(LONG, "bf16")).run(a[None, :, :k], b[None, :k])[0]


def cut_off(a: Any, b: Any, d: Any) -> Any:
    """D has the first bits of the f32 sum."""
    return (Gemm(replace(rounded(LONG, "bf16"), d="f32")).run(a[None], b[None])[0] >> 16).astype(np.uint16)


def test_lanes_that_are_dropped_where_d_cannot_count_them() -> None:
    found = identify(Modelled(rounded(LONG, "bf16"), (5, 5, 700), lost_tail))
    assert (found.status, found.schedule) == ("wrong", None)
    assert (
        "of ones D[0, 2] is 173, not 233, with zeros beside lanes 467 to 699; 5 of 25 elements are wrong" in found.why
    )


def test_a_d_that_is_cut_off_is_no_rounded_one() -> None:
    found = identify(Modelled(rounded(LONG, "bf16"), (24, 24, 600), cut_off))
    assert (found.status, found.schedule) == ("bounded", None)
    assert found.why[0].startswith("D[0, 0] at 24x24: no step of single products gives its bits; ")


class ByLane(Modelled):
    """Products of a batch after the first are added in two ranges."""

    writes = False

    def multiply_so(self, a: Any, b: Any, manner: Manner) -> Any:
        d = self.multiply(a, b)
        other = alone(Ranges("ceil_split", parts=2), Accumulators("f32", 4, join="halves"), Join("f32"))
        later = Gemm(rounded(other, "bf16")).run(a[None], b[None])[0]
        return np.stack([d, *[later] * (manner.batch - 1)]) if manner.batch else d


def test_an_order_by_batch_lane_is_said() -> None:
    found = identify(ByLane(rounded(LONG, "bf16"), (24, 24, 700)))
    (batch,) = [each for each in found.manners if each.question == "batch"]
    assert batch.status == "differs"
    assert batch.said.startswith("as product 1 of 3 equal ones of a call")


@pytest.mark.parametrize("fmt", ["bf16", "f16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_a_narrow_d(fmt: str, family: str) -> None:
    """Masks and opposed values tell another order in many elements, a normal sum in few."""
    wide = rounded(LONG, fmt)
    other = rounded(alone(Ranges("uniform", 75), LONG.kernels[0].accumulators, Join("f32")), fmt)
    a, b = operands(ProductCalls(Modelled(wide), 0), family, (30, 40, 601), np.random.default_rng(1))
    d, e = (Gemm(each).run(a[None], b[None]) for each in (wide, other))
    if family in ("masks", "opposed"):
        assert (d != e).mean() > 0.2
