"""Schedules that identification found in OpenBLAS against NumPy's own products, at shapes that were not asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe import _native
from mmaprobe.devices.function import open_product

SHAPES = ((2, 2, 1), (3, 2, 9), (5, 17, 333), (13, 16, 1000), (16, 15, 8), (37, 53, 779), (8, 145, 99), (31, 33, 2481))
"""M, N and K: odd ones, and multiples of what tiles and ranges are long."""
LARGE = ((23, 61, 1000), (131, 145, 2481), (64, 300, 1333))
"""The same, where small shapes have routines of their own."""
AVX512 = pytest.mark.skipif("avx512" not in _native.engine_builds(), reason="needs avx512")
FOUND = (
    ("haswell", "f64", SHAPES), ("sandybridge", "f32", SHAPES), ("sandybridge", "f64", SHAPES),
    ("nehalem", "f32", SHAPES), ("nehalem", "f64", SHAPES),
    pytest.param("skylakex", "f32", LARGE, marks=AVX512),
)  # fmt: skip
CORES = {"nehalem": "Nehalem", "haswell": "Haswell", "sandybridge": "Sandybridge", "skylakex": "SkylakeX"}


def values(rng: np.random.Generator, kind: str, shape: tuple[int, int], dtype: Any) -> Any:
    """``normal``; ``cancelling``: far apart, of both signs; ``tiny``: about the smallest normal number, and zeros."""
    found = rng.standard_normal(shape)
    if kind == "cancelling":
        found = np.ldexp(found, rng.integers(-20, 21, shape))
    if kind == "tiny":
        found = np.ldexp(found, np.finfo(dtype).minexp // 2) * (rng.random(shape) < 0.7)
    return found.astype(dtype)


@pytest.mark.needs("openblas")
@pytest.mark.parametrize(("core", "fmt", "shapes"), FOUND)
def test_every_element_is_the_librarys(core: str, fmt: str, shapes: Sequence[tuple[int, int, int]]) -> None:
    product = open_product(f"numpy:matmul?format={fmt}&threads=1&env.OPENBLAS_CORETYPE={CORES[core]}")
    model, dtype, rng = (
        mmaprobe.gemm(f"openblas_{core}_{fmt}"),
        np.dtype(f"f{int(fmt[1:]) // 8}"),
        np.random.default_rng(4),
    )
    bits = np.dtype(f"u{dtype.itemsize}")
    for m, n, k in shapes:
        for kind in ("normal", "cancelling", "tiny"):
            a, b = values(rng, kind, (m, k), dtype).view(bits), values(rng, kind, (k, n), dtype).view(bits)
            assert (product.multiply(a, b) == model(a, b)).all(), (m, n, k, kind)
