"""A schedule held against the product at shapes that were not asked before: every element, of values of few kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Schedule
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.families import operands
from mmaprobe.probing.gemm.integer_values import INTEGER_FAMILIES
from mmaprobe.probing.gemm.sizes import narrow

SHAPES = ((67, 95, 2.3), (13, 16, 1.0), (45, 29, 3.7), (101, 64, 0.31), (24, 130, 1.7), (9, 11, 5.1))
"""M, N, and K as a multiple of the one that was named."""
OF_ZEROS = 3
"""The shape at which signs of zeros are held, too, at a K that is odd where the one that was named is even, or even: a
library that fills an odd K up with a zero adds it to what was -0."""
GROUPED = 4
"""Lanes that instructions of integers add at a time: of K every remainder is held."""
KINDS = ("normal", "cancelling", "tiny")
"""Kinds of values."""
NARROW_KINDS = ("opposed", "cancelling", "opposed", "tiny")
"""Kinds of values of a D that has less bits than the sums have."""
MOST_K = 1 << 14
"""Largest K that is tried, but for the one that was named."""


@dataclass(frozen=True)
class Held:
    """A shape, the kind of values, and how many elements differ; ``at`` is the first."""

    shape: tuple[int, int, int]
    kind: str
    differ: int
    at: tuple[int, int] | None

    def __str__(self) -> str:
        m, n, k = self.shape
        where = "" if self.at is None else f", the first at D[{self.at[0]}, {self.at[1]}]"
        return f"of {m * n:,} elements at {m} x {n} x {k}, {self.kind} values, {self.differ:,} differ{where}"


def kinds_of(calls: ProductCalls) -> tuple[str, ...]:
    """The kinds of values that show most of a product of these formats."""
    if calls.of_integers:
        return INTEGER_FAMILIES
    return NARROW_KINDS if narrow(calls.d) else KINDS


def hold(calls: ProductCalls, schedule: Schedule, least: tuple[int, int, int], rng: np.random.Generator) -> list[Held]:
    """What came of every shape that the product has, one kind of values after the other; none is smaller than
    ``least``."""
    model, found = Gemm(schedule), list[Held]()
    k, kinds = calls.product.shape[2], kinds_of(calls)
    columns = None if schedule.integers is None else schedule.integers.columns()
    for number, (m, n, factor) in enumerate(SHAPES):
        lanes = int(k * factor)
        lanes = lanes - lanes % GROUPED + number % GROUPED if calls.of_integers else lanes | 1
        lanes = max(1, min(lanes, max(MOST_K, k)))
        m, n, lanes = (x if x >= low else low + x for x, low in zip((m, columns or n, lanes), least, strict=True))
        wanted = [(kind, lanes) for kind in (kinds if calls.of_integers else [kinds[number % len(kinds)]])]
        if number == OF_ZEROS and not calls.of_integers:
            wanted.append(("zeros", lanes + (lanes + k + 1) % 2))
        for kind, length in wanted:
            try:
                found.append(_compare(calls, model, (m, n, length), kind, rng))
            except UsageError:
                break  # the product has no such shape
    return found


def _compare(
    calls: ProductCalls, model: Gemm, shape: tuple[int, int, int], kind: str, rng: np.random.Generator
) -> Held:
    a, b = operands(calls, kind, shape, rng)
    differ = np.argwhere(calls.ask(a, b) != model.run(a[None], b[None])[0])
    return Held(shape, kind, len(differ), (int(differ[0][0]), int(differ[0][1])) if len(differ) else None)
