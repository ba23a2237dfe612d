"""Schedules that identification found in OpenBLAS against NumPy's own products, at shapes that were not asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.devices.function import open_product

SHAPES = ((2, 2, 1), (3, 2, 9), (5, 17, 333), (13, 16, 1000), (16, 15, 8), (37, 53, 779), (8, 145, 99), (31, 33, 2481))
"""M, N and K: odd ones, and multiples of what tiles and ranges are long."""
FOUND = (("haswell", "f64"), ("sandybridge", "f32"), ("sandybridge", "f64"))
CORES = {"haswell": "Haswell", "sandybridge": "Sandybridge"}


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int], dtype: Any) -> Any:
    """``normal``; ``cancelling``: far apart, of both signs; ``tiny``: about the smallest normal number, and zeros."""
    found = rng.standard_normal(shape)
    if kind == "cancelling":
        found = np.ldexp(found, rng.integers(-20, 21, shape))
    if kind == "tiny":
        found = np.ldexp(found, np.finfo(dtype).minexp // 2) * (rng.random(shape) < 0.7)
    return found.astype(dtype)


@pytest.mark.needs("openblas")
@pytest.mark.parametrize(("core", "fmt"), FOUND)
def test_every_element_is_the_librarys(core: str, fmt: str) -> None:
    product = open_product(f"numpy:matmul?format={fmt}&threads=1&env.OPENBLAS_CORETYPE={CORES[core]}")
    model, dtype, rng = (
        mmaprobe.gemm(f"openblas_{core}_{fmt}"),
        np.dtype(f"f{int(fmt[1:]) // 8}"),
        np.random.default_rng(4),
    )
    bits = np.dtype(f"u{dtype.itemsize}")
    for m, n, k in SHAPES:
        for kind in ("normal", "cancelling", "tiny"):
            a, b = values(rng, kind, (m, k), dtype).view(bits), values(rng, kind, (k, n), dtype).view(bits)
            assert (product.multiply(a, b) == model(a, b)).all(), (m, n, k, kind)
