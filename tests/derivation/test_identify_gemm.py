"""A matrix product's schedule found by asking alone: models whose file is known, and products that lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.random_products import Modelled, alone, differ, drawn, staged
from mmaprobe.derivation.schedules.dealings import JOINS, RESTS, dealt_out, first_meets
from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.pairs import Pairs
from mmaprobe.derivation.schedules.regions import fit_regions
from mmaprobe.devices.products import open_product
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import (
    Accumulators,
    Bands,
    GemmKernel,
    GemmStep,
    Join,
    Promotion,
    Ranges,
    Region,
    read_schedule,
    to_text,
)
from mmaprobe.probing.gemm.calls import ProductCalls, UnrepeatedError
from mmaprobe.probing.gemm.sizes import read_counts

PLAIN = alone(Ranges("uniform", 40), Accumulators("f32", 4, join="halves"), Join("f32"))


def test_sizes_of_orders_are_those_that_a_product_answers() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        schedule, k = staged(drawn(rng), rng), int(rng.integers(2, 70))
        p = np.arange(k)
        read = k - read_counts(ProductCalls(Modelled(schedule), 1), k, p, p)
        foretold = order_of(schedule.kernels[0], k).sizes(p[:, None], p[None, :])
        assert (read == foretold)[p[:, None] != p[None, :]].all(), schedule


def test_where_a_first_lane_meets_the_others_is_what_the_whole_order_says() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        count, run, length = (int(each) for each in rng.integers(1, (9, 6, 120)))
        join = JOINS[int(rng.integers(3 if count & (count - 1) == 0 else 2))]
        block = int(rng.integers(4)) * count * run or 1
        rest = RESTS[int(rng.integers(1 if block == 1 else 2 if count < 3 else 3))]
        late = int(rng.integers(min(block, 5)))
        own = Accumulators("f32", count, run, block, "zero", join, rest, late)  # type: ignore[arg-type]
        at = np.arange(1, length)
        order = order_of(replace(PLAIN.kernels[0], ranges=Ranges(), accumulators=own), length)
        assert (first_meets(own, np.full_like(at, length), at) == order.sizes(np.zeros_like(at), at)).all(), own


def test_the_dealing_that_gave_the_sizes_is_among_those_tried() -> None:
    """Of ranges of two lengths, whichever of their lanes were asked."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        count, run, length = (int(each) for each in rng.integers((2, 1, 24), (9, 4, 60)))
        unit, join = (
            count * run,
            JOINS[int(rng.integers(3 if count & (count - 1) == 0 else 2))] if count > 2 else "chain",
        )
        block = int(rng.integers(length // unit + 1)) * unit or 1
        rest = RESTS[int(rng.integers(1 if block == 1 else 2 if count < 3 else 3))]
        late = int(rng.integers(min(block - 1, length - block, 4) + 1)) if block > 1 else 0
        own = Accumulators("f32", count, run, block, "zero", join, rest, late)  # type: ignore[arg-type]
        lengths = (length, length - int(rng.integers(1, 20)))
        order = order_of(
            replace(PLAIN.kernels[0], ranges=Ranges("given", lengths=lengths), accumulators=own), sum(lengths)
        )
        p, q = np.triu_indices(sum(lengths), 1)
        asked = (p == 0) | (p == length) | (rng.random(len(p)) < 0.1)
        asked &= rng.random(len(p)) < rng.choice([0.2, 0.5, 1.0])
        pairs = Pairs(p[asked], q[asked], order.sizes(p[asked], q[asked]))
        dealt = {each.accumulators for each in dealt_out(lengths, "chain", pairs, "f32", False)}
        assert own in dealt, (own, lengths)


def test_a_dealing_that_pairs_of_other_lanes_refute_is_not_tried() -> None:
    """Lanes 0 to 3 meet alike in one chain and in runs of four; lanes 4 and 5 tell."""
    p, q = np.array([0, 0, 0, 4]), np.array([1, 2, 3, 5])
    for last, counts in ((6, {1}), (2, {2})):
        pairs = Pairs(p, q, np.array([2, 3, 4, last]))
        dealt = [each.accumulators for each in dealt_out((16,), "chain", pairs, "f32", False)]
        assert {each.count for each in dealt if each.count == 1 or (each.count, each.run) == (2, 4)} == counts


def test_a_k_of_one_has_no_order() -> None:
    with pytest.raises(UsageError, match="K is 1, and one product has no order; name another"):
        identify(Modelled(PLAIN, (4, 4, 1)))


SETTLED: dict[str, tuple[Any, ...]] = {
    "every accumulator has a step at some K alone": (Ranges("uniform", 22), Accumulators("f32", 8, block=16)),
    "the first range alone has a rest": (Ranges("residue_first", 18), Accumulators("f32", 3, block=6)),
    "the K named has no halves": (Ranges("halve_last", 16, 2), Accumulators("f32", 8, 2)),
    "an accumulator never has a step": (Ranges("uniform", 14), Accumulators("f32", 8, 3, join="halves")),
    "the last step of whole blocks is late": (
        Ranges("halve_last", 22, 2),
        Accumulators("f32", 2, block=4, rest="after", late=1),
    ),
    "the rest is in the first of two sums": (
        Ranges("uniform", 22),
        Accumulators("f32", 4, block=4, join="halves", rest="before"),
    ),
    "the last range is shorter than a block": (Ranges("uniform", 40), Accumulators("f32", 2, block=34)),
    "whole steps are less than half of a range": (Ranges("uniform", 53), Accumulators("f32", 7, block=28, late=4)),
    "what is promoted is never -0": (Ranges("uniform", 21), Accumulators("f32", 2, block=4), Promotion(2, "f32")),
}


@pytest.mark.parametrize("why", SETTLED)
def test_calls_are_made_for_what_the_search_leaves_open(why: str) -> None:
    """Of each a neighbour agrees with all answers that told the rules apart."""
    ranges, accumulators, *promotion = SETTLED[why]
    schedule = alone(ranges, accumulators, Join("f32"), *promotion)
    found = identify(Modelled(schedule), seed=1)
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert differ(found.schedule, schedule, 201) == 0


@pytest.mark.long
@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_a_kernel_by_the_length_of_an_axis_is_followed_to_its_ends(axis: Any) -> None:
    """As MLAS' do, which goes by the number of columns."""
    kernels = [GemmKernel(f"to_{length}", Ranges("uniform", length), Join("f32"), PLAIN.kernels[0].accumulators)
               for length in (31, 17, 12)]  # fmt: skip
    bands = (Bands(most=6), Bands(least=7, most=20))
    some = [Region(one.name, **{axis: band}) for one, band in zip(kernels, bands, strict=False)]
    schedule = replace(PLAIN, kernels=tuple(kernels), regions=(*some, Region("to_12", rest=True)))
    found = identify(Modelled(schedule))
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert [getattr(each, axis) for each in found.schedule.regions] == [*bands, Bands()]


@pytest.mark.parametrize(
    ("kernels", "axis", "ends"),
    [({(4, 9): 0, (8, 3): 1, (6, 5): 1, (5, 4): 0}, 0, [5]), ({(4, 9): 0, (8, 3): 1, (9, 4): 0, (9, 2): 0}, 1, [2, 3]),
     ({(4, 9): 0, (4, 3): 1, (9, 9): 1}, None, []), ({(4, 9): 0, (8, 3): 1}, None, [])],
)  # fmt: skip
def test_kernels_go_by_the_axis_that_has_less_ends(kernels: Any, axis: int | None, ends: list[int]) -> None:
    maps = [np.full(shape, kernel) for shape, kernel in kernels.items()]
    found = fit_regions(maps, ["a", "b"], [])
    if axis is None:
        assert all(each.rows.most == each.columns.most == Bands().most for each in found or ())
        return
    assert found is not None
    bands = [each.columns if axis else each.rows for each in found[:-1]]
    assert [each.most for each in bands] == ends
    assert [each.least for each in bands] == [0, *(end + 1 for end in ends[:-1])]


@pytest.mark.long
def test_a_k_that_tells_no_more_is_not_asked_again() -> None:
    """At K = 25 the first answers leave 207 orders, and a call there none less: other K are asked."""
    schedule = alone(Ranges("uniform", 24), Accumulators("f32", run=2), Join("f32", "pairwise"))
    found = identify(Modelled(schedule), seed=1)
    assert (found.status, found.why) == ("exact", [])


@pytest.mark.long
def test_random_schedules_are_recovered_or_left_open() -> None:
    """Found schedules give the same bits at shapes and K that were not asked; what is not found is said to be open."""
    rng, exact = np.random.default_rng(3), 0
    for _ in range(8):
        schedule = drawn(rng)
        found = identify(Modelled(schedule), seed=1)
        assert found.status in ("exact", "bounded"), found.why
        if found.schedule is not None:
            assert differ(found.schedule, schedule, 201) == 0, schedule
        exact += found.status == "exact"
    assert exact >= 7


@pytest.mark.long
def test_regions_and_both_kernels_of_a_shipped_schedule() -> None:
    product = open_product("gemm:openblas_haswell_f32?m=24&n=40&k=660")
    found = identify(product)
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert differ(found.schedule, mmaprobe.gemm("openblas_haswell_f32").schedule, 1500) == 0
    assert found.calls < 60


@pytest.mark.long
def test_four_kernels_much_alike_and_their_regions() -> None:
    product = open_product("gemm:openblas_nehalem_f64?m=64&n=64&k=300")
    found = identify(product)
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert differ(found.schedule, mmaprobe.gemm("openblas_nehalem_f64").schedule, 1001) == 0


def test_every_neighbour_has_its_reason_and_the_file_is_read_again(tmp_path: Path) -> None:
    found = identify(Modelled(PLAIN))
    assert found.status == "exact"
    (kind,) = found.kinds
    assert {each.verdict for each in kind.neighbours} == {"refuted", "equal"}
    refuted = {(each.field, each.value) for each in kind.neighbours if each.verdict == "refuted"}
    for near in (
        ("ranges.length", "39"),
        ("ranges.length", "80"),
        ("accumulators.count", "8"),
        ("step.by", "multiply_add"),
        ("join.start", "first"),
    ):
        assert near in refuted
    assert found.schedule is not None
    path = tmp_path / "x.toml"
    path.write_text(to_text(found.schedule), encoding="utf-8")
    assert read_schedule(path) == found.schedule


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["fma", "multiply_add"])
@pytest.mark.parametrize("first", ["zero", "first"])
def test_steps_and_starts_are_told_apart_by_values(by: Any, first: Any) -> None:
    plain = alone(Ranges("uniform", 24), Accumulators("f32", start="product"), Join("f32", start=first))
    schedule = replace(plain, kernels=(replace(plain.kernels[0], step=GemmStep(by)),))
    found = identify(Modelled(schedule))
    assert found.schedule is not None
    (kernel,) = found.schedule.kernels
    assert kernel.step.by == by
    assert (kernel.join.start == "first" and kernel.accumulators.start == "product") == (first == "first")


def test_what_ranges_are_filled_up_to_is_found() -> None:
    plain = alone(Ranges("uniform", 24), Accumulators("f32"), Join("f32", start="first"))
    found = identify(Modelled(replace(plain, kernels=(replace(plain.kernels[0], step=GemmStep(filled=4)),))))
    assert (found.status, found.schedule and found.schedule.kernels[0].step) == ("exact", GemmStep(filled=4))
    refuted = {each.value: each.verdict for each in found.kinds[0].neighbours if each.field == "step.filled"}
    assert refuted == dict.fromkeys("2358", "refuted")


def lost_tail(a: Any, b: Any, d: Any) -> Any:
    """Lanes beyond whole sixteens are not added."""
    k = a.shape[1] // 16 * 16
    return Gemm(PLAIN).run(a[None, :, :k], b[None, :k])[0]


def leaking(a: Any, b: Any, d: Any) -> Any:
    """A row is NaN where the row above it is."""
    d = d.copy()
    above = np.isnan(a.view(np.float32)).any(1)[:-1]
    d[1:][above] = 0x7FC00000
    return d


def wrong_tile(a: Any, b: Any, d: Any) -> Any:
    """One element is added in another order."""
    d = d.copy()
    d[-1, -1] = Gemm(alone(Ranges(), Accumulators("f32", 2), Join("f32"))).run(a[None, -1:], b[None, :, -1:])[0, 0, 0]
    return d


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        (lost_tail, "wrong", "of ones D[0, 0] is 96, not K = 100"),
        (leaking, "wrong", "is NaN, which only other rows and columns hold"),
        (lambda a, b, d: np.full_like(d, d[0, 0]), "wrong", "every element of D is"),
    ],
)
def test_products_that_lie(change: Any, status: str, said: str) -> None:
    found = identify(Modelled(PLAIN, (24, 24, 100), change))
    assert (found.status, found.schedule) == (status, None)
    assert any(said in each for each in found.why)


