"""Sums a little below or above a result, where few bits below the last place, and few random ones, decide.

A term 2**e or near it, and one of the other sign, or the same, so far below the last places of results of some
precisions: what is left of e below the last place is all ones, or all zeros, down to one bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, powers, split, unit
from mmaprobe.generators.random_bits import with_random_bits
from mmaprobe.operands.batch import Batch, Bits

Mask = NDArray[np.bool_]
ABOVE = 3
"""Places above the last one at which the small term lies at most."""


def near_carries(instruction: Instruction, precisions: Sequence[int], depth: int, seed: int, count: int) -> Batch:
    """``count`` vectors (floats only) of two terms: the small one is up to ``depth`` places below the last place that
    results of these fraction bits have, or ``ABOVE`` above it."""
    rng = np.random.default_rng([seed, 0xCA2217])
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    places = instruction.k + (instruction.c is not None)
    first = rng.integers(0, places, count)
    second = (first + rng.integers(1, max(places, 2), count)) % places
    lowest = max(a.min_exponent + b.min_exponent, d.min_exponent - 2)
    highest = min(a.max_exponent + b.max_exponent, d.max_exponent) - 1
    high = rng.integers(lowest, max(highest, lowest) + 1, count)
    apart = rng.choice(np.array(precisions), count) + rng.integers(-ABOVE, depth + 1, count)
    operands = {name: np.zeros((count, instruction.k), fmt.dtype) for name, fmt in (("a", a), ("b", b))}
    if instruction.c is not None:
        operands["c"] = np.zeros(count, formats.get(instruction.c).dtype)
    if instruction.scale is not None:
        blocks = (count, instruction.k // instruction.scale_size)
        operands |= {name: np.full(blocks, unit(instruction.scale)) for name in ("scale_a", "scale_b")}
    negative = rng.integers(0, 2, count) == 0
    signs = ((second, high - apart, negative ^ (rng.integers(0, 3, count) > 0)), (first, high, negative))
    for place, exponent, sign in signs:
        _put(rng, instruction, operands, place, exponent, sign)
    return with_random_bits(instruction, Batch(**operands), seed)


def _put(
    rng: np.random.Generator, instruction: Instruction, operands: dict[str, Bits], place: Ints, exponent: Ints,
    negative: Mask,
) -> None:  # fmt: skip
    """A term with this exponent and sign in each vector: a product of a lane, or c; half of them powers of two."""
    a, b = formats.get(instruction.a), formats.get(instruction.b)
    plain = rng.integers(0, 2, len(place)) == 0
    parts = zip((("a", a, negative), ("b", b, np.zeros_like(negative))), split(rng, exponent, a, b), strict=True)
    rows = np.flatnonzero(place < instruction.k)
    for (name, fmt, sign), e in parts:
        operands[name][rows, place[rows]] = _of_sign(fmt, code(rng, fmt, e), sign, plain)[rows]
    if instruction.c is not None:
        c, rows = formats.get(instruction.c), np.flatnonzero(place == instruction.k)
        operands["c"][rows] = _of_sign(c, code(rng, c, exponent), negative, plain)[rows]


def _of_sign(fmt: formats.Format, codes: Bits, negative: Mask, plain: Mask) -> Bits:
    size = np.where(plain, powers(fmt, codes), codes) & fmt.dtype.type(fmt.code_limit - 1 - fmt.sign_mask)
    found: Bits = np.where(negative, size | fmt.dtype.type(fmt.sign_mask), size).astype(fmt.dtype)
    return found
