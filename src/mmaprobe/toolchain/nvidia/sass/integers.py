"""What integer instructions of the machine code compute, on arrays of 32-bit patterns held in int64.

The encodings are not published; each rule here is what makes the compiled kernels address what their source says, and
a wrong one shows as a wrong address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mmaprobe.errors import UsageError

MASK = (1 << 32) - 1
"""Bits of a register."""
Values = Any
"""An int64 or an array of them, one a lane."""


def signed(value: Values) -> Values:
    """A pattern as two's complement."""
    return (value ^ 0x80000000) - 0x80000000


def lop3(a: Values, b: Values, c: Values, table: int) -> Values:
    """The bit a, b, c choose of a table of eight, bit by bit."""
    result = np.zeros_like(a | b | c)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result & MASK


def permute(low: Values, high: Values, selector: int) -> Values:
    """Bytes of {high, low}, one for each nibble of a selector; its bit 3 takes the byte's sign instead."""
    wide, result = high << 32 | low, np.zeros_like(low)
    for place in range(4):
        chosen = selector >> 4 * place & 0xF
        byte = wide >> 8 * (chosen & 7) & 0xFF
        result = result | (np.where(byte & 0x80, 0xFF, 0) if chosen & 8 else byte) << 8 * place
    return result


def funnel(modifiers: frozenset[str], low: Values, by: Values, high: Values) -> Values:
    """SHF: {high, low} shifted, and which half of it comes out."""
    if "W" not in modifiers:
        by = np.minimum(by & MASK, 63 if modifiers & {"U64", "S64"} else 32)
    if "L" in modifiers:
        wide = (high << 32 | low) << by if by is not None and np.max(by) < 32 else None
        if wide is None:
            raise UsageError("a funnel shift to the left by 32 and more is not known here")
        return (high << by | low >> (32 - by)) & MASK if "HI" in modifiers else low << by & MASK
    top = signed(high) if modifiers & {"S32", "S64"} else high
    if "HI" in modifiers:
        return top >> np.minimum(by, 63) & MASK
    return (
        low >> np.minimum(by, 63) | np.where(by < 32, top << (32 - np.minimum(by, 32)), top >> np.maximum(by - 32, 0))
    ) & MASK


COMPARE: dict[str, Callable[[Values, Values], Values]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
"""Comparisons of ISETP."""
JOIN: dict[str, Callable[[Values, Values], Values]] = {
    "AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor,
}  # fmt: skip
"""How ISETP joins its comparison with a predicate."""
