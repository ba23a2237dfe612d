"""The engine's integer kernel against the NumPy stages: every operand pair, wrapping and saturating, at the limits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.models import engine, stages
from mmaprobe.models.kernels import INTEGER_SATURATES, INTEGER_WRAPS, INTERPRETER, kernel
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Products

PAIRS = [("s8", "s8"), ("s8", "u8"), ("u8", "s8"), ("u8", "u8"), ("s16", "s16")]
EDGES = np.array([0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 0x80000100, 0], np.uint32)


def datapath(a: str, b: str, d: str, c: str | None, k: int, overflow: str, step: int = 0) -> Datapath:
    terms = (*((Accumulator(),) if c else ()), Products(tuple(range(step or k))))
    return Datapath(a, b, c, d, k, Exact(terms, Encode(d, overflow=overflow)), step=step)  # type: ignore[arg-type]


def codes(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Bits:
    fmt = formats.get(name)
    found: NDArray[np.unsignedinteger] = rng.integers(0, fmt.code_limit, shape).astype(fmt.dtype)  # type: ignore[type-arg]
    found[::3] = fmt.largest
    found[1::6] = fmt.sign_mask
    return found


@pytest.mark.parametrize("overflow", ["wrap", "largest"])
@pytest.mark.parametrize("k", [1, 2, 4, 7, 64])
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
    narrow = datapath("s4", "s4", "s32", "s32", 4, "wrap")
    assert kernel(saturating_steps) == kernel(narrow) == INTERPRETER
    rng = np.random.default_rng(9)
    vectors = Batch(a=codes(rng, "s8", (500, 4)), b=codes(rng, "s8", (500, 4)), c=rng.choice(EDGES, 500))
    assert (engine.evaluate(saturating_steps, vectors) == stages.evaluate(saturating_steps, vectors)).all()
