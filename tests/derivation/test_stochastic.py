"""Units that round by chance, and units that only seem to: a search ends there, and says which it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.stochastic import Spread, exact_sum, spread
from mmaprobe.devices.base import Support
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table

MADE = Instruction("chance.dot", "chance.dot", "chance", 1, 1, 4, "bf16", "bf16", "f32", "bf16")


def rounded(way: str, d: str = "bf16") -> Datapath:
    """Exact sums of four products and c, rounded so."""
    return from_table(
        {"a": "bf16", "b": "bf16", "c": "f32", "d": d, "k": 4, "special": {"code": formats.get(d).nan_code},
         "tree": {"node": "exact", "terms": ["c", "0..3"], "to": {"format": d, "rounding": way}}}
    )  # fmt: skip


DOWN, UP, NEAR, WIDE = rounded("RD"), rounded("RU"), rounded("RNE"), rounded("RNE", "f64")


class Chance:
    """A unit of which ``choose`` says each answer, of the sums rounded down, up and to nearest, by a random source."""

    concurrent: ClassVar[bool] = True
    name = "a unit of chance"

    def __init__(self, choose: Callable[[Batch, Bits, Bits, Bits, np.random.Generator], Bits]) -> None:
        self.choose, self.rng = choose, np.random.default_rng(7)

    def info(self) -> dict[str, str]:
        return {"architecture": "chance"}

    def instructions(self) -> Sequence[Instruction]:
        return (MADE,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(instruction == MADE, f"only {MADE.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        assert batch.c is not None
        flat = Batch(batch.a.reshape(-1, 4), batch.b.reshape(-1, 4), batch.c.reshape(-1))
        return self.run_vectors(instruction, flat).reshape(batch.c.shape)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        return self.choose(vectors, *(evaluate(path, vectors) for path in (DOWN, UP, NEAR)), self.rng)


def shares(vectors: Batch, down: Bits, up: Bits) -> np.ndarray:
    """How near each sum is to the upper of its neighbours, 0 to 1."""
    low, high = ((codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for codes in (down, up))
    with np.errstate(all="ignore"):
        found = (evaluate(WIDE, vectors).view(np.float64) - low) / (high - low)
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


def stochastic(vectors: Batch, down: Bits, up: Bits, near: Bits, rng: np.random.Generator) -> Bits:
    return np.where(rng.random(len(down)) < shares(vectors, down, up), up, down)


def eight_bits(vectors: Batch, down: Bits, up: Bits, near: Bits, rng: np.random.Generator) -> Bits:
    """The first eight bits below the last place, and as many random ones, carry."""
    return np.where(np.floor(shares(vectors, down, up) * 256) + rng.integers(0, 256, len(down)) >= 256, up, down)


def a_coin(vectors: Batch, down: Bits, up: Bits, near: Bits, rng: np.random.Generator) -> Bits:
    """Of two neighbours either; a sum of zero stays one."""
    return np.where((rng.random(len(down)) < 0.5) & ((down | up) & 0x7FFF > 0), up, down)


def a_lost_bit(vectors: Batch, down: Bits, up: Bits, near: Bits, rng: np.random.Generator) -> Bits:
    """One answer in a hundred has a wrong bit somewhere."""
    flips = np.uint16(1) << rng.integers(0, 16, len(near)).astype(np.uint16)
    return np.where(rng.random(len(near)) < 0.01, near ^ flips, near)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("choose", [stochastic, eight_bits])
def test_stochastic_rounding_is_recognised(choose: Callable[..., Bits]) -> None:
    found = derive(Chance(choose), MADE)
    assert found.status == "inconclusive"
    assert "do not repeat" in found.reason
    assert "this is stochastic rounding" in found.reason


def test_a_coin_between_the_neighbours_is_something_else() -> None:
    found = derive(Chance(a_coin), MADE)
    assert "do not repeat" in found.reason
    assert "this is stochastic" not in found.reason
    assert "but" in found.reason
    assert "of few random bits, or last places that change" in found.reason


def test_answers_with_lost_bits_are_not_rounded_by_chance() -> None:
    found = derive(Chance(a_lost_bit), MADE)
    assert "do not repeat" in found.reason
    assert "stochastic" not in found.reason


def test_a_unit_that_repeats_says_nothing_of_chance() -> None:
    assert spread(Chance(lambda vectors, down, up, near, rng: near), MADE, 0) == Spread(0, 0, 0)
    assert not str(Spread(3, 3, 3))


def test_an_exact_sum_has_scales_and_no_infinities() -> None:
    made = Instruction(
        "s", "s", "s", 1, 1, 2, "e4m3", "e4m3", "f32", "f32", scale="ue8m0", scale_size=1
    )  # fmt: skip
    one, two = formats.get("e4m3").one, formats.get("e4m3").one + 8
    given = Batch(
        np.array([[one, two]], np.uint8), np.array([[two, two]], np.uint8), np.array([0x3F800000], np.uint32),
        np.array([[127, 128]], np.uint8), np.array([[127, 126]], np.uint8),
    )  # fmt: skip
    assert exact_sum(made, given, 0) == 1 + 2 + 4
    assert exact_sum(made, replace(given, c=np.array([0x7F800000], np.uint32)), 0) is None
