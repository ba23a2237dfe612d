"""Fused sums of operands of 8 exponent bits whose products lie far apart, or that are subnormal: the stages."""

from __future__ import annotations

import numpy as np
import pytest

from cases.engine_layout import run_groups, run_tiles
from mmaprobe import _native, formats
from mmaprobe.models import stages
from mmaprobe.models.kernels import FUSED, kernel
from mmaprobe.operands.batch import Batch, Bits, outputs_of
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Special
from mmaprobe.parameters.lookup import load

BUILDS = _native.engine_builds()
FORMS = [
    ("sm_90a", "HMMA.16816.F32.BF16[bf16,bf16->f32]"),
    ("sm_90a", "HMMA.1688.F32.TF32[tf32,tf32->f32]"),
    ("sm_80", "HMMA.16816.F32.BF16[bf16,bf16->f32]"),
]
TILES, M, N = 6, 16, 8


def items(name: str, rng: np.random.Generator, fields: Bits) -> Bits:
    """Codes of these exponent fields, any signs and fractions; a seventh of them zeros."""
    fmt = formats.get(name)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, fields.shape)
    code = rng.integers(0, 2, fields.shape) * fmt.sign_mask | fields << fmt.fraction_bits | fraction
    code = np.where(rng.integers(0, 7, fields.shape) == 0, code & fmt.sign_mask, code)
    return (code.astype(np.uint64) << np.uint64(fmt.padding)).astype(fmt.dtype)


def far_tiles(path: Datapath, seed: int) -> Batch:
    """Large and small items in turn, so that large rows meet small columns; C near the products, subnormal, or any."""
    rng = np.random.default_rng(seed)
    sides = []
    for shape, lane in (((TILES, M, path.k), 2), ((TILES, path.k, N), 1)):
        turn = np.indices(shape)[lane] % 2 if lane == 2 else 1 - np.indices(shape)[lane] % 2
        large, small = rng.integers(180, 255, shape), rng.integers(0, rng.choice([2, 40, 80]), shape)
        sides.append(np.where(turn == 0, large, small))
    quiet = rng.random(sides[0].shape) < 0.3  # a row may be small altogether
    a, b = items(path.a, rng, np.where(quiet, sides[0] % 30, sides[0])), items(path.b, rng, sides[1])
    fields = np.where(rng.random((TILES, M, N)) < 0.3, 0, rng.integers(0, 256, (TILES, M, N)))
    return Batch(a, b, items("f32", rng, fields))


def check(path: Datapath, tiles: Batch) -> None:
    """Tiles and groups of the kernel are the stages'."""
    vectors = outputs_of(tiles)
    expected = stages.evaluate(path, vectors)
    found, groups = run_tiles(path, tiles), run_groups(path, vectors)
    assert found is not None
    assert groups is not None
    assert (found.reshape(-1) == expected).all(), path
    assert (groups == expected).all(), path


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("architecture", "primitive"), FORMS, ids=[f"{name} {of}" for name, of in FORMS])
def test_large_rows_meet_small_columns(
    architecture: str, primitive: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = load(architecture).entries[primitive].datapath
    assert kernel(path) == FUSED
    for seed in range(3):
        check(path, far_tiles(path, seed))


@pytest.mark.parametrize("build", BUILDS)
def test_specials_among_them(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few infinities and NaNs among rows and columns, and subnormals that meet them."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = load("sm_90a").entries[FORMS[0][1]].datapath
    rng = np.random.default_rng(1)
    tiles = far_tiles(path, 5)
    for side in (tiles.a, tiles.b):
        some = rng.random(side.shape) < 0.02
        side[some] = rng.choice(np.array([0x7F80, 0xFF80, 0x7FC0, 1, 0x8001], side.dtype), int(some.sum()))
    check(path, tiles)


@pytest.mark.parametrize("build", BUILDS)
def test_random_datapaths_of_wide_operands(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, bits and zero exponents at random; also sums of 32 bits in two."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(2)
    for i in range(24):
        name, step, steps = str(rng.choice(["bf16", "tf32"])), int(rng.choice([2, 4, 8])), int(rng.integers(1, 3))
        bits = 28 if i % 3 == 0 else int(rng.integers(8, 26))
        step = 4 if bits == 28 else step
        leaves = (Accumulator(), Products(tuple(range(step))))
        to = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
        tree = Fused.alike(leaves, bits, "RZ", -int(rng.integers(130, 151)), to)
        path = Datapath(name, name, "f32", "f32", 8 * steps, tree, step, special=Special(code=0x7FFFFFFF))
        assert kernel(path) == FUSED
        check(path, far_tiles(path, 100 + i))


@pytest.mark.parametrize("build", BUILDS)
def test_the_largest_sums_far_below_their_rows(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four products whose sum does not fit 32 bits, in rows and columns whose largest items meet zeros."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    to = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
    tree = Fused.alike((Accumulator(), Products((0, 1, 2, 3))), 28, "RZ", -133, to)
    path = Datapath("tf32", "tf32", "f32", "f32", 8, tree, 4, special=Special(code=0x7FFFFFFF))
    assert kernel(path) == FUSED
    near_two = (127 - 60) << 23 | 0x7FE000
    a, b = np.zeros((TILES, M, 8), np.uint32), np.zeros((TILES, 8, N), np.uint32)
    a[..., 4:], b[..., 4:, :] = near_two, near_two
    a[..., 0], b[..., 1, :] = 0x7E800000, 0x7E800000
    a[1::2] |= np.uint32(1 << 31)
    tiles = Batch(a, b, np.full((TILES, M, N), (127 - 120) << 23, np.uint32))
    check(path, tiles)
