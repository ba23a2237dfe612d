"""What a schedule does with each live lane of one element, and what two products have after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gemm import GemmDevice, GemmProduct
from mmaprobe.devices.products import MatrixProduct
from mmaprobe.errors import UsageError
from mmaprobe.models.hexfloat import code_value
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.schedule import GemmKernel, Schedule
from mmaprobe.validation.products.comparing import ProductPair
from mmaprobe.validation.products.smallest import Smallest, answers_at

NO_KERNELS = "sums of integers have no kernels to draw; two of them are told apart by mmaprobe gemm diff"
"""What is said where a kernel of integers is asked for."""
MOST_RANGES = 6
"""Ranges of one element that are told, the last ones."""


@dataclass(frozen=True)
class LanePlace:
    """Where a kernel adds a lane: number and lanes of its range, its accumulator (None: the sum of them), and the step
    of the range."""

    kernel: str
    number: int
    lanes: range
    accumulator: int | None
    step: int

    def __str__(self) -> str:
        own = "after the accumulators" if self.accumulator is None else f"accumulator {self.accumulator}"
        return f"range {self.number} ({self.lanes.start} to {self.lanes.stop - 1}), {own}, step {self.step}"


@dataclass(frozen=True)
class PartialSum:
    """A live lane, its codes, where each schedule adds it (None: no schedule), and both D of it and the lanes before
    it alone."""

    lane: int
    a: int
    b: int
    places: tuple[LanePlace | None, LanePlace | None]
    sums: tuple[int, int]
    differ: bool


def partial_sums(products: ProductPair, made: Smallest) -> list[PartialSum]:
    """One row a live lane, in the order of K, which is that of every schedule's ranges and steps."""
    found = []
    kernels = [kernel_at(each.product, made) for each in (products.p, products.q)]
    for lane in made.live:
        x, y = made.x.copy(), made.y.copy()
        x[lane + 1 :], y[lane + 1 :] = 0, 0
        sums = answers_at(products, made, x, y)
        differ = products.unequal(*(np.array([each], products.p.d.dtype) for each in sums))
        first, second = (None if kernel is None else place_of(kernel, len(made.x), lane) for kernel in kernels)
        found.append(PartialSum(lane, int(made.x[lane]), int(made.y[lane]), (first, second), sums, bool(differ[0])))
    return found


def schedule_of(product: MatrixProduct) -> Schedule | None:
    """The schedule of a product that is one."""
    return product.schedule if isinstance(product, GemmProduct) else None


def kernel_at(product: MatrixProduct, made: Smallest) -> GemmKernel | None:
    """The kernel by which a schedule computes the element; None of a product that is none, and of sums of integers."""
    schedule = schedule_of(product)
    return None if schedule is None or schedule.integers is not None else kernel_of(schedule, made.shape, made.at)


def kernel_of(schedule: Schedule, shape: tuple[int, int, int], at: tuple[int, int]) -> GemmKernel:
    """The kernel of an element of a product of this shape; UsageError of sums of integers, which have none."""
    if schedule.integers is not None:
        raise UsageError(NO_KERNELS)
    return next(kernel for kernel, rows, columns in schedule.areas(*shape) if at[0] in rows and at[1] in columns)


def place_of(kernel: GemmKernel, k: int, lane: int) -> LanePlace:
    """Where a kernel adds a lane of K."""
    number, lanes = next((i, each) for i, each in enumerate(kernel.ranges.of(k)) if lane in each)
    width = kernel.step.width
    step = (lane - lanes.start) // width
    dealt = kernel.accumulators.dealt(-(-len(lanes) // width))
    accumulator = next((i for i, each in enumerate(dealt) if step in each), None)
    return LanePlace(kernel.name, number, lanes, accumulator, step)


def schedule_says(device: GemmDevice, made: Instruction, vector: Batch, at: tuple[int, int]) -> str:
    """How a schedule comes to one element, in a line: its kernel, and D of the lanes up to the end of each range that
    has a live one, the last of them."""
    if device.schedule.integers is not None:
        return "a sum of integers, as the schedule's integers say"
    kernel, fmt = kernel_of(device.schedule, (made.m, made.n, made.k), at), formats.get(made.d)
    live = (vector.a[0] != 0) & (vector.b[0] != 0)
    words = []
    for number, lanes in enumerate(kernel.ranges.of(made.k)):
        if live[lanes.start : lanes.stop].any():
            blank = Batch(
                **{name: np.zeros(shape, getattr(vector, name).dtype) for name, shape in made.shapes(1).items()}
            )
            blank.a[0, at[0], : lanes.stop] = vector.a[0, : lanes.stop]
            blank.b[0, : lanes.stop, at[1]] = vector.b[0, : lanes.stop]
            if blank.c is not None and vector.c is not None:
                blank.c[0, at[0], at[1]] = vector.c[0]
            d = int(device.run(made, blank)[0, at[0], at[1]])
            words.append(f"up to range {number} ({lanes.start} to {lanes.stop - 1}) {code_value(fmt, d)}")
    said = "; ".join(words[-MOST_RANGES:]) or "no live lane"
    return f"kernel {kernel.name}: {'... ' * (len(words) > MOST_RANGES)}{said}"
