"""What sizes of partial sums do not show: formats of sums, how a product is rounded, and what sums start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats as number_formats
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import GemmKernel, GemmStep, Region, Schedule, Scope
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.elements import (
    EqualRows,
    ask_equal_rows,
    draw_rows,
    largest_rows,
    least_rows,
    zero_rows,
)
from mmaprobe.probing.gemm.sizes import WIDE, least_exponent, narrow

STEPS: tuple[Literal["fma", "multiply_add"], ...] = ("fma", "multiply_add")
STARTS = ("zero", "product")
FIRSTS = ("zero", "first")
FEW = 6
"""Lanes, the last ones of a range, that values about the smallest number are on at least."""
FILLED = (1, 2, 4, 8, 16)
"""Numbers that ranges may be filled up to a multiple of."""
TRIED = 80
"""Rows that are tried at most before a call is made to tell kernels apart."""
KINDS = 5
"""Kinds of these rows, the last of which are zeros."""


@dataclass(frozen=True)
class Formats:
    """Formats of A, B and D."""

    a: str
    b: str
    d: str

    @property
    def sums(self) -> tuple[str, ...]:
        """Formats that partial sums may have, the likeliest first: that of D; of a narrow D a wider one before it."""
        return (WIDE, self.d) if narrow(number_formats.get(self.d)) else (self.d,)

    def exact(self, wide: str) -> bool:
        """Whether every product of a number of A and one of B is a number of a format, so that none is rounded."""
        a, b, to = (number_formats.get(name) for name in (self.a, self.b, wide))
        return (
            a.fraction_bits + b.fraction_bits + 1 <= to.fraction_bits
            and least_exponent(a) + least_exponent(b) >= least_exponent(to)
            and a.max_exponent + b.max_exponent + 2 <= to.max_exponent
        )

    def alone(self, kernel: GemmKernel) -> Schedule:
        """The schedule by which this kernel computes every element."""
        return Schedule(self.a, self.b, self.d, Scope("none"), (kernel,), (Region(kernel.name, rest=True),))


def variants(kernel: GemmKernel, formats: Formats) -> Iterator[GemmKernel]:
    """The same order with sums of every format, every step and start, the plainest first."""
    steps = [GemmStep(by) for by in STEPS]
    if kernel.accumulators.block > 1:
        steps += [GemmStep(by, beyond=other) for by, other in (STEPS, STEPS[::-1])]
    for joined, own, step, start, first in product(formats.sums, formats.sums, steps, STARTS, FIRSTS):
        yield replace(
            kernel,
            step=step,
            accumulators=replace(kernel.accumulators, format=own, start=start),  # type: ignore[arg-type]
            join=replace(kernel.join, format=joined, start=first),  # type: ignore[arg-type]
            promotion=kernel.promotion and replace(kernel.promotion, format=own),
        )


def computed(kernel: GemmKernel, formats: Formats, asked: Sequence[EqualRows]) -> list[int]:
    """The element that each call's x and y give by a kernel; calls of one K are computed together."""
    model, found = Gemm(formats.alone(kernel)), [0] * len(asked)
    by_k = dict[int, list[int]]()
    for number, each in enumerate(asked):
        by_k.setdefault(len(each.x), []).append(number)
    for numbers in by_k.values():
        x, y = np.stack([asked[i].x for i in numbers]), np.stack([asked[i].y for i in numbers])
        for i, d in zip(numbers, model.run(x[:, None], y[:, :, None])[:, 0, 0].tolist(), strict=True):
            found[i] = d
    return found


def agreeing(
    kernel: GemmKernel, formats: Formats, asked: Sequence[EqualRows], mask: NDArray[np.bool_]
) -> list[GemmKernel]:
    """The variants of a kernel that give the bits of every call in these elements."""
    wanted = [_one(each.d[mask]) for each in asked]
    return [variant for variant in variants(kernel, formats) if computed(variant, formats, asked) == wanted]


def telling(
    living: Sequence[GemmKernel], formats: Formats, calls: ProductCalls, k: int, rng: np.random.Generator
) -> tuple[Bits, Bits] | None:
    """x and y that kernels answer differently, of less lanes than K, too, so that blocks are not whole; None: none."""
    for number in range(TRIED):
        kind = number % KINDS
        lanes = max(2, k - int(rng.integers(living[0].accumulators.block)))
        if kind == KINDS - 1:
            lanes = _some_lanes(living[0], k, rng)
        ranges = [each for each in living[0].ranges.of(lanes) if len(each) > 2] or [range(lanes)]
        some = ranges[(0, -1, int(rng.integers(len(ranges))))[number // KINDS % 3]]
        some = some[-int(FEW + rng.random() ** 4 * len(some)) :]
        x, y = _aimed(kind, calls, lanes, some, rng)
        asked = EqualRows(x, y, np.zeros((0, 0), calls.d.dtype))
        if len({computed(each, formats, [asked])[0] for each in living}) > 1:
            return x, y
    return None


def _some_lanes(kernel: GemmKernel, k: int, rng: np.random.Generator) -> int:
    """Any K up to the one named, or whole ranges, so that no accumulator is without a step."""
    length = kernel.ranges.length or k
    if length < k and rng.integers(2):
        return length * int(rng.integers(1, k // length + 1))
    return int(rng.integers(2, max(k, 2) + 1))


def _aimed(kind: int, calls: ProductCalls, k: int, some: range, rng: np.random.Generator) -> tuple[Bits, Bits]:
    """x and y of random values on all lanes, or on some alone, where no others hide them; of values on these about the
    smallest or the largest number; or of zeros on all."""
    if kind == 0:
        return draw_rows(calls, k, rng, 0)
    if kind == 1:
        x, y = np.zeros(k, calls.a.dtype), np.zeros(k, calls.b.dtype)
        x[some], y[some] = draw_rows(calls, len(some), rng, 0)
        return x, y
    if kind == KINDS - 1:
        rows = zero_rows(calls, k)
        return rows[int(rng.integers(len(rows)))]
    return (least_rows, largest_rows)[kind - 2](calls, k, some, rng)


def filled_up(
    kernel: GemmKernel, formats: Formats, calls: ProductCalls, k: int, mask: NDArray[np.bool_]
) -> tuple[list[GemmKernel], list[EqualRows]]:
    """The kernel with every number that ranges may be filled up to a multiple of, and the calls that tell: negative
    products that vanish, at K with remainders."""
    try:
        living = [replace(kernel, step=replace(kernel.step, filled=number)) for number in FILLED]
    except UsageError:
        return [kernel], []  # of such ranges the record has no other number
    asked, most, (m, n) = list[EqualRows](), max(FILLED), mask.shape
    for less in FILLED[:-1]:
        lanes = max(k - k % most, most) - less
        x, y = zero_rows(calls, lanes)[:2][-1]
        row = EqualRows(x, y, np.zeros((0, 0), calls.d.dtype))
        told = [computed(each, formats, [row])[0] for each in living]
        if len(set(told)) < 2:
            continue
        try:
            asked.append(ask_equal_rows(calls, m, n, x, y))
        except UsageError:
            break  # the product has no such K
        seen = _one(asked[-1].d[mask])
        living = [each for each, value in zip(living, told, strict=True) if value == seen]
    return living, asked


def _one(bits: Bits) -> int | None:
    """The bits of elements that are all alike; None of others."""
    return int(bits[0]) if (bits == bits[0]).all() else None