@pytest.mark.long
def test_one_element_of_another_order_is_no_part_of_a_rule_that_misses_it() -> None:
    found = identify(Modelled(PLAIN, (6, 6, 90), change=wrong_tile))
    assert [int(kind.mask.sum()) for kind in found.kinds[:2]] == [35, 1]
    assert found.schedule is None


def test_answers_that_do_not_repeat() -> None:
    states = iter(range(1000))

    def turns(a: Any, b: Any, d: Any) -> Any:
        return d ^ np.uint32(next(states) % 2) if np.unique(a).size > 2 else d

    with pytest.raises(UnrepeatedError, match=r"answered in two ways: D\[0, 0\] is 0x[0-9a-f]+, then 0x[0-9a-f]+"):
        identify(Modelled(PLAIN, change=turns))


def test_a_budget_that_is_too_small_leaves_it_open() -> None:
    found = identify(Modelled(PLAIN), budget=9)
    assert (found.status, found.calls) == ("bounded", 9)
    assert found.why[-1] == "a budget of 9 calls was too small; more with --budget"


def test_who_listens_hears_what_is_looked_for_and_every_call() -> None:
    heard = list[tuple[str, int]]()
    found = identify(Modelled(PLAIN), hearing=lambda phase, count: heard.append((phase, count)))
    assert [count for _, count in heard] == sorted(count for _, count in heard)
    assert {count for _, count in heard} == {*range(found.calls + 1)}
    phases = [*dict.fromkeys(phase for phase, _ in heard)]
    assert phases[:3] == ["whether it is a product", "elements of one order at 24 x 24", "order 1 at K = 96"]
    assert phases[-1] == "shapes that were not asked before"
