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
    shift = np.asarray(shift).astype(object if wide else np.int64, copy=False)
    left = np.maximum(-shift, 0)
    right = np.maximum(shift, 0) if wide else np.clip(shift, 0, 62)
    kept = value >> right
    if rounding == "RZ":
        return np.asarray(kept << left)
    rest = value - (kept << right)
    if rounding == "RO":
        return np.asarray((kept | (rest != 0).astype(kept.dtype)) << left)
    if rounding.startswith("RN"):
        twice, unit = rest << 1, np.ones_like(value) << right
        up = (twice > unit) | ((twice == unit) & _tie_goes_away(rounding, kept, negative))
    else:
        up = (rest != 0) & {"RA": np.True_, "RU": ~negative, "RD": negative}[rounding]
    return np.asarray((kept + up.astype(kept.dtype)) << left)


def _tie_goes_away(rounding: str, kept: NDArray[Any], negative: NDArray[Any]) -> Any:
    odd = (kept & 1) != 0
    return {"RNU": ~negative, "RND": negative, "RNZ": np.False_, "RNA": np.True_, "RNE": odd, "RNO": ~odd}[rounding]


def overflow_goes_to_infinity(rounding: str, negative: NDArray[Any]) -> Any:
    """IEEE 754 section 7.4: what a result beyond the largest finite value becomes."""
    if rounding in ("RZ", "RO"):
        return np.False_
    return {"RU": ~negative, "RD": negative}.get(rounding, np.True_)
