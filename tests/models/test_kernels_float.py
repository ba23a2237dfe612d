"""Kernels of floats: chains, sums in two stages, scaled groups, short sums; equal to the stages."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from cases.engine import DATAPATHS, MODES, C, batch
from cases.engine_layout import run_groups, run_tiles, tiles_of
from cases.short_sums import near
from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models import stages
from mmaprobe.models.kernels import CHAIN, EXACT_SUM, GROUPED, PAIRS, SHORT_SUMS, TWO_STAGE, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath, Encode, Fma, Fused, Operand, Scale, Special
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbours

BUILDS = _native.engine_builds()
KERNELS = (CHAIN, TWO_STAGE, GROUPED, EXACT_SUM, PAIRS, SHORT_SUMS)


def chain(name: str, k: int, rounding: str = "RNE") -> Datapath:
    code = 0x7FF8 << 48 if name == "f64" else 0x7FC00000
    tree = Fma(C, tuple(range(k)), Encode(name, rounding))
    return Datapath(name, name, name, name, k, tree, special=Special(code=code))


CDNA2 = {"f16": "v_mfma_f32_16x16x16f16", "bf16": "v_mfma_f32_16x16x8bf16", "bf16_1k": "v_mfma_f32_16x16x16bf16_1k"}
RDNA = {
    "RDNA3 f16": ("v_wmma_f32_16x16x16_f16", "gfx1100"), "RDNA3 bf16": ("v_wmma_f32_16x16x16_bf16", "gfx1100"),
    "RDNA3 packed f16": ("v_wmma_f16_16x16x16_f16", "gfx1100"),
    "RDNA3 packed bf16": ("v_wmma_bf16_16x16x16_bf16", "gfx1100"), "RDNA3 pair": ("v_dot2_f32_bf16", "gfx1100"),
    "RDNA4 f16": ("v_wmma_f32_16x16x16_f16", "gfx1201"), "RDNA4 bf16": ("v_wmma_f32_16x16x16_bf16{wave=64}", "gfx1201"),
    "RDNA4 packed f16": ("v_wmma_f16_16x16x16_f16", "gfx1201"),
    "RDNA4 packed bf16": ("v_wmma_bf16_16x16x16_bf16", "gfx1201"), "RDNA4 pair": ("v_dot2_f32_f16", "gfx1201"),
    "RDNA4 four": ("v_dot4_f32_fp8_bf8", "gfx1201"), "RDNA4 fp8": ("v_wmma_f32_16x16x16_fp8_bf8", "gfx1201"),
}  # fmt: skip
NVFP4 = DATAPATHS["mxf4nvf4"]
CASES = {
    "chain f64": chain("f64", 4), "chain f64 RD": chain("f64", 8, "RD"), "chain f64 RU": chain("f64", 3, "RU"),
    "chain f32 RZ": chain("f32", 16, "RZ"), "chain f32": chain("f32", 1),
    **{name: DATAPATHS[name] for name in ("CDNA1 f16", "CDNA1 bf16", "CDNA3 bf16", "CDNA3 fp8", "mxf4nvf4")},
    **{f"CDNA2 {name}": datapath_for("gfx90a", instruction(form, "gfx90a")) for name, form in CDNA2.items()},
    **{name: datapath_for(where, instruction(form, where)) for name, (form, where) in RDNA.items()},
    "CDNA3 tf32": replace(DATAPATHS["CDNA3 bf16"], a="tf32", b="tf32"),
    "mxf4": replace(NVFP4, scale=Scale("ue8m0", 32, "group")),
}  # fmt: skip


def check(path: Datapath, mode: str, seed: int, m: int = 16, n: int = 8) -> None:
    """Groups and tiles of the kernel are the stages'; without fused multiply-adds a chain has no kernel, and without
    conversions of binary16 a short sum that ends in it."""
    vectors = batch(path, mode, seed, 2 * m * n)
    groups = run_groups(path, vectors)
    if groups is None:
        assert kernel(path) == CHAIN or (kernel(path), path.d) == (SHORT_SUMS, "f16")
        assert os.environ.get("MMAPROBE_ISA") == "baseline"
        return
    assert (groups == stages.evaluate(path, vectors)).all(), f"groups, {mode}, {path}"
    tiles = tiles_of(vectors, m, n)
    expected = evaluate_tiles(lambda batch: stages.evaluate(path, batch), tiles)
    computed = run_tiles(path, tiles)
    assert computed is not None
    assert (computed == expected).all(), f"tiles, {mode}, {path}"


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", CASES)
def test_every_build_is_the_stages(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    assert kernel(CASES[name]) in KERNELS
    for mode in MODES:
        check(CASES[name], mode, seed=1)


@pytest.mark.parametrize("name", ["chain f64", "CDNA3 bf16", "mxf4nvf4", "RDNA3 f16", "RDNA4 packed bf16"])
@pytest.mark.parametrize(("m", "n"), [(8, 8), (64, 24), (1, 1), (40, 3)])
def test_shapes_of_tiles(name: str, m: int, n: int) -> None:
    check(CASES[name], "clustered", seed=3, m=m, n=n)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name", ["chain f64", "CDNA3 bf16", "CDNA3 fp8", "CDNA1 f16", "CDNA1 bf16", "CDNA2 f16", "mxf4nvf4",
             *(name for name in RDNA if name not in ("RDNA3 bf16", "RDNA4 bf16", "RDNA4 four"))]
)  # fmt: skip
def test_one_changed_field_is_honoured_or_interpreted(name: str) -> None:
    taken = refused = 0
    for _, _, path in neighbours(CASES[name]):
        if kernel(path) in KERNELS:
            taken += 1
            for mode in MODES:
                check(path, mode, seed=5, n=2)
        else:
            refused += 1
    assert taken
    assert refused


def groups_at_the_ends(path: Datapath, count: int) -> Batch:
    """Few products, which often cancel; scales and C small, large, special or of either zero."""
    rng = np.random.default_rng(11)
    assert path.scale is not None
    some = rng.random((2, count, path.k)) < rng.random((2, count, 1)) ** 2
    a, b = (rng.integers(0, 16, (2, count, path.k)) * some).astype(np.uint8)
    a[::3, 1::2], b[::3, 1::2] = a[::3, ::2] ^ 8, b[::3, ::2]
    scales = rng.integers(0, 256, (2, count, path.k // path.scale.size))
    top = 0x7F if path.scale.format == "ue4m3" else 0xFF
    near = scales // 64 + rng.integers(0, top - 3, (2, count, 1))
    chosen = rng.integers(0, 4, (2, count, 1))
    scales = np.where(chosen == 0, scales & top, np.where(chosen == 1, scales // 86, near)).astype(np.uint8)
    ends = np.array(
        [0, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF], np.uint32
    )
    c = np.where(rng.integers(0, 3, count) == 0, rng.choice(ends, count), rng.integers(0, 1 << 31, count, np.uint32))
    c |= rng.integers(0, 2, count, np.uint32) << np.uint32(31)
    a[:16], b[:16], c[:16], scales[:, :16] = 1, 9, 1 << 31, 0  # all terms and C below zero, nothing left of them
    return Batch(a, b, c.astype(np.uint32), scales[0], scales[1])


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("form", ["ue4m3", "ue8m0"])
@pytest.mark.parametrize("underflow", ["positive", "signed"])
def test_groups_at_the_ends_of_their_range(
    build: str, form: str, underflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    tree = NVFP4.tree
    assert isinstance(tree, Fused)
    for bits, zero in ((35, -139), (24, -126), (36, -300)):
        terms = tuple(replace(term, fraction_bits=bits, zero_exponent=zero) for term in tree.terms)
        changed = replace(tree, terms=terms, to=replace(tree.to, underflow=underflow))
        path = replace(NVFP4, tree=changed, scale=Scale(form, 16, "group"))
        assert kernel(path) == GROUPED
        vectors = groups_at_the_ends(path, 6000)
        assert (run_groups(path, vectors) == stages.evaluate(path, vectors).reshape(-1)).all(), f"{bits} {zero}"


def test_exact_sums_whose_terms_cancel() -> None:
    """Products and C near each other and each other's errors, down to what is left last."""
    rng = np.random.default_rng(8)
    for name in ("CDNA1 f16", "CDNA1 bf16"):
        path = CASES[name]
        vectors = batch(path, "clustered", 7, 40_000)
        a, b = vectors.a.copy(), vectors.b.copy()
        half = path.step_length // 2
        for first in range(0, path.k, path.step_length):
            a[:, first + half : first + 2 * half] = a[:, first : first + half] ^ 0x8000
            b[:, first + half : first + 2 * half] = b[:, first : first + half] ^ rng.integers(
                0, 2, (40_000, half), "u2"
            )
        exact = stages.evaluate(path, replace(vectors, a=a, b=b, c=np.zeros_like(vectors.c)))
        c = exact ^ np.uint32(1 << 31) ^ rng.integers(0, 3, exact.shape, np.uint32)
        for addend in (c, c - (rng.integers(0, 60, c.shape, np.uint32) << 23), np.full_like(c, 1 << 31)):
            close = replace(vectors, a=a, b=b, c=addend)
            assert (run_groups(path, close) == stages.evaluate(path, close)).all(), name


