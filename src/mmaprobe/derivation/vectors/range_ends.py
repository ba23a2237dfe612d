"""Vectors at the ends of one format's range: of a product, a sum or a result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, split
from mmaprobe.derivation.vectors.specials import ones
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits

Mask = NDArray[np.bool_]
ABOVE = 4
"""Binades above the ends that terms reach."""
DEEP = 64
"""Binades below the lowest values that some terms reach, where a zero exponent may cut them."""


def near_vectors(instruction: Instruction, fmt: Format, seed: int, count: int, top: bool) -> Batch:
    """Up to four terms (products, c) near the lowest values of a format, or the largest ones; the others are zeros of
    any sign, or tiny too.  Terms of a vector have one sign in a third of them."""
    rng = np.random.default_rng([seed, 0xE46E, top])
    k, has_c = instruction.k, instruction.c is not None
    shape = (count, k + has_c)
    if top:
        exponents = fmt.max_exponent - rng.integers(-1, ABOVE + (1 << rng.integers(0, 4)), shape)
    else:
        exponents = fmt.min_exponent - fmt.fraction_bits * rng.integers(0, 2, shape) + rng.integers(-3, ABOVE, shape)
        exponents -= rng.integers(0, fmt.fraction_bits + 2, shape) * (rng.random(shape) < 0.5)
        exponents -= rng.integers(0, DEEP, shape) * (rng.random(shape) < rng.choice([0.0, 0.5], (count, 1)))
    few = rng.integers(0, 5, (count, 1))
    live = (rng.permuted(np.tile(np.arange(k + has_c), (count, 1)), axis=1) < few) | (rng.random((count, 1)) < 0.15)
    alike = rng.integers(0, 3, (count, 1))
    negative = np.where(alike == 0, rng.integers(0, 2, (count, 1)), rng.integers(0, 2, shape)).astype(bool)
    vectors = ones(instruction, count)
    wanted = exponents[:, :k]
    if instruction.scale is not None:
        wanted = wanted - _scales(rng, instruction, vectors, exponents)
    a, b = formats.get(instruction.a), formats.get(instruction.b)
    e_a, e_b = split(rng, wanted, a, b)
    plain = rng.random(shape) < 0.4
    other = rng.random((count, k)) < rng.choice([0.0, 0.5, 1.0], (count, 1))
    for name, own, e, sign in (("a", a, e_a, negative[:, :k] ^ other), ("b", b, e_b, other)):
        getattr(vectors, name)[:] = _codes(rng, own, e, sign, live[:, :k], plain[:, :k])
    if instruction.c is not None and vectors.c is not None:
        c = formats.get(instruction.c)
        vectors.c[:] = _codes(rng, c, exponents[:, k], negative[:, k], live[:, k], plain[:, k])
    return vectors


def _scales(rng: np.random.Generator, instruction: Instruction, vectors: Batch, exponents: Ints) -> Ints:
    """Scales that take products of middling exponents where these are wanted, in place; their exponents by lane."""
    assert instruction.scale is not None
    scale = formats.get(instruction.scale)
    blocks = instruction.k // instruction.scale_size
    total = exponents[:, : instruction.k : instruction.scale_size]
    total = total + rng.integers(-3, 4, total.shape)
    e_a, e_b = split(rng, total, scale, scale)
    e_a, e_b = (np.clip(e, scale.min_exponent, scale.max_exponent) for e in (e_a, e_b))
    for name, e in (("scale_a", e_a), ("scale_b", e_b)):
        getattr(vectors, name)[:] = code(rng, scale, e).reshape(len(total), blocks)
    return np.repeat(e_a + e_b, instruction.scale_size, axis=1)


def _codes(rng: np.random.Generator, fmt: Format, exponents: Ints, negative: Mask, live: Mask, plain: Mask) -> Bits:
    """Codes with these exponents, subnormal where they are below the lowest normal; zeros of either sign elsewhere."""
    found = code(rng, fmt, exponents)
    body = fmt.dtype.type(fmt.code_limit - 1 - fmt.sign_mask)
    low = fmt.dtype.type(fmt.padding + fmt.fraction_bits)
    found = np.where(plain, (found & body) >> low << low, found & body)
    if fmt.subnormal and fmt.fraction_bits:
        place = np.clip(exponents - fmt.min_exponent + fmt.fraction_bits, 0, fmt.fraction_bits - 1)
        tiny = (np.int64(1) << place) << fmt.padding
        found = np.where(exponents < fmt.min_exponent, tiny.astype(fmt.dtype), found)
    found = np.where(live, found, 0)
    sign = fmt.sign_mask if fmt.has_sign_bit else 0
    flips = np.where(fmt.nan == "negative_zero", negative & (found != 0), negative)
    signed: Bits = np.where(flips, found | fmt.dtype.type(sign or fmt.sign_mask), found).astype(fmt.dtype)
    return signed
