"""Schedules whose steps are primitives, and operands of FP8, found by asking alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.random_products import Modelled, differ, stepped
from mmaprobe.derivation.schedules.candidates import candidates
from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.derivation.schedules.lane_orders import lane_order
from mmaprobe.derivation.schedules.orders import order_of
from mmaprobe.derivation.schedules.pairs import Pairs, view_of
from mmaprobe.derivation.schedules.steps import in_steps, tree_of
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, GemmStep, Join, Promotion, Ranges, Schedule
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.paired import paired_room

DOT = GemmStep("primitive", "x86-64", "VDPBF16PS[bf16,bf16->f32]")
MFMA = GemmStep("primitive", "gfx942", "MFMA.F16[f16,f16->f32,k8]")
HGMMA = GemmStep("primitive", "sm_90a", "HGMMA.F32[f16,f16->f32,k16]")
QGMMA = GemmStep("primitive", "sm_90a", "QGMMA.F32.E4M3.E4M3[e4m3,e4m3->f32,k32]")
SPREAD = (*range(0, 16, 2), *range(1, 16, 2))
WMMA = GemmStep("primitive", "gfx1201", "WMMA.F16.W32[f16,f16->f32,k16]", SPREAD)


def of(step: GemmStep, ranges: Ranges | None = None, count: int = 1, **more: Any) -> GemmKernel:
    return GemmKernel("x", ranges or Ranges(), Join("f32"), Accumulators("f32", count), step, **more)


def found_exact(truth: Schedule, k: int = 96) -> GemmKernel:
    """The kernel that asking found, which gives every bit of the truth at K that were not asked."""
    found = identify(Modelled(truth, (24, 24, k)), seed=1)
    assert (found.status, found.why) == ("exact", [])
    assert found.schedule is not None
    assert [differ(found.schedule, truth, other) for other in (201, 1003)] == [0, 0]
    (kind,) = found.kinds
    assert {each.verdict for each in kind.neighbours} == {"refuted", "equal"}
    assert kind.kernel is not None
    return kind.kernel


@pytest.mark.long
def test_a_primitive_with_lanes_left_one_by_one() -> None:
    kernel = found_exact(stepped(of(MFMA, count=2, tail="scalar"), "f16"))
    assert (kernel.step.datapath(), kernel.accumulators.count, kernel.tail) == (MFMA.datapath(), 2, "scalar")


@pytest.mark.long
def test_which_product_a_lane_takes_is_read() -> None:
    kernel = found_exact(stepped(of(WMMA), "f16"))
    assert (kernel.step.datapath(), kernel.step.order) == (WMMA.datapath(), SPREAD)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "operands"),
    [
        (of(DOT), "bf16"),
        (of(DOT, Ranges("uniform", 32), 2), "bf16"),
        (of(HGMMA, Ranges("ceil_split", parts=3, unit=16)), "f16"),
        (of(QGMMA, promotion=Promotion(4, "f32")), "e4m3"),
        (of(QGMMA), "e4m3"),
        (of(replace(QGMMA, primitive="QGMMA.F32.E5M2.E5M2[e5m2,e5m2->f32,k32]")), "e5m2"),
    ],
)
def test_primitives_are_found(kernel: GemmKernel, operands: str) -> None:
    found = found_exact(stepped(kernel, operands))
    assert found.step.datapath() == kernel.step.datapath()


def test_a_step_that_no_primitive_is_ends_with_how_its_lanes_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is claimed of it."""
    from mmaprobe.derivation.schedules import stepping

    left = tuple(each for each in candidates("f16", "f16", "f32") if each.datapath.tree != MFMA.datapath().tree)
    monkeypatch.setattr(stepping, "candidates", lambda *_: left)
    found = identify(Modelled(stepped(of(MFMA), "f16")), seed=1)
    assert (found.status, found.schedule) == ("bounded", None)
    assert "lanes meet as ((0 1 2 3 4 5 6 7) " in found.why[0]


def test_every_candidate_is_a_datapath_of_its_own() -> None:
    for a, d in (("bf16", "f32"), ("f16", "f16"), ("e4m3", "f32"), ("f32", "f32")):
        known = candidates(a, a, d)
        assert len({each.datapath for each in known}) == len(known) > 0
        assert all(each.step.datapath() == each.datapath for each in known)
    dot = next(each for each in candidates("bf16", "bf16", "f32") if each.datapath == DOT.datapath())
    assert "VDPBF16PS[bf16,bf16->f32] of x86-64" in dot.names


def test_an_order_of_lanes_turns_one_table_into_the_other() -> None:
    rng = np.random.default_rng(0)
    foretold = rng.integers(0, 3, (16, 16))
    foretold[0, 1] = 9
    order = rng.permutation(16)
    told = np.empty_like(foretold)
    told[np.ix_(order, order)] = foretold
    assert lane_order(told, foretold) == tuple(order.tolist())
    told[order[0], order[1]] = 8
    assert lane_order(told, foretold) is None
    assert lane_order(np.zeros((4, 4), int), np.zeros((4, 4), int)) == (0, 1, 2, 3)


def test_lanes_of_one_step_answer_alike() -> None:
    """The last lane of a step meets a later one as its first does, but for what the later step keeps."""
    pairs = Pairs(np.array([0, 1, 0]), np.array([2, 3, 5]), np.array([4, 3, 6]))
    steps = in_steps((6,), (3,), 2, pairs)
    assert steps is not None
    assert (steps.p.tolist(), steps.q.tolist(), steps.size.tolist()) == ([0, 0], [1, 2], [2, 3])
    assert in_steps((6,), (3,), 2, replace(pairs, size=np.array([4, 2, 6]))) is None


def test_how_lanes_meet_as_brackets() -> None:
    p, q = np.triu_indices(4, 1)
    size = np.where(p // 2 == q // 2, 2, 4)
    assert tree_of(Pairs(p, q, size), np.arange(4)) == "((0 1) (2 3))"
    assert tree_of(Pairs(p, q, np.full(6, 4)), np.arange(4)) == "(0 1 2 3)"


@pytest.mark.parametrize("operands", ["e4m3", "e5m2"])
@pytest.mark.parametrize("d", ["f32", "bf16", "f16"])
def test_pairs_of_fp8_have_the_sizes_of_their_order(operands: str, d: str) -> None:
    """Each in a row and a column of its own, of as many lanes at a time as there is room to count."""
    kernel = GemmKernel("x", Ranges("uniform", 40), Join("f32"), Accumulators("f32", 2))
    calls = ProductCalls(Modelled(replace(stepped(kernel, operands), d=d)), 500)
    view = view_of(calls, np.ones((12, 9), bool), 100)
    told = view.ask(100, np.array([0, 1, 2, 39, 40, 99]), np.array([0, 3, 41]))
    assert not told.misfits
    assert len(told) == 17
    assert (order_of(kernel, 100).sizes(told.p, told.q) == told.size).all()


def test_a_d_that_leaves_no_room_is_named() -> None:
    truth = replace(stepped(of(QGMMA), "e4m3"), d="e4m3")
    with pytest.raises(UsageError, match="D of e4m3 leaves no room"):
        paired_room(ProductCalls(Modelled(truth), 1))
