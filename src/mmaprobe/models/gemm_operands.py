"""What a call of a matrix product is handed: matrices and inputs as bit patterns, a place for D, and memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError, brief
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.edge import held_as, to_bits
from mmaprobe.operands.resident import Resident
from mmaprobe.parameters.epilogue import Input
from mmaprobe.parameters.schedule import LAYOUTS, Schedule

WORK = 64 << 20
"""Bytes that a product takes at most beside its operands and D."""

Index = NDArray[np.intp]


@dataclass(frozen=True)
class GemmCall:
    """The bit patterns of a call: a (n, M, K), b (n, K, N), c (n, M, N) and inputs, which all products share."""

    a: Bits
    b: Bits
    c: Bits | None
    layout: str
    inputs: dict[str, Bits]

    def of(self, i: int) -> GemmCall:
        """Product number i alone, of matrices in this machine's order of bytes."""
        own = [None if x is None else np.asarray(x[i], x.dtype.newbyteorder("=")) for x in (self.a, self.b, self.c)]
        a, b, c = own
        assert a is not None
        assert b is not None
        return replace(self, a=a, b=b, c=c)


def matrices(made: Schedule, A: Any, B: Any, C: Any, layout: str) -> tuple[tuple[Bits, Bits, Bits | None], bool, bool]:
    """a (n, M, K), b (n, K, N) and c (n, M, N) of what a caller holds.

    Then whether it came in types of the formats' own, and whether a matrix came without an axis for the batch.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"gemm: layout is {brief(layout)}; it must be one of {', '.join(LAYOUTS)}")
    stored = {scaling.operand: scaling.stored for scaling in made.scalings}
    typed, flat, found = False, False, list[Bits]()
    wanted = [("A", A, stored.get("a") or made.a), ("B", B, stored.get("b") or made.b)]
    if C is not None and made.c is None:
        raise UsageError("gemm: the schedule takes no C")
    for name, value, fmt in [*wanted, *([("C", C, made.c)] if C is not None and made.c else [])]:
        operand, own = to_bits("gemm", name, value, formats.get(fmt))
        assert not isinstance(operand, Resident)
        if operand.ndim not in (2, 3):
            raise UsageError(f"gemm: operand {name} is of shape {operand.shape}; it must be a matrix, or a batch")
        typed |= own
        flat |= operand.ndim == 2
        found.append(operand[None] if operand.ndim == 2 else operand)
    a, b = (x.swapaxes(1, 2) if way == "T" else x for x, way in zip(found[:2], layout, strict=True))
    return (a, b, found[2] if len(found) > 2 else None), typed, flat


def input_bits(each: Input, value: Any, shape: tuple[int, ...]) -> Bits:
    """The bit patterns of an input; a scalar may be a number of Python's that its format has."""
    fmt = formats.get(each.format)
    if each.shape == "scalar" and isinstance(value, int | float) and not isinstance(value, bool):
        kind = held_as(fmt) or (None if fmt.is_float else fmt.dtype)
        number = None if kind is None else np.array(value).astype(kind)
        if number is None or float(number) != value:
            raise UsageError(f"gemm: input {each.name} is {value}, which is no {each.format}; hand over one")
        value = number
    found, _ = to_bits("gemm", each.name, value, fmt)
    assert not isinstance(found, Resident)
    if each.shape == "scalar" and found.size == 1:
        found = found.reshape(())
    if found.shape != shape:
        raise UsageError(f"gemm: input {each.name} is of shape {found.shape}; it must be {shape}")
    return np.asarray(found, found.dtype.newbyteorder("="))


def items_of(each: Input, value: Bits, rows: Index, columns: Index) -> Bits:
    """What an input has for these rows and columns, as an array that is broadcast to them."""
    if each.shape == "scalar":
        return value.reshape(1, 1)
    if each.shape == "row":
        return value[rows // each.rows][:, None]
    if each.shape == "column":
        return value[columns // each.columns][None]
    found: Bits = value[rows[:, None] // each.rows, columns[None] // each.columns]
    return found


def laid_out(each: Input, value: Bits, rows: Index, columns: Index) -> tuple[Bits, Index, Index]:
    """An input as a matrix without a copy, and which rows and columns of it the elements of D have.

    Of one like A or B they begin with the first group of K; where K is 0 it has none, and a zero that nobody reads
    stands for it.
    """
    if not value.size:
        return np.zeros((1, 1), value.dtype), np.zeros_like(rows), np.zeros_like(columns)
    if each.shape == "row":
        value = value[:, None]
    down = rows // each.rows if each.shape in ("row", "matrix", "a") else np.zeros_like(rows)
    across = columns // each.columns if each.shape in ("column", "matrix", "b") else np.zeros_like(columns)
    return np.atleast_2d(value), down, across


def place_for_d(out: Any, fmt: str, flat: bool, call: GemmCall) -> Bits:
    """The caller's array for D, with an axis for the batch; UsageError where it is none that D can be written to."""
    made = formats.get(fmt)
    if not isinstance(out, np.ndarray) or out.dtype not in (made.dtype, held_as(made)) or not out.flags.writeable:
        came = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else brief(out)
        raise UsageError(f"gemm: out is {came}; it must be an array of {fmt} or its bits that can be written to")
    place: Bits = out.view(made.dtype)
    if place.ndim != 3 - flat:
        raise UsageError(f"gemm: out is of shape {place.shape}; it must be {'a matrix' if flat else 'a batch'}")
    if _overlaps_itself(place):
        raise UsageError(f"gemm: the strides of out, {place.strides}, overlap: two elements of D lie at one place")
    for name, operand in (("A", call.a), ("B", call.b), ("C", call.c), *call.inputs.items()):
        if operand is not None and np.may_share_memory(place, operand):
            raise UsageError(f"gemm: out overlaps {name}, which is read while D is written; hand over another array")
    return place[None] if flat else place


def _overlaps_itself(array: NDArray[Any]) -> bool:
    """Whether steps along an axis are shorter than what the axes with shorter steps take."""
    taken = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < taken:
            return True
        taken = stride * (length - 1) + taken
    return False


def check_memory(shape: tuple[int, ...], item: int, beside: int) -> None:
    """UsageError where D, and what is needed beside it, are larger than the memory that is left."""
    needed, left = prod(shape) * item + beside + WORK, _memory_left()
    if left is not None and needed > left:
        raise UsageError(
            f"gemm: {shape[1]:,} x {shape[2]:,} elements of D take {needed / 2**30:,.1f} GiB, of "
            f"{left / 2**30:,.1f} GiB that are left; ask for rows= and columns= of it, or hand over out="
        )


def _memory_left() -> int | None:
    """Bytes that the system says are available; None where it says nothing."""
    try:
        rows = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(row.split()[1]) << 10 for row in rows if row.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
