"""An A of f32 as integers, by its own ends (``parameters/quantised``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.integer_sums import ends
from mmaprobe.parameters.quantised import Quantised

Singles = NDArray[np.float32]
Whole = NDArray[np.int64]


class QuantisedRows(NamedTuple):
    """Rows of A as whole numbers, their zero point and their scale; (rows, 1), or (1, 1) where all have the same."""

    a: Whole
    zero: Whole
    scale: Singles


def quantised_rows(rule: Quantised, codes: Bits, rows: NDArray[np.intp]) -> QuantisedRows:
    """These rows of an A (M, K) of f32; UsageError where a number is none, or the ends leave no normal scale."""
    every: Singles = codes.view(np.float32)
    if not np.isfinite(every).all():
        i, k = np.argwhere(~np.isfinite(every))[0]
        raise UsageError(f"gemm: A[{i}, {k}] is {every[i, k]}; what an A with it is quantised to is not claimed")
    x = every[rows]
    whose = x if rule.of == "row" else every.reshape(1, -1)
    low = whose.min(axis=1, keepdims=True, initial=np.float32(0))
    high = whose.max(axis=1, keepdims=True, initial=np.float32(0))
    scale = _scale(rule, low, high)
    least, most = ends(rule.format)
    zero = np.clip(_rounded(rule, np.float32(least) - low / scale), least, most)
    taken = x / scale if rule.by == "divide" else x * (np.float32(1) / scale)
    a = np.clip(_rounded(rule, taken) + zero, least, most)
    return QuantisedRows(a.astype(np.int64), zero.astype(np.int64), scale)


def _scale(rule: Quantised, low: Singles, high: Singles) -> Singles:
    """The scale of ends; UsageError where it is not normal."""
    least, most = ends(rule.format)
    with np.errstate(over="ignore", under="ignore"):
        found: Singles = (high - low) / np.float32(most - least)
    wrong = (high > low) & ~((found >= np.finfo(np.float32).tiny) & np.isfinite(found))
    if wrong.any():
        at = np.flatnonzero(wrong)[0]
        span = f"{low.flat[at]} to {high.flat[at]}"
        raise UsageError(f"gemm: A is from {span}: the scale of that is no normal number of f32, and is not claimed")
    return np.where(high > low, found, np.float32(1))


def _rounded(rule: Quantised, x: Singles) -> Singles:
    """Whole numbers."""
    if rule.rounding == "even":
        return np.rint(x)
    found: Singles = np.copysign(np.floor(np.abs(x).astype(np.float64) + 0.5), x).astype(np.float32)
    return found
