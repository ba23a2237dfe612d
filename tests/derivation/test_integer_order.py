"""Integer sums that saturate after each step tell in which order the steps take the lanes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.search.integer_order import order_told, order_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.models.engine import evaluate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Products

K = 16
SHUFFLED = tuple(np.random.default_rng(5).permutation(K).tolist())
BY_REMAINDER = tuple(sorted(range(K), key=lambda lane: (lane % 3, lane)))


def saturating(a: str, b: str, step: int, order: tuple[int, ...] | None) -> Datapath:
    tree = Exact((Accumulator(), Products(tuple(range(step)))), Encode("s32", overflow="largest"))
    return Datapath(a, b, "s32", "s32", K, tree, step, order)


def form(path: Datapath) -> Instruction:
    return replace(instruction("mma.m16n8k16.s32.s8.s8.s32"), a=path.a, b=path.b)


def steps(order: tuple[int, ...], size: int) -> list[set[int]]:
    return [set(order[i : i + size]) for i in range(0, K, size)]


@pytest.mark.parametrize(
    "formats", [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("s4", "s4"), ("s16", "s16"), ("ti16", "ti16")]
)
@pytest.mark.parametrize("step", [1, 2, 4, 8])
@pytest.mark.parametrize("order", [SHUFFLED, BY_REMAINDER])
def test_each_lane_tells_its_step(formats: tuple[str, str], step: int, order: tuple[int, ...]) -> None:
    path = saturating(*formats, step, order)
    vectors = order_vectors(form(path))
    assert vectors is not None
    told = order_told(evaluate(path, vectors))
    assert told is not None
    assert steps(told, step) == steps(order, step)


@pytest.mark.parametrize("step", [4, K])
def test_lanes_as_they_lie_have_no_order(step: int) -> None:
    path = saturating("s8", "s8", step, None)
    vectors = order_vectors(form(path))
    assert vectors is not None
    assert order_told(evaluate(path, vectors)) is None


def test_without_negative_products_there_is_nothing_to_tell() -> None:
    assert order_vectors(form(saturating("u8", "u8", 4, None))) is None


def test_a_unit_with_shuffled_lanes_is_derived() -> None:
    path = saturating("s8", "s8", 4, SHUFFLED)
    made = form(path)
    found = derive(DatapathDevice(made, path), made, seed=1).datapath
    assert found is not None
    assert found.step == 4
    assert found.order is not None
    assert steps(found.order, 4) == steps(SHUFFLED, 4)
