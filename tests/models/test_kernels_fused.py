"""The kernel of fused sums on random datapaths of its family, on every generator, and on sums as large as they get."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cases.engine import MODES, batch
from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native, formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import FUSED, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products, Scale, Special
from mmaprobe.parameters.lookup import datapath_for

COUNT = int(os.environ.get("MMAPROBE_KERNEL_DATAPATHS", "60"))  # a long sweep sets thousands
NARROW = ("f16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e5m2fnuz", "e4m3fnuz")
WIDE = ("bf16", "tf32")
FORMS = [
    ("sm_90a", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("sm_90a", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
    ("sm_90a", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
    ("sm_120a", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"),
]


def random_datapath(rng: np.random.Generator) -> Datapath:
    """A datapath of the family: formats, steps, bits, zero exponent, result and scales at random."""
    wide = bool(rng.integers(0, 3) == 0)
    a, b = rng.choice(WIDE if wide else NARROW, 2)
    step, steps = int(rng.choice([1, 2, 3, 4, 8, 16, 32])), int(rng.integers(1, 4))
    name = str(rng.choice(["f32", "f32", "f32", "e8m13", "f16", "bf16"]))
    rounding = str(rng.choice(["RZ", "RZ", "RNE", "RU"]))
    underflow: Any = rng.choice(["positive", "signed"])
    overflow: Any = "infinity" if rounding == "RU" else rng.choice(["infinity", "ieee"])  # alike for both signs
    to = Encode(name, rounding, overflow, zero="positive", underflow=underflow)
    d = "f32" if name == "e8m13" else name
    c = str(rng.choice(["f32", "f16", d]))
    lowest = min(formats.get(c).min_exponent, formats.get(name).min_exponent)
    zero = None if rng.integers(0, 4) == 0 else lowest - int(rng.integers(0, 30))
    tree = Fused.alike((Products(tuple(range(step))), Accumulator()), int(rng.integers(0, 29)), "RZ", zero, to)
    scale = Scale("ue8m0", step * steps) if rng.integers(0, 4) == 0 else None
    code = 0x7FFF if formats.get(d).dtype.itemsize == 2 else 0x7FFFFFFF
    return Datapath(
        str(a), str(b), c, d, step * steps, tree, step=step, scale=scale, special=Special(code=code)
    )  # fmt: skip


def check(path: Datapath, vectors: Batch, m: int, n: int) -> None:
    """Groups, tiles, and the calls on row-major arrays are the stages'."""
    expected = stages.evaluate(path, vectors)
    groups = run_groups(path, vectors)
    assert groups is not None
    assert (groups == expected).all(), f"groups of {path}"
    assert (engine.evaluate(path, vectors) == expected).all(), f"vectors of {path}"
    tiles = tiles_of(vectors, m, n)
    expected = evaluate_tiles(lambda part: stages.evaluate(path, part), tiles)
    whole = engine.evaluate_tiles(path, tiles)
    assert whole is not None
    assert (whole == expected).all(), f"row-major tiles of {path}"
    assert (run_tiles(path, tiles) == expected).all(), f"tiles of {path}"