@pytest.mark.sampled(12)
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", RDNA)
def test_short_sums_at_the_ends_of_their_range(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are subnormal, flushed, rounded up to the least normal number, infinite, or signed zeros."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = CASES[name]
    for exponent in (-150, -127, -125, -24, -14, 0, 15, 126):
        vectors = near(path, exponent, 3000)
        groups = run_groups(path, vectors)
        if groups is None:
            assert (path.d, build) == ("f16", "baseline")
            return
        assert (groups == stages.evaluate(path, vectors)).all(), exponent


FINITE = {"e4m3": 0x7E, "e5m2": 0x7B, "e3m4ieee": 0x6F}
"""The largest finite codes."""


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(("a", "b"), [("e4m3", "e5m2"), ("e3m4ieee", "e4m3")])
def test_four_finite_bytes(a: str, b: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing special but C, in whole groups and the rest of one; then one special item in a group of the middle."""
    monkeypatch.setenv("MMAPROBE_ISA", build)
    path = replace(CASES["RDNA4 four"], a=a, b=b)
    a_most, b_most = FINITE[a], FINITE[b]
    for exponent in (-127, -24, -6, 3, 30):
        vectors = near(path, exponent, 2005)
        codes = [
            np.where(x & 0x7F > most, x & 0x80, x).astype("u1")
            for x, most in ((vectors.a, a_most), (vectors.b, b_most))
        ]
        finite = replace(vectors, a=codes[0], b=codes[1])
        assert (run_groups(path, finite) == stages.evaluate(path, finite)).all(), exponent
        finite.a[700, 2] = 0x7F
        assert (run_groups(path, finite) == stages.evaluate(path, finite)).all(), exponent


def test_a_short_sum_takes_its_lanes_in_order() -> None:
    """Orders of steps differ in what they round away; so do operands that are flushed in another way."""
    path = CASES["RDNA4 f16"]
    rng = np.random.default_rng(5)
    vectors = batch(path, "clustered", 9, 4000)
    ascending = run_groups(replace(path, order=None), vectors)
    for some in (None, tuple(map(int, rng.permutation(path.k))), path.order):
        other = replace(path, order=some, operand_a=Operand("zero"), operand_c=Operand("zero"))
        assert kernel(other) == SHORT_SUMS
        found = run_groups(other, vectors)
        assert (found == stages.evaluate(other, vectors)).all(), some
        assert found is not None
        assert some is None or (found != ascending).any()
