"""Whole matrix products by a schedule: D = A B + C to the bit, or any part of D alone.

The rule is ``docs/gemm.md``.  Every product, sum and rounding is a datapath that the models evaluate, over all elements
of an area at once; this module knows the order alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.models import engine
from mmaprobe.models.model import evaluate_tiles, evaluator
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.edge import from_bits, to_bits
from mmaprobe.operands.resident import Resident
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Node,
    Product,
    Products,
    Special,
)
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, Schedule, schedule_named

SIDE = 256
"""Rows and columns of D that are computed at a time: the copies of A, B and partial sums stay this small."""
LINKS = 64
"""Products that one datapath chains: as many as every kernel of the engine takes."""

Index = NDArray[np.intp]
Steps = Sequence[Index]
"""The k of each step of a primitive, in the order of its lanes; beyond the last are products of zeros."""


def gemm(schedule: Schedule | str | Path, architecture: str | Path | None = None) -> Gemm:
    """The matrix product of a schedule: ``gemm(schedule)(A, B, C)``, every element to the bit.

    ``schedule`` is a record, the name of one that ships, or the path of a file, which ends in ``.toml``;
    ``architecture`` (a name, or the path of a parameter file) takes the place of those whose parameters it names.

    >>> import numpy as np, mmaprobe
    >>> product = mmaprobe.gemm("openblas_haswell_f32")
    >>> A, B = np.full((2, 600), 0.1, np.float32), np.ones((600, 2), np.float32)
    >>> product(A, B, rows=slice(1, 2))
    array([[60.000156, 60.000156]], dtype=float32)

    UsageError for a name that is none, a broken file, or a primitive without datapath.
    """
    found = schedule if isinstance(schedule, Schedule) else schedule_named(schedule)
    return Gemm(found, None if architecture is None else str(architecture))


@dataclass(frozen=True)
class Gemm:
    """D = A B + C in the order of a schedule; call it with matrices."""

    schedule: Schedule
    architecture: str | None = None

    def __post_init__(self) -> None:
        for kernel in self.schedule.kernels:
            try:
                self._datapath(kernel)
            except UsageError as error:
                raise UsageError(f"kernel {kernel.name}: {error}") from None

    def __call__(
        self, A: Any, B: Any, C: Any = None, *, rows: slice = slice(None), columns: slice = slice(None)
    ) -> Any:
        """D, or these rows and columns of it alone; what is not asked for is not computed.

        A (M, K), B (K, N) and C and D (M, N) are bit patterns or arrays of exactly the schedule's formats, and the
        result is of the caller's kind.  Without C nothing takes its place; with K = 0 D is C, or +0.  UsageError
        naming the operand or dimension that does not fit, or that is outside of the schedule's scope.
        """
        made = self.schedule
        typed, bits = False, list[Bits | None]()
        for name, value, fmt in (("A", A, made.a), ("B", B, made.b), ("C", C, made.c)):
            if value is None and name == "C":
                bits.append(None)
                continue
            if fmt is None:
                raise UsageError("gemm: the schedule takes no C")
            operand, own = to_bits("gemm", name, value, formats.get(fmt))
            assert not isinstance(operand, Resident)
            if operand.ndim != 2:
                raise UsageError(f"gemm: operand {name} is of shape {operand.shape}; it must be a matrix")
            typed |= own
            bits.append(operand[None])
        a, b, c = bits
        assert a is not None
        assert b is not None
        d = self.run(a, b, c, rows, columns)
        return from_bits(d[0], formats.get(made.d), typed, A)

    def run(
        self, a: Bits, b: Bits, c: Bits | None = None, rows: slice = slice(None), columns: slice = slice(None)
    ) -> Bits:
        """D (n, M, N) of n products a (n, M, K), b (n, K, N), c (n, M, N) of bit patterns, or a part of each."""
        (count, m, k), n = a.shape, b.shape[2]
        if b.shape[:2] != (count, k) or (c is not None and c.shape != (count, m, n)):
            shapes = f"A {a.shape[1:]}, B {b.shape[1:]}" + ("" if c is None else f", C {c.shape[1:]}")
            raise UsageError(f"gemm: shapes do not fit: {shapes}; they must be (M, K), (K, N), (M, N)")
        self.schedule.scope.check(m, n, k)
        wanted = _chosen("rows", rows, m), _chosen("columns", columns, n)
        d = np.empty((count, len(wanted[0]), len(wanted[1])), formats.get(self.schedule.d).dtype)
        for kernel, *area in self.schedule.areas(m, n):
            at = [np.flatnonzero(np.isin(asked, part)) for asked, part in zip(wanted, area, strict=True)]
            for i, j in ((i, j) for i in _pieces(at[0], SIDE) for j in _pieces(at[1], SIDE)):
                row, column = wanted[0][i], wanted[1][j]
                given = None if c is None else c[:, row[:, None], column]
                d[:, i[:, None], j] = self._area(kernel, a[:, row], b[:, :, column], given)
        return d

    def _area(self, kernel: GemmKernel, a: Bits, b: Bits, c: Bits | None) -> Bits:
        """D of an area that one kernel computes."""
        to, made = kernel.join.format, self.schedule
        shape = (a.shape[0], a.shape[1], b.shape[2])
        addend = None if c is None or made.c is None else _rounded(c, made.c, to)
        if not a.shape[2]:
            return _zeros(shape, made.d) if addend is None else _rounded(addend, to, made.d)
        partials = (self._range(kernel, a, b, lanes) for lanes in kernel.ranges.of(a.shape[2]))
        first = kernel.join.start
        total = _zeros(shape, to) if first == "zero" else addend if first == "c" else None
        for each in [_neighbours(list(partials), to)] if kernel.join.order == "pairwise" else partials:
            total = each if total is None else _sum(total, each, to)
        assert total is not None
        if addend is not None and first != "c":
            total = _sum(total, addend, to)
        return _rounded(total, to, made.d)

    def _range(self, kernel: GemmKernel, a: Bits, b: Bits, lanes: range) -> Bits:
        """The partial sum of a range of K, in the format of partial sums."""
        held = kernel.accumulators.format if kernel.promotion is None else kernel.promotion.format
        size = self._datapath(kernel).k if kernel.step.by == "primitive" else 1
        order = list(kernel.step.order) or list(range(size))
        steps = [np.array(lanes[start : start + size]) for start in range(0, len(lanes), size)]
        sums = []
        for own in kernel.accumulators.steps(len(steps)):
            sums.append(self._promoted(kernel, a, b, [steps[i] for i in own], order))
        return _rounded(_joined(sums, kernel.accumulators, held), held, kernel.join.format)

    def _promoted(self, kernel: GemmKernel, a: Bits, b: Bits, steps: Steps, order: list[int]) -> Bits:
        """What an accumulator holds after its steps; of a promoted one the second."""
        promotion, to = kernel.promotion, kernel.accumulators.format
        if promotion is None:
            return self._accumulated(kernel, a, b, steps, order)
        total = _zeros((a.shape[0], a.shape[1], b.shape[2]), promotion.format)
        for start in range(0, len(steps), promotion.every):
            part = self._accumulated(kernel, a, b, steps[start : start + promotion.every], order)
            total = _sum(total, _rounded(part, to, promotion.format), promotion.format)
        return total

    def _accumulated(self, kernel: GemmKernel, a: Bits, b: Bits, steps: Steps, order: list[int]) -> Bits:
        """An accumulator after these steps from its start."""
        made, to = self.schedule, kernel.accumulators.format
        total = _zeros((a.shape[0], a.shape[1], b.shape[2]), to)
        if kernel.step.by == "primitive":
            for step in steps:
                whole = kernel.tail == "zeros" or len(step) == len(order)
                total = (
                    self._step(kernel, a, b, step, order, total) if whole else _chain(kernel, made, a, b, step, total)
                )
            return total
        lanes = np.concatenate([np.array([], np.intp), *steps])
        if kernel.accumulators.start == "product" and len(lanes):
            total = _tiles(_product(made.a, made.b, to), a[:, :, lanes[:1]], b[:, lanes[:1]], None)
            lanes = lanes[1:]
        return _chain(kernel, made, a, b, lanes, total)

    def _step(self, kernel: GemmKernel, a: Bits, b: Bits, step: Index, order: list[int], total: Bits) -> Bits:
        """An accumulator after one step of a primitive; lanes that the step has not are zeros."""
        x = np.zeros((*a.shape[:2], len(order)), a.dtype)
        y = np.zeros((b.shape[0], len(order), b.shape[2]), b.dtype)
        x[:, :, : len(step)], y[:, : len(step)] = a[:, :, step], b[:, step]
        return _tiles(self._datapath(kernel), x[:, :, order], y[:, order], total)

    def _datapath(self, kernel: GemmKernel) -> Datapath:
        """What a step of the kernel is; UsageError where its formats are others."""
        to = kernel.accumulators.format
        if kernel.step.by == "fma":
            return _links(self.schedule.a, self.schedule.b, to, 1)
        if kernel.step.by == "multiply_add":
            return _rounded_links(self.schedule.a, self.schedule.b, to, 1)
        found = kernel.step.datapath(self.architecture)
        own = f"A {self.schedule.a}, B {self.schedule.b}, accumulator {to}"
        takes = f"A {found.a}, B {found.b}, accumulator {found.d}"
        if own != takes:
            raise UsageError(f"{kernel.step.primitive} takes {takes}, the schedule has {own}")
        return found


def _chosen(name: str, value: object, length: int) -> Index:
    """The rows or columns that a slice of so many asks for."""
    if not isinstance(value, slice):
        raise UsageError(f"gemm: {name} is {brief(value)}; it must be a slice, such as slice(0, 128)")
    chosen: Index = np.arange(length)[value]
    return chosen


def _pieces(places: Index, most: int) -> Iterator[Index]:
    return (places[start : start + most] for start in range(0, len(places), most))


def _joined(sums: list[Bits], accumulators: Accumulators, to: str) -> Bits:
    """The accumulators of a range as one."""
    if accumulators.join == "pairwise":
        return _neighbours(sums, to)
    while accumulators.join == "halves" and len(sums) > 1:
        half = len(sums) // 2
        sums = [_sum(x, y, to) for x, y in zip(sums[:half], sums[half:], strict=True)]
    total = sums[0]
    for each in sums[1:]:
        total = _sum(total, each, to)
    return total


def _neighbours(sums: list[Bits], to: str) -> Bits:
    """Neighbours added until one is left; one without a neighbour stays as it is."""
    while len(sums) > 1:
        pairs = [_sum(x, y, to) for x, y in zip(sums[::2], sums[1::2], strict=False)]
        sums = pairs + sums[len(sums) & ~1 :]
    return sums[0]


def _chain(kernel: GemmKernel, schedule: Schedule, a: Bits, b: Bits, lanes: Index, total: Bits) -> Bits:
    """An accumulator after the products of these lanes, one after the other."""
    links = _rounded_links if kernel.step.by == "multiply_add" else _links
    for some in _pieces(lanes, LINKS):
        path = links(schedule.a, schedule.b, kernel.accumulators.format, len(some))
        total = _tiles(path, a[:, :, some], b[:, some], total)
    return total


def _tiles(path: Datapath, a: Bits, b: Bits, c: Bits | None) -> Bits:
    """D of tiles by a datapath."""
    tiles = Batch(a=a, b=b, c=c)
    whole = engine.evaluate_tiles(path, tiles)
    return evaluate_tiles(lambda vectors: evaluator(path)(path, vectors), tiles) if whole is None else whole


def _zeros(shape: tuple[int, ...], fmt: str) -> Bits:
    return np.zeros(shape, formats.get(fmt).dtype)


def _sum(x: Bits, y: Bits, fmt: str) -> Bits:
    """x + y of one format, rounded to it."""
    one = np.full((x.size, 1), formats.get(fmt).one, x.dtype)
    path = _links(fmt, fmt, fmt, 1)
    return evaluator(path)(path, Batch(a=x.reshape(-1, 1), b=one, c=y.reshape(-1))).reshape(x.shape)


def _rounded(x: Bits, fmt: str, to: str) -> Bits:
    """x in another format, rounded to nearest even."""
    if fmt == to:
        return x
    one = np.full((x.size, 1), formats.get(fmt).one, x.dtype)
    path = _product(fmt, fmt, to)
    return evaluator(path)(path, Batch(a=x.reshape(-1, 1), b=one)).reshape(x.shape)


def _nan(fmt: str) -> Special:
    """Every NaN is the quiet one of the format; a format without has no use for it."""
    code = formats.get(fmt).nan_code
    return Special() if code is None else Special(code=code)


@lru_cache(maxsize=256)
def _links(a: str, b: str, to: str, count: int) -> Datapath:
    """So many fused multiply-adds in order."""
    return Datapath(a, b, to, to, count, Fma(Accumulator(), tuple(range(count)), Encode(to)), special=_nan(to))


@lru_cache(maxsize=256)
def _rounded_links(a: str, b: str, to: str, count: int) -> Datapath:
    """So many rounded products in order, each added with a rounding."""
    tree: Node = Add(Accumulator(), Products((0,)), Encode(to))
    return Datapath(a, b, to, to, count, tree, step=1, product=Product(to=Encode(to)), special=_nan(to))


@lru_cache(maxsize=256)
def _product(a: str, b: str, to: str) -> Datapath:
    """One product, rounded."""
    return Datapath(a, b, None, to, 1, Exact((Products((0,)),), Encode(to)), special=_nan(to))
