"""What sizes of partial sums do not show: how a product is rounded, and what sums start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel, GemmStep, Region, Schedule, Scope
from mmaprobe.probing.gemm.elements import EqualRows

STEPS = ("fma", "multiply_add")
STARTS = ("zero", "product")
FIRSTS = ("zero", "first")


@dataclass(frozen=True)
class Formats:
    """Formats of A, B and D."""

    a: str
    b: str
    d: str

    def alone(self, kernel: GemmKernel) -> Schedule:
        """The schedule by which this kernel computes every element."""
        return Schedule(self.a, self.b, self.d, Scope("none"), (kernel,), (Region(kernel.name, rest=True),))


def variants(kernel: GemmKernel) -> Iterator[GemmKernel]:
    """The same order with every step and start, the plainest first."""
    for by, start, first in product(STEPS, STARTS, FIRSTS):
        yield replace(
            kernel,
            step=GemmStep(by),  # type: ignore[arg-type]
            accumulators=replace(kernel.accumulators, start=start),  # type: ignore[arg-type]
            join=replace(kernel.join, start=first),  # type: ignore[arg-type]
        )


def computed(kernel: GemmKernel, formats: Formats, asked: Sequence[EqualRows]) -> list[int]:
    """The element that each call's x and y give by a kernel."""
    model = Gemm(formats.alone(kernel))
    return [int(model.run(each.x[None, None], each.y[None, :, None])[0, 0, 0]) for each in asked]


def agreeing(
    kernel: GemmKernel, formats: Formats, asked: Sequence[EqualRows], mask: NDArray[np.bool_]
) -> list[GemmKernel]:
    """The variants of a kernel that give the bits of every call in these elements."""
    wanted = [_one(each.d[mask]) for each in asked]
    found = []
    for variant in variants(kernel):
        if all(value == bits for value, bits in zip(_lazily(variant, formats, asked), wanted, strict=True)):
            found.append(variant)
    return found


def _lazily(kernel: GemmKernel, formats: Formats, asked: Sequence[EqualRows]) -> Iterator[int]:
    for each in asked:
        yield computed(kernel, formats, [each])[0]


def _one(bits: Bits) -> int | None:
    """The bits of elements that are all alike; None of others."""
    return int(bits[0]) if (bits == bits[0]).all() else None
