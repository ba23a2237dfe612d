"""Calls of a whole matrix product, counted: matrices of numbers in, bits of D out, none of them trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.devices.products import Manner, MatrixProduct, knows_manners
from mmaprobe.errors import DeviceError, MmaprobeError, UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.edge import held_as
from mmaprobe.showing import of_which

Floats = NDArray[np.float64]
Hearing = Callable[[str, int], None]
"""Who is told what is being looked for, and how many calls were made."""


class Asked(NamedTuple):
    """A call: A (M, K), B (K, N) and D (M, N)."""

    a: Bits
    b: Bits
    d: Bits


class CallsSpentError(Exception):
    """More calls were wanted than were allowed."""


class UnrepeatedError(DeviceError):
    """The same call was answered in two ways."""


class ProductCalls:
    """A product that is asked at most ``budget`` times; ``count`` is how often it was.

    ``hearing`` is told of every call, and of what it is for (``say``).  ``kept``, where it is a list, gets every call.
    """

    def __init__(self, product: MatrixProduct, budget: int, hearing: Hearing | None = None) -> None:
        """UsageError for formats that no array type holds."""
        self.product, self.budget, self.count = product, budget, 0
        self._hearing, self._phase = hearing, ""
        self.kept: list[Asked] | None = None
        self.a, self.b, self.d = (formats.get(name) for name in (product.a, product.b, product.d))
        for fmt in (self.a, self.b, self.d):
            if fmt.kind != "integer" and (held_as(fmt) is None or not fmt.is_float):
                raise UsageError(f"{product.name}: {fmt.name} is no integer, and no float that an array type holds")
        quantised = self.a.name == "f32" and self.of_integers
        if self.of_integers != (self.a.kind == "integer") and not quantised:
            raise UsageError(
                f"{product.name}: A is {self.a.name}, B {self.b.name}; both must be integers, or "
                "neither, or A f32 that is quantised"
            )

    @property
    def of_integers(self) -> bool:
        """Whether A and B are integers, or A becomes some."""
        return self.b.kind == "integer"

    def say(self, phase: str) -> None:
        """What the calls from here on are for."""
        self._phase = phase
        if self._hearing is not None:
            self._hearing(phase, self.count)

    def bits(self, values: Floats, fmt: formats.Format) -> Bits:
        """Numbers rounded to a format, as its bit patterns."""
        with np.errstate(all="ignore"):
            held: NDArray[Any] = np.ascontiguousarray(values).astype(held_as(fmt) or fmt.dtype)
        return held.view(fmt.dtype)

    def values(self, bits: Bits) -> Floats:
        """What the bits of D are as numbers."""
        return self.numbers(bits, self.d)

    def numbers(self, bits: Bits, fmt: formats.Format) -> Floats:
        """What bits of a format are as numbers."""
        with np.errstate(all="ignore"):
            found: Floats = bits.view(held_as(fmt) or fmt.dtype).astype(np.float64)
        return found

    def ask(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of one call; the product gets operands of its own.

        CallsSpentError where the calls are spent, DeviceError for an answer that is no D, or an operand changed.
        """
        given = a.copy(), b.copy()
        d = self._answer(lambda: self.product.multiply(*given), (a.shape[0], b.shape[1]))
        if (given[0] != a).any() or (given[1] != b).any():
            raise DeviceError(f"{self.product.name}: changed an operand that it was given")
        if self.kept is not None:
            self.kept.append(Asked(a, b, d))
        return d

    def ask_so(self, a: Bits, b: Bits, manner: Manner) -> Bits:
        """D (M, N), or (batch, M, N), of one call in another manner; as ``ask``.

        One that writes to ``out`` does so here, too, over zeros where no pattern is said.
        """
        product = self.product
        assert knows_manners(product)
        manner = replace(manner, fill=0) if product.writes and manner.fill is None else manner
        shape = (*([manner.batch] if manner.batch else []), a.shape[0], b.shape[1])
        return self._answer(lambda: product.multiply_so(a, b, manner), shape)

    def _answer(self, call: Callable[[], Bits], shape: tuple[int, ...]) -> Bits:
        """A copy of what a call answers, if it is a D of this shape."""
        if self.count >= self.budget:
            raise CallsSpentError
        self.count += 1
        if self._hearing is not None:
            self._hearing(self._phase, self.count)
        try:
            d = call()
        except (MmaprobeError, MemoryError):
            raise
        except Exception as error:
            raise DeviceError(f"{self.product.name} broke down: {type(error).__name__}: {error}") from error
        if not isinstance(d, np.ndarray) or d.dtype != self.d.dtype or d.shape != shape:
            came = f"{getattr(d, 'dtype', type(d).__name__)} of shape {np.shape(d)}"
            raise DeviceError(f"{self.product.name}: answered {came}, not {self.d.dtype} of shape {shape}")
        return np.array(d, order="C", subok=False)

    def ask_twice(self, a: Bits, b: Bits, between: tuple[Bits, Bits] | None = None) -> Bits:
        """D of a call, and of the same call again after another one.

        UnrepeatedError with both answers of the first element that differs.
        """
        first = self.ask(a, b)
        if between is not None:
            self.ask(*between)
        again = self.ask(a, b)
        other = np.argwhere(first != again)
        if len(other):
            i, j = other[0]
            raise UnrepeatedError(
                f"{self.product.name}: the same call is answered in two ways: D[{i}, {j}] is {first[i, j]:#x}, then "
                f"{again[i, j]:#x}, and {of_which(len(other), first.size, 'element', 'differ')}"
            )
        return first
