"""Integer formats: their range, and codes as whole numbers and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats.codes import Bits
from mmaprobe.formats.layout import Format

_WORD = 64
"""Bits of an int64, in which whole numbers are held."""


def integer_range(fmt: Format) -> tuple[int, int]:
    """The smallest and the largest number of a format in two's complement, or without a sign."""
    return (-(1 << fmt.bits - 1) if fmt.signed else 0), (1 << fmt.bits - fmt.signed) - 1


def whole_numbers(fmt: Format, codes: Bits) -> NDArray[np.int64]:
    """The numbers of codes; those of u64 from 2^63 on are less by 2^64."""
    values = codes.astype(np.int64)
    if not fmt.signed or fmt.bits == _WORD:
        return values
    top = 1 << fmt.bits - 1
    found: NDArray[np.int64] = (values & (2 * top - 1) ^ top) - top
    return found


def whole_codes(fmt: Format, values: Any) -> Bits:
    """The codes of whole numbers modulo 2^bits."""
    found: Bits = np.asarray(values, np.int64).astype(fmt.dtype) & fmt.dtype.type(fmt.code_limit - 1)
    return found
