"""The engine's integer kernel against the NumPy stages: every operand pair, wrapping and saturating, at the limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native, formats
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import INTEGER_SATURATES, INTEGER_WRAPS, INTERPRETER, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Product, Products

PAIRS = [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8"), ("s4", "s4"), ("s4", "u4"), ("u4", "s4"), ("u4", "u4"),
         ("s16", "s16")]  # fmt: skip
EDGES = np.array([0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 0x80000100, 0], np.uint32)


def datapath(a: str, b: str, d: str, c: str | None, k: int, overflow: str, step: int = 0) -> Datapath:
    terms = (*((Accumulator(),) if c else ()), Products(tuple(range(step or k))))
    return Datapath(a, b, c, d, k, Exact(terms, Encode(d, overflow=overflow)), step=step)  # type: ignore[arg-type]


def codes(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Bits:
    fmt = formats.get(name)
    found: NDArray[np.unsignedinteger] = rng.integers(0, 1 << fmt.container_bits, shape).astype(fmt.dtype)  # type: ignore[type-arg]
    found[::3] = fmt.largest
    found[1::6] = fmt.sign_mask
    return found


@pytest.mark.parametrize("overflow", ["wrap", "largest"])
@pytest.mark.parametrize("k", [1, 2, 4, 7, 16, 64])
@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("c", ["s32", None])
def test_the_kernel_is_the_exact_sum(a: str, b: str, c: str | None, k: int, overflow: str) -> None:
    rng = np.random.default_rng(k)
    path = datapath(a, b, "s32", c, k, overflow)
    assert kernel(path) == (INTEGER_WRAPS if overflow == "wrap" else INTEGER_SATURATES)
    addend = None if c is None else rng.choice(EDGES, 500)
    vectors = Batch(a=codes(rng, a, (500, k)), b=codes(rng, b, (500, k)), c=addend)
    assert (engine.evaluate(path, vectors) == stages.evaluate(path, vectors)).all()


@pytest.mark.parametrize("overflow", ["wrap", "largest"])
def test_sixteen_bit_results(overflow: str) -> None:
    rng = np.random.default_rng(5)
    path = datapath("u8", "s8", "s16", None, 2, overflow)
    vectors = Batch(a=codes(rng, "u8", (2000, 2)), b=codes(rng, "s8", (2000, 2)))
    assert kernel(path) != INTERPRETER
    assert (engine.evaluate(path, vectors) == stages.evaluate(path, vectors)).all()


def test_what_the_kernel_cannot_do_is_interpreted() -> None:
    saturating_steps = datapath("s8", "s8", "s32", "s32", 4, "largest", step=1)
    mixed = datapath("s4", "s8", "s32", "s32", 4, "wrap")
    sixteen = datapath("u16", "u16", "s32", "s32", 4, "wrap")
    assert kernel(saturating_steps) == kernel(mixed) == INTERPRETER
    both = Batch(a=codes(np.random.default_rng(1), "u16", (99, 4)), b=codes(np.random.default_rng(2), "u16", (99, 4)),
                 c=np.resize(EDGES, 99))  # fmt: skip
    assert (engine.evaluate(sixteen, both) == stages.evaluate(sixteen, both)).all()
    rng = np.random.default_rng(9)
    vectors = Batch(a=codes(rng, "s8", (500, 4)), b=codes(rng, "s8", (500, 4)), c=rng.choice(EDGES, 500))
    assert (engine.evaluate(saturating_steps, vectors) == stages.evaluate(saturating_steps, vectors)).all()


@pytest.mark.parametrize("overflow", ["wrap", "largest"])
@pytest.mark.parametrize("way", ["and", "xor"])
@pytest.mark.parametrize("k", [5, 64, 128, 256])
def test_bits_are_counted(way: str, k: int, overflow: str) -> None:
    rng = np.random.default_rng(k)
    path = replace(datapath("b1", "b1", "s32", "s32", k, overflow), product=Product(multiply=way))  # type: ignore[arg-type]
    assert kernel(path) != INTERPRETER
    vectors = Batch(a=codes(rng, "b1", (300, k)), b=codes(rng, "b1", (300, k)), c=rng.choice(EDGES, 300))
    got = engine.evaluate(path, vectors)
    assert (got == stages.evaluate(path, vectors)).all()
    both = vectors.a & vectors.b & 1 if way == "and" else (vectors.a ^ vectors.b) & 1
    assert vectors.c is not None
    exact = both.sum(axis=1, dtype=np.int64) + vectors.c.view(np.int32)
    exact = exact.clip(-(1 << 31), (1 << 31) - 1) if overflow == "largest" else exact
    assert (got == exact.astype(np.uint32)).all()


@pytest.mark.parametrize("build", _native.engine_builds())
@pytest.mark.parametrize("k", [1, 5, 16, 64, 256])
@pytest.mark.parametrize("overflow", ["wrap", "largest"])
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[0] != "s16"] + [("b1", "and"), ("b1", "xor")])
def test_tiles_and_groups_are_the_stages(
    pair: tuple[str, str], overflow: str, k: int, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    rng = np.random.default_rng(k)
    bits = pair[0] == "b1"
    path = datapath(pair[0], pair[0] if bits else pair[1], "s32", "s32", k, overflow)
    path = replace(path, product=Product(multiply=pair[1])) if bits else path  # type: ignore[arg-type]
    m, n = (64, 6) if k == 16 else (8, 3)
    count = 2 * m * n
    vectors = Batch(codes(rng, path.a, (count, k)), codes(rng, path.b, (count, k)), rng.choice(EDGES, count))
    groups = run_groups(path, vectors)
    assert groups is not None
    assert (groups == stages.evaluate(path, vectors)).all()
    tiles = tiles_of(vectors, m, n)
    computed = run_tiles(path, tiles)
    assert computed is not None
    assert (computed == evaluate_tiles(lambda part: stages.evaluate(path, part), tiles)).all()


def test_layouts_without_c_and_of_wide_operands() -> None:
    rng = np.random.default_rng(4)
    alone = datapath("u8", "s8", "s32", None, 32, "wrap")
    vectors = Batch(codes(rng, "u8", (40, 32)), codes(rng, "s8", (40, 32)))
    groups = run_groups(alone, vectors)
    assert groups is not None
    assert (groups == stages.evaluate(alone, vectors)).all()
    for path in (datapath("s16", "s16", "s32", None, 4, "wrap"), datapath("u8", "s8", "s16", None, 2, "largest")):
        batch = Batch(codes(rng, path.a, (40, path.k)), codes(rng, path.b, (40, path.k)))
        assert run_groups(path, batch) is None
