"""The kernel of sums in two stages (CDNA3): its fast way and its exact lanes are the stages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.engine import MODES, batch, two_stage
from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native, formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import TWO_STAGE, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Fused,
    Node,
    Product,
    Products,
    Special,
    Term,
)
from mmaprobe.parameters.lookup import datapath_for

BUILDS = _native.engine_builds()
FORMS = {
    name: instruction(f"v_mfma_f32_{name}", "gfx942")
    for name in (
        "32x32x4_2b_f16", "32x32x8_f16", "16x16x16_bf16", "16x16x8_xf32", "16x16x32_fp8_bf8", "32x32x16_bf8_bf8",
    )
}  # fmt: skip
PATHS = {name: datapath_for("gfx942", made) for name, made in FORMS.items()}
NARROW = ("f16", "e4m3", "e5m2", "e3m2", "e2m1", "e4m3fnuz", "e5m2fnuz")
WIDE = ("bf16", "tf32")
SPECIAL = Special(code=0x7FC00000)


def check(path: Datapath, vectors: Batch, m: int = 16, n: int = 3) -> None:
    """Groups, tiles, and the calls on row-major arrays are the stages'."""
    expected = stages.evaluate(path, vectors)
    found = run_groups(path, vectors)
    assert found is not None
    assert (found == expected).all(), f"groups of {path}"
    tiles = tiles_of(vectors, m, n)
    expected = evaluate_tiles(lambda part: stages.evaluate(path, part), tiles)
    assert (run_tiles(path, tiles) == expected).all(), f"tiles of {path}"
    assert (engine.evaluate_tiles(path, tiles) == expected).all(), f"calls of {path}"


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", FORMS)
def test_every_build_and_generator_is_the_stages(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = PATHS[name]
    assert kernel(path) == TWO_STAGE
    for i, family in enumerate(families_for(FORMS[name])):
        check(path, generate(FORMS[name], family, i, 0, 96))


def node(step: int, parts: int, bits: int, cutoff: int | None, zero: int, first: int) -> Node:
    """The sum of a step of this many lanes, which take turns in so many parts."""
    sums = [Fused.alike((Products(tuple(range(part, step, parts))),), bits, "RZ") for part in range(parts)]
    products = sums[0] if parts == 1 else Fused.alike(sums, bits, "RD")
    terms = (Term(products, bits + 8, "RD"), Term(Accumulator(), bits, "RD", zero, cutoff))
    return Fused(terms, Encode(first=(first, "RD")))


def random_datapath(rng: np.random.Generator) -> Datapath:
    """A datapath of the family: formats, steps, parts, bits, cutoff, zero exponent and the first rounding at random."""
    kind = int(rng.integers(0, 8))
    a, b = (str(x) for x in (rng.choice(WIDE, 2) if kind < 3 else rng.choice(NARROW, 2)))
    if kind == 7:
        b = "bf16"  # one of each: exact lanes alone
    parts = int(rng.choice([1, 1, 2]))
    step, steps = parts * int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 4))
    bits = int(rng.choice([23, 24, 24, 25]))
    cutoff = None if rng.integers(0, 2) else int(rng.integers(0, 40))
    zero = int(rng.choice([-126, -126, -127, -130, -140, -200]))
    first = int(rng.choice([31, 31, 24, 28, 30, 33, 38, 40]))
    c = None if rng.integers(0, 8) == 0 else "f32"
    overflow = 128 if kind < 3 or kind == 7 or rng.integers(0, 2) else None
    tree = node(step, parts, bits, cutoff, zero, first)
    return Datapath(
        a, b, c, "f32", step * steps, tree, step, product=Product(overflow_exponent=overflow), special=SPECIAL
    )  # fmt: skip


