"""Whole matrix products by a schedule: D = A B + C to the bit, or any part of D alone.

The rule is ``docs/gemm.md``; ``gemm_program`` writes it as operations, which the native module runs on blocks of D.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native, formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.models import engine
from mmaprobe.models.gemm_program import COLUMNS, NUMBERS, GemmProgram, gemm_program, values_of
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.edge import from_bits, to_bits
from mmaprobe.operands.resident import Resident
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.schedule import GemmKernel, Schedule, schedule_named

BLOCK = (128, 192)
"""Rows and columns of D that a core computes at a time."""

Index = NDArray[np.intp]


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
                if kernel.step.by == "primitive":
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
        operands = [a[:, rows], b[:, :, columns], None if c is None else c[:, rows, columns]]
        own = [None if x is None else np.asarray(x, x.dtype.newbyteorder("=")) for x in operands]
        for kernel, *area in self.schedule.areas(m, n):
            at = [np.flatnonzero(np.isin(asked, part)) for asked, part in zip(wanted, area, strict=True)]
            path = self._datapath(kernel) if kernel.step.by == "primitive" else None
            made = gemm_program(self.schedule, kernel, path, k, c is not None)
            for i in range(count):
                self._run(made, [None if x is None else x[i] for x in own], d[i], at)
        return d

    def _run(self, made: GemmProgram, operands: list[Bits | None], d: Bits, at: list[Index]) -> None:
        """The elements of D in these rows and columns."""
        chained = made.chained
        values = [None if chained is None else values_of(fmt, chained) for fmt in (self.schedule.a, self.schedule.b)]
        rows = np.array(made.rows, np.int64).reshape(-1, len(COLUMNS))
        order = np.array(made.order, np.int64)
        width, build = NUMBERS.get(chained or "", 0), engine.build()
        try:
            _native.gemm(rows, made.programs, order, operands, values, width, d, at[0], at[1], *BLOCK, build)
        except ValueError as error:
            raise UsageError(f"engine: {error}") from None

    def _datapath(self, kernel: GemmKernel) -> Datapath:
        """What a primitive's step of the kernel is; UsageError where its formats are others."""
        to = kernel.accumulators.format
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