@pytest.mark.parametrize("build", _native.engine_builds())
def test_random_datapaths(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(20)
    for i in range(COUNT):
        path = random_datapath(rng)
        assert kernel(path) == FUSED, path
        check(path, batch(path, MODES[i % len(MODES)], i, 144), 16, 4)


@pytest.mark.parametrize(("architecture", "form"), FORMS)
def test_every_generator(architecture: str, form: str) -> None:
    known = instruction(form)
    path = datapath_for(architecture, known)
    for family in families_for(known):
        vectors = generate(known, family, 7, 0, 512)
        assert (engine.evaluate(path, vectors) == stages.evaluate(path, vectors)).all(), family


@pytest.mark.parametrize("build", _native.engine_builds())
def test_no_fraction_bits_and_the_largest_c(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last place of 2^127 is 2^127: its reciprocal is no normal binary32."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    to = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
    tree = Fused.alike((Products(tuple(range(32))), Accumulator()), 0, "RZ", -133, to)
    path = Datapath("e3m2", "e4m3", "f32", "f32", 32, tree, special=Special(code=0x7FFFFFFF))
    assert kernel(path) == FUSED
    vectors = batch(path, MODES[0], 1, 144)
    assert vectors.c is not None
    vectors.c[::2] = np.random.default_rng(2).choice(np.array([0x7F7FFFFF, 0xFF000000, 0x7EFFFFFF], np.uint32), 72)
    check(path, vectors, 16, 4)


@pytest.mark.parametrize(("architecture", "form"), FORMS)
@pytest.mark.parametrize("build", _native.engine_builds())
def test_the_largest_sums(architecture: str, form: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All products at the largest significands and one exponent, C beside them, signs alike or mixed."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = datapath_for(architecture, instruction(form))
    rng = np.random.default_rng(3)
    count = 512
    codes = []
    for name in (path.a, path.b):
        fmt = formats.get(name)
        ones = (1 << fmt.fraction_bits) - 1 - (fmt.nan == "all_ones")
        value = ((fmt.bias << fmt.fraction_bits) | ones) << fmt.padding
        few = rng.integers(0, 8, (count, 1)) > 0  # rows of one sign, and of both
        negative = np.where(few, 0, rng.integers(0, 2, (count, path.k)))
        codes.append((value | negative * fmt.sign_mask).astype(fmt.dtype))
    fmt = formats.get(path.c or path.d)
    exponent = fmt.bias + rng.integers(-3, 4, count)
    c = (exponent << fmt.fraction_bits | rng.integers(0, 2, count) * ((1 << fmt.fraction_bits) - 1)).astype(np.int64)
    c = (c | rng.integers(0, 2, count) * fmt.sign_mask).astype(fmt.dtype)
    check(path, Batch(codes[0], codes[1], c), 16, 8)


def test_few_vectors_and_none() -> None:
    path = datapath_for(FORMS[0][0], instruction(FORMS[0][1]))
    vectors = batch(path, "clustered", 1, 70)
    whole = stages.evaluate(path, vectors)
    for count in (0, 1, 15, 16, 17, 70):
        assert (engine.evaluate(path, vectors.slice(0, count)) == whole[:count]).all()
    tiles = tiles_of(vectors, 5, 7)
    assert tiles.c is not None
    none = engine.evaluate_tiles(path, replace(tiles, a=tiles.a[:0], b=tiles.b[:0], c=tiles.c[:0]))
    assert none is not None
    assert none.shape == (0, 5, 7)


@pytest.mark.parametrize("build", _native.engine_builds())
def test_an_overflow_of_32_bits_before_an_infinity(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step overflows 32 bits and then f16; what the second makes of the infinity does not hide that."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    one = datapath_for(FORMS[1][0], instruction(FORMS[1][1]))
    path = replace(one, k=32, step=16)
    a = np.full((144, 32), 0x3C00, np.uint16)
    a[:, :16] = 0x5FFF  # 2^8 times nearly 2
    b, c = a.copy(), np.full(144, 0x7400, np.uint16)
    a[::2, :16] |= 0x8000
    c[::2] |= 0x8000
    check(path, Batch(a, b, c), 16, 4)


@pytest.mark.parametrize("build", _native.engine_builds())
def test_c_below_products_that_cancel(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products cancel from 2^100 to 2^159; of C near 2^127 the units of 2^(E - F) are left."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = datapath_for(FORMS[2][0], instruction(FORMS[2][1]))
    exponents = np.arange(240) % 60 + 100
    a, b = np.zeros((240, path.k), np.uint16), np.zeros((240, path.k), np.uint16)
    a[:, 3] = a[:, 9] = (exponents // 2 + 127) << 7
    b[:, 3] = b[:, 9] = (exponents - exponents // 2 + 127) << 7
    b[:, 9] |= 0x8000
    c = (np.arange(240) * 0x2F0F0F & 0x7FFFFF | np.arange(240) % 2 << 31 | 0x7F000000).astype(np.uint32)
    check(path, Batch(a, b, c), 1, 1)


@pytest.mark.parametrize("build", _native.engine_builds())
def test_c_below_scaled_products_that_cancel(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of products whose scales make them that large."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    to = Encode("f32", "RZ", "infinity", zero="positive", underflow="positive")
    tree = Fused.alike((Products(tuple(range(32))), Accumulator()), 25, "RZ", None, to)
    scale, special = Scale("ue8m0", 32), Special(code=0x7FFFFFFF)
    path = Datapath("e4m3", "e4m3", "f32", "f32", 32, tree, step=32, scale=scale, special=special)
    exponents = np.arange(240) % 60 + 100
    a, b = np.zeros((240, 32), np.uint8), np.zeros((240, 32), np.uint8)
    a[:, [3, 9]], b[:, 3], b[:, 9] = 0x38, 0x38, 0xB8
    scale_a, scale_b = (exponents // 2 + 127)[:, None], (exponents - exponents // 2 + 127)[:, None]
    c = (np.arange(240) * 0x2F0F0F & 0x7FFFFF | np.arange(240) % 2 << 31 | 0x7F000000).astype(np.uint32)
    check(path, Batch(a, b, c, scale_a.astype(np.uint8), scale_b.astype(np.uint8)), 1, 1)