@pytest.mark.parametrize("build", BUILDS)
def test_random_datapaths(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(17)
    for i in range(60):
        path = random_datapath(rng)
        assert kernel(path) == TWO_STAGE, path
        for mode in ("uniform", MODES[i % len(MODES)]):
            check(path, batch(path, mode, i, 64))


def opposite(path: Datapath, vectors: Batch, rng: np.random.Generator) -> Batch:
    """C near minus the sum, up to 31 bits of which are left, or a power of two away, or a zero, or special."""
    alone = stages.evaluate(path, replace(vectors, c=np.zeros_like(vectors.c)))
    near = (alone ^ np.uint32(1 << 31)) + rng.integers(0, 5, alone.shape, np.uint32) - np.uint32(2)
    away = near ^ (rng.integers(0, 64, alone.shape, np.uint32) << np.uint32(23))
    ends = np.array([0, 1 << 31, 1, 0x80000001, 0x00800000, 0x7F800000, 0xFF800000, 0x7F800001, 0x7F7FFFFF], np.uint32)
    return replace(vectors, c=np.choose(rng.integers(0, 3, alone.shape), [near, away, rng.choice(ends, alone.shape)]))


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", PATHS)
def test_c_that_cancels_and_every_special_c(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(5)
    path = PATHS[name]
    for mode in MODES:
        check(path, opposite(path, batch(path, mode, 3, 256), rng))


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("fmt", ["f16", "e5m2fnuz", "bf16", "tf32"])
def test_zeros_of_both_signs(fmt: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that are zeros, in part or all, with C a zero or its least number of either sign."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    overflow = 128 if fmt in WIDE else None
    path = Datapath(fmt, fmt, "f32", "f32", 8, two_stage((Products(tuple(range(4))),)), 4,
                    product=Product(overflow_exponent=overflow), special=SPECIAL)  # fmt: skip
    rng = np.random.default_rng(6)
    vectors = batch(path, "clustered", 4, 512)
    sign = vectors.a.dtype.type(formats.get(fmt).sign_mask)
    a = np.where(rng.random(vectors.a.shape) < 0.9, vectors.a & sign, vectors.a)
    if fmt.endswith("fnuz"):
        a = np.where(a == sign, 0, a).astype(a.dtype)
    c = rng.choice(np.array([0, 1 << 31, 1, 0x80000001], np.uint32), 512)
    minus = replace(vectors, a=np.zeros_like(a), b=vectors.b | sign, c=np.full(512, 1 << 31, np.uint32))
    for given in (replace(vectors, a=a, c=c), minus):
        check(path, given)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("fmt", WIDE)
def test_wide_products_at_the_ends_of_their_range(fmt: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products at 2^128 of either sign, far below the largest of their row and column, and subnormal operands."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = Datapath(fmt, fmt, "f32", "f32", 8, two_stage((Products(tuple(range(4))),)), 4,
                    product=Product(overflow_exponent=128), special=SPECIAL)  # fmt: skip
    bits, kind = formats.get(fmt).fraction_bits, formats.get(fmt)
    rng = np.random.default_rng(8)

    def codes(fields: np.ndarray) -> np.ndarray:
        sign, fraction = rng.integers(0, 2, fields.shape), rng.integers(0, 1 << bits, fields.shape)
        made = (sign << (8 + bits) | fields << bits | fraction) << kind.padding
        return np.asarray(made.astype(kind.dtype))

    for high, spread in ((127, 2), (127, 1), (90, 250), (1, 3)):
        field = rng.integers(0, 255, (384, 1))
        a = np.clip(field + rng.integers(-spread, spread + 1, (384, 8)), 0, 254)
        b = np.clip(high + 254 - field - rng.integers(0, spread + 1, (384, 8)), 0, 254)
        c = rng.integers(0, 1 << 32, 384, np.uint64).astype(np.uint32)
        check(path, Batch(codes(a), codes(b), c))
    small = codes(np.zeros((384, 8), np.int64))
    check(path, Batch(small, codes(rng.integers(100, 255, (384, 8))), rng.integers(0, 1 << 26, 384, np.uint32)))


@pytest.mark.parametrize("build", BUILDS)
def test_bits_below_those_of_c(build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 and n 2^-32: eight bits below C's last count, of which the first rounding leaves 31 below the leading one."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = PATHS["32x32x8_f16"]
    a, b = np.zeros((64, 8), np.uint16), np.zeros((64, 8), np.uint16)
    a[:, 0] = np.resize(np.array([-383, 258, 257, -127], np.float16) / np.float16(256), 64).view(np.uint16)
    b[:, 0] = 1
    vectors = Batch(a, b, np.full(64, 0x3F800000, np.uint32))
    found = run_groups(path, vectors)
    assert found is not None
    assert found[:4].tolist() == [0x3F7FFFFF, 0x3F800001, 0x3F800000, 0x3F800000]
    check(path, vectors)
