"""Lanes whose products are all zero keep C in the fast way of fused sums, whatever C is and the other lanes hold."""

from __future__ import annotations

import numpy as np
import pytest

from cases.engine_layout import run_groups, run_interpreter, run_tiles
from mmaprobe import _native, formats
from mmaprobe.models.kernels import FUSED, kernel
from mmaprobe.operands.batch import Batch, Bits, outputs_of
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load

FORMS = [
    ("sm_90a", "HMMA.16816.F32[f16,f16->f32]"),
    ("sm_90a", "HMMA.16816.F16[f16,f16->f16]"),
    ("sm_90a", "HMMA.16816.F32.BF16[bf16,bf16->f32]"),
    ("sm_90a", "HMMA.1688.F32.TF32[tf32,tf32->f32]"),
    ("sm_90a", "QGMMA.F32.E4M3.E4M3[e4m3,e4m3->f32,k32]"),
    ("sm_80", "HMMA.16816.F32[f16,f16->f32]"),
    ("sm_80", "HMMA.16816.F32.BF16[bf16,bf16->f32]"),
    ("sm_70", "HMMA.884.F32.F32[f16,f16->f32]"),
]
TILES, M, N = 12, 16, 8


def codes(name: str, rng: np.random.Generator, *shape: int) -> Bits:
    """Any codes of a format: uniform bits, and as often subnormals and powers of two."""
    fmt = formats.get(name)
    drawn = rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64)
    low = drawn & ~np.uint64(fmt.infinity_code or 0)
    power = drawn & ~np.uint64((1 << fmt.fraction_bits) - 1)
    kind = rng.integers(0, 4, shape)
    return (np.where(kind == 0, low, np.where(kind == 1, power, drawn)) << fmt.padding).astype(fmt.dtype)


def sparse_tiles(path: Datapath, seed: int) -> Batch:
    """Rows and columns that mostly hold zeros of either sign, so that most lanes have no product."""
    rng = np.random.default_rng(seed)
    a, b = codes(path.a, rng, TILES, M, path.k), codes(path.b, rng, TILES, path.k, N)
    for operand, name in ((a, path.a), (b, path.b)):
        zero = rng.random(operand.shape) < rng.choice([0.5, 0.9, 0.97, 1.0], (TILES, 1, 1))
        operand[zero] &= operand.dtype.type(formats.get(name).sign_mask)
    assert path.c is not None
    c = codes(path.c, rng, TILES, M, N)
    if path.scale is None:
        return Batch(a, b, c)
    groups = path.k // path.scale.size
    return Batch(a, b, c, *(codes(path.scale.format, rng, TILES, *shape) for shape in ((M, groups), (groups, N))))


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize(("architecture", "primitive"), FORMS, ids=[f"{name} {of}" for name, of in FORMS])
def test_lanes_without_products_are_those_of_the_interpreter(
    architecture: str, primitive: str, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = load(architecture).entries[primitive].datapath
    assert kernel(path) == FUSED
    tiles = sparse_tiles(path, 3)
    vectors = outputs_of(tiles)
    expected = run_interpreter(path, vectors)
    found, groups = run_tiles(path, tiles), run_groups(path, vectors)
    assert found is not None
    assert groups is not None
    assert (found.reshape(-1) == expected).all()
    assert (groups == expected).all()
