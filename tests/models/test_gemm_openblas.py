"""The schedule of OpenBLAS' f32 product against NumPy's own: every element, at shapes that were not asked for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases import numpy_products
from mmaprobe.parameters.schedule import to_text

SHAPES = (
    (2, 2, 1), (2, 3, 7), (3, 2, 9), (5, 17, 333), (13, 16, 1000), (12, 8, 640), (7, 31, 641), (16, 15, 8),
    (17, 47, 1001), (24, 24, 16), (37, 53, 1279), (47, 69, 11683), (61, 100, 322), (8, 345, 99), (23, 1000, 321),
    (100, 641, 327), (275, 330, 77), (411, 639, 13), (101, 7, 4099), (9, 9, 16384), (31, 323, 481), (700, 21, 25),
    (2, 24, 2000),
)  # fmt: skip
"""M, N and K: odd ones, below and above what tiles, blocks and ranges are long, and their multiples."""


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.standard_normal(shape, np.float32)


def cancelling(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    """Magnitudes far apart, of both signs."""
    return np.ldexp(rng.standard_normal(shape, np.float32), rng.integers(-20, 21, shape))


def tiny(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    """Products about the smallest normal number, and zeros of both signs."""
    return np.ldexp(rng.standard_normal(shape, np.float32), -63) * (rng.random(shape) < 0.7).astype(np.float32)


@pytest.mark.needs("openblas")
@pytest.mark.parametrize("family", [normal, cancelling, tiny])
def test_every_element_is_numpys(family: Callable[..., Any], tmp_path: Path) -> None:
    rng, product = np.random.default_rng(7), mmaprobe.gemm("openblas_haswell_f32")
    pairs = [(family(rng, (m, k)), family(rng, (k, n))) for m, n, k in SHAPES]
    for (a, b), d in zip(pairs, numpy_products.products(pairs, tmp_path), strict=True):
        ours = product(a, b)
        assert (ours.view(np.uint32) == d.view(np.uint32)).all(), (a.shape, b.shape)


@pytest.mark.needs("openblas")
def test_another_length_of_ranges_is_seen(tmp_path: Path) -> None:
    """The comparison tells: with ranges of 384 most elements are others."""
    rng = np.random.default_rng(8)
    pair = normal(rng, (16, 700)), normal(rng, (700, 16))
    path = tmp_path / "other.toml"
    schedule = mmaprobe.gemm("openblas_haswell_f32").schedule
    path.write_text(to_text(schedule).replace("length = 320", "length = 384"), encoding="utf-8")
    (d,) = numpy_products.products([pair], tmp_path)
    assert (mmaprobe.gemm(path)(*pair) != d).mean() > 0.5
