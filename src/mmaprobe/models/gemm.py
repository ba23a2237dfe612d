"""Whole matrix products by a schedule: D = A B + C to the bit, or any part of D alone.

The rule is ``docs/gemm.md``; ``gemm_program`` writes it as operations, which the native module runs on blocks of D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native, formats
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.models import engine
from mmaprobe.models.gemm_integers import integer_product
from mmaprobe.models.gemm_operands import (
    GemmCall,
    Index,
    check_memory,
    input_bits,
    items_of,
    laid_out,
    matrices,
    place_for_d,
)
from mmaprobe.models.gemm_program import COLUMNS, NUMBERS, GemmProgram, gemm_program, rounded_product, values_of
from mmaprobe.models.model import evaluator
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.edge import from_bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.epilogue import C as C_NAME
from mmaprobe.parameters.epilogue import Scaling
from mmaprobe.parameters.schedule import GemmKernel, Schedule, schedule_named
from mmaprobe.parameters.table import flatten, write_record
from mmaprobe.showing import Row, Showing, counted

BLOCK = (128, 192)
"""Rows and columns of D that a core computes at a time."""

Sizes = NDArray[np.uint64]
"""Codes without their signs."""
PLACES = 40
"""Bytes that are needed to say of each row, and of each column, who computes it."""
PANEL = 1 << 18
"""Items of an operand that are scaled before the product at a time."""


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


@dataclass(frozen=True, repr=False)
class Gemm(Showing):
    """D = A B + C in the order of a schedule; call it with matrices."""

    schedule: Schedule
    architecture: str | None = None

    def __post_init__(self) -> None:
        for kernel in self.schedule.kernels:
            try:
                if kernel.step.by == "primitive":
                    self._datapath(kernel)
            except UsageError as error:
                raise UsageError(f"kernel {kernel.name}: {error}") from None

    def in_a_line(self) -> str:
        """The formats, the library whose order it is, and how many orders its elements have."""
        made, scope = self.schedule, self.schedule.scope
        added = f" + {made.c}" if made.c else ""
        whose = " ".join(filter(None, (scope.library, scope.version)))
        kernels = counted(len(made.kernels), "kernel") if made.integers is None else "sums of integers"
        return f"matrix product {made.a} x {made.b}{added} -> {made.d} as {whose} adds it: {kernels}"

    def as_rows(self) -> list[Row]:
        """A row for each kernel: what adds its products, in how many accumulators, and where it is used; of integers
        one of what is said of their sums."""
        if self.schedule.integers is not None:
            return [dict(flatten(write_record(self.schedule.integers)))]
        return [
            {
                "kernel": kernel.name, "step": kernel.step.primitive or kernel.step.by,
                "accumulators": kernel.accumulators.count, "format": kernel.accumulators.format,
                "regions": sum(region.kernel == kernel.name for region in self.schedule.regions),
            }
            for kernel in self.schedule.kernels
        ]  # fmt: skip

    def __call__(
        self,
        A: Any,
        B: Any,
        C: Any = None,
        *,
        rows: slice = slice(None),
        columns: slice = slice(None),
        layout: str = "NN",
        out: Any = None,
        **inputs: Any,
    ) -> Any:
        """D, or these rows and columns of it alone; what is not asked for is not computed.

        A (M, K), B (K, N) and C and D (M, N) are bit patterns or arrays of exactly the schedule's formats, with any
        strides, and the result is of the caller's kind; a batch of products has an axis in front.  ``layout``: where
        A, or B, is stored with rows and columns exchanged, it is T.  ``out`` is an array that D is written to.
        ``inputs`` are those that the schedule names.  Where it hands back largest sizes, the result is D and a dict
        of them.  Without C nothing takes its place; with K = 0 nothing takes that of the sum of products, and D is
        C where nothing else is said, +0 where nothing is left.  UsageError naming the operand or dimension that does
        not fit, or that is outside of the schedule's scope, or more memory than is left.
        """
        made = self.schedule
        (a, b, c), typed, flat = matrices(made, A, B, C, layout)
        call = GemmCall(a, b, c, layout, self._inputs(inputs, a.shape[1], b.shape[2], a.shape[2]))
        d, largest = self._product(call, rows, columns, None if out is None else place_for_d(out, made.d, flat, call))
        found = from_bits(d[0] if flat else d, formats.get(made.d), typed, A)
        if not made.amax:
            return found
        sizes = dict[str, Any]()
        for name, size in zip(made.amax, largest, strict=True):
            fmt = formats.get(self._format(name))
            sizes[name] = from_bits(np.array(size, fmt.dtype), fmt, typed, A)
        return found, sizes

    def run(
        self, a: Bits, b: Bits, c: Bits | None = None, rows: slice = slice(None), columns: slice = slice(None)
    ) -> Bits:
        """D (n, M, N) of n products a (n, M, K), b (n, K, N), c (n, M, N) of bit patterns, or a part of each."""
        return self._product(GemmCall(a, b, c, "NN", self._inputs({}, 0, 0, 0)), rows, columns, None)[0]

    def _inputs(self, given: dict[str, Any], m: int, n: int, k: int) -> dict[str, Bits]:
        """The bit patterns of every input that the schedule names."""
        found, known = {}, {each.name: each for each in self.schedule.inputs}
        for name in given:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise UsageError(f"gemm: no input {brief(name)}{near(name, known)}; the schedule takes {takes}")
        for name, each in known.items():
            if name not in given:
                raise UsageError(f"gemm: input {name} is missing: {each.format}, of shape {each.lengths(m, n, k)}")
            found[name] = input_bits(each, given[name], each.lengths(m, n, k))
        return found

    def _format(self, name: str) -> str:
        """The format of a value that largest sizes are taken of."""
        nodes = {node.name: node.format for node in self.schedule.epilogue}
        return nodes.get(name, self.schedule.kernels[0].join.format)

    def _product(self, call: GemmCall, rows: slice, columns: slice, out: Bits | None) -> tuple[Bits, Sizes]:
        """D, and the largest sizes."""
        (count, m, k), n = call.a.shape, call.b.shape[2]
        if call.b.shape[:2] != (count, k) or (call.c is not None and call.c.shape != (count, m, n)):
            shapes = f"A {call.a.shape[1:]}, B {call.b.shape[1:]}"
            shapes += "" if call.c is None else f", C {call.c.shape[1:]}"
            batch = "" if count == 1 else f", and as many of each as A has, {count}"
            raise UsageError(f"gemm: shapes do not fit: {shapes}; they must be (M, K), (K, N), (M, N){batch}")
        self.schedule.scope.check(m, n, k, count, call.layout)
        asked = _chosen("rows", rows, m), _chosen("columns", columns, n)
        shape, dtype = (count, len(asked[0]), len(asked[1])), formats.get(self.schedule.d).dtype
        check_memory(shape, 0 if out is not None else dtype.itemsize, PLACES * (m + n))
        if out is not None and out.shape != shape:
            raise UsageError(f"gemm: out is of shape {out.shape[-2:]}; D is {shape[1:]}")
        wanted = np.array(asked[0], np.intp), np.array(asked[1], np.intp)
        d = np.empty(shape, dtype) if out is None else out
        largest = np.zeros(len(self.schedule.amax), np.uint64)
        there = [*call.inputs, *([C_NAME] if call.c is not None else [])]
        if self.schedule.integers is not None:
            self._integers(call, d, wanted)
        for kernel, *area in self.schedule.areas(m, n, k):
            at = [np.flatnonzero(np.isin(asked, part)) for asked, part in zip(wanted, area, strict=True)]
            path = self._datapath(kernel) if kernel.step.by == "primitive" else None
            made = gemm_program(self.schedule, kernel, path, k, there)
            for i in range(count):
                for down, across in self._panels(at, k):
                    self._run(made, call.of(i), d[i], wanted, (down, across), largest)
        return d, largest

    def _integers(self, call: GemmCall, d: Bits, wanted: tuple[Index, Index]) -> None:
        """D of sums of integers, some rows at a time."""
        most = max(1, PANEL // max(call.a.shape[2], 1))
        for i in range(len(d)):
            for start in range(0, len(wanted[0]), most):
                some = wanted[0][start : start + most]
                d[i, start : start + most] = integer_product(self.schedule, call.of(i), some, wanted[1])

    def _panels(self, at: list[Index], k: int) -> Iterator[tuple[Index, Index]]:
        """The rows and columns of D that are computed at once: all, but where operands are scaled before."""
        scaled = {scaling.operand for scaling in self.schedule.scalings}
        most = max(1, PANEL // max(k, 1))
        sides = [
            [side[start : start + most] for start in range(0, len(side), most)] if name in scaled else [side]
            for name, side in zip("ab", at, strict=True)
        ]
        return ((down, across) for down in sides[0] for across in sides[1])

    def _run(
        self,
        made: GemmProgram,
        call: GemmCall,
        d: Bits,
        wanted: tuple[Index, Index],
        at: tuple[Index, Index],
        largest: Sizes,
    ) -> None:
        """The elements of D at these places of those that are wanted."""
        rows, columns = wanted[0][at[0]], wanted[1][at[1]]
        a, b = (call.a, rows, rows), (call.b, columns, columns)
        for scaling in self.schedule.scalings:
            if scaling.operand == "a":
                a = (self._scaled(scaling, call, rows), np.arange(len(rows)), rows)
            elif scaling.operand == "b":
                b = (self._scaled(scaling, call, columns), columns, np.arange(len(columns)))
        inputs = [laid_out(each, call.inputs[each.name], rows, columns) for each in self.schedule.inputs] + (
            [] if call.c is None else [(call.c, rows, columns)]
        )
        chained = made.chained
        values = [None if chained is None else values_of(fmt, chained) for fmt in (self.schedule.a, self.schedule.b)]
        operations = np.array(made.rows, np.int64).reshape(-1, len(COLUMNS))
        order, width = np.array(made.order, np.int64), NUMBERS.get(chained or "", 0)
        try:
            _native.gemm(
                operations, made.programs, order, a, b, values, width, inputs, (d, *at), largest, *BLOCK, engine.build()
            )
        except ValueError as error:
            raise UsageError(f"engine: {error}") from None

    def _scaled(self, scaling: Scaling, call: GemmCall, places: Index) -> Bits:
        """These rows of A, or columns of B, times their scales, each rounded to the operand's format."""
        given = next(each for each in self.schedule.inputs if each.name == scaling.by)
        of_a, k = scaling.operand == "a", call.a.shape[1]
        to = self.schedule.a if of_a else self.schedule.b
        codes = call.a[places] if of_a else call.b[:, places]
        every = (places, np.arange(k)) if of_a else (np.arange(k), places)
        scales = items_of(given, call.inputs[given.name], *every)
        path = rounded_product(scaling.stored or to, given.format, to)
        pairs = Batch(a=codes.reshape(-1, 1), b=np.broadcast_to(scales, codes.shape).reshape(-1, 1))
        return evaluator(path)(path, pairs).reshape(codes.shape)

    def _datapath(self, kernel: GemmKernel) -> Datapath:
        """What a primitive's step of the kernel is; UsageError where its formats are others, or workers cut one."""
        to = kernel.accumulators.format
        found = kernel.step.datapath(self.architecture)
        own = f"A {self.schedule.a}, B {self.schedule.b}, accumulator {to}"
        takes = f"A {found.a}, B {found.b}, accumulator {found.d}"
        if own != takes:
            raise UsageError(f"{kernel.step.primitive} takes {takes}, the schedule has {own}")
        if kernel.ranges.tile and kernel.ranges.tile[2] % found.k:
            raise UsageError(f"a unit of work is {kernel.ranges.tile[2]} k; it must be whole steps of {found.k}")
        return found


def _chosen(name: str, value: object, length: int) -> range:
    """The rows or columns that a slice of so many asks for."""
    if not isinstance(value, slice):
        raise UsageError(f"gemm: {name} is {brief(value)}; it must be a slice, such as slice(0, 128)")
    return range(length)[value]
