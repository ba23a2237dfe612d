"""Rounding of integer magnitudes: eleven modes, on ``int64`` or on Python ints in object arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDINGS = ("RU", "RD", "RZ", "RA", "RNU", "RND", "RNZ", "RNA", "RNE", "RNO", "RO")
"""Toward +inf, -inf, zero, away; nearest with ties up, down, to zero, away, even, odd; to odd."""


def bit_length(value: NDArray[Any]) -> NDArray[np.int64]:
    """Number of bits of non-negative integers (``int64``, or Python ints in an object array)."""
    value = np.asarray(value)
    if value.dtype == object:
        return np.asarray(np.frompyfunc(int.bit_length, 1, 1)(value), dtype=np.int64)
    length = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    over = (length > 0) & ((value >> np.maximum(length - 1, 0)) == 0)  # float64 rounded up to the next power
    return np.asarray(length - over, dtype=np.int64)


def shift_right(value: NDArray[Any], shift: NDArray[Any], negative: NDArray[Any], rounding: str) -> NDArray[Any]:
    """``round(value / 2**shift)`` of magnitudes, exact for ``shift <= 0``.

    ``int64`` magnitudes must be below 2**61; object arrays hold any size.
    ``negative`` gives the sign that the directed roundings look at.
    """
    wide = value.dtype == object
    shift = np.asarray(shift).astype(object if wide else np.int64)
    left = np.maximum(-shift, 0)
    right = np.maximum(shift, 0)
    if not wide:
        right = np.minimum(right, 62)
    one = np.ones_like(value)
    kept = value >> right
    rest = value - (kept << right)
    inexact = rest != 0
    if rounding == "RO":
        return np.asarray((kept | inexact.astype(kept.dtype)) << left)
    if rounding.startswith("RN"):
        half = np.where(right > 0, (one << np.maximum(right, 1)) >> 1, one)
        tie = rest == half
        up = (rest > half) | (tie & _tie_goes_away(rounding, kept, negative))
        up = up & (right > 0)
    else:
        up = inexact & {"RZ": np.False_, "RA": np.True_, "RU": ~negative, "RD": negative}[rounding]
    return np.asarray((kept + up.astype(kept.dtype)) << left)


def _tie_goes_away(rounding: str, kept: NDArray[Any], negative: NDArray[Any]) -> Any:
    odd = (kept & 1) != 0
    return {"RNU": ~negative, "RND": negative, "RNZ": np.False_, "RNA": np.True_, "RNE": odd, "RNO": ~odd}[rounding]


def overflow_goes_to_infinity(rounding: str, negative: NDArray[Any]) -> Any:
    """IEEE 754 section 7.4: what a result beyond the largest finite value becomes."""
    if rounding in ("RZ", "RO"):
        return np.False_
    return {"RU": ~negative, "RD": negative}.get(rounding, np.True_)
