"""Large products of one sign: where products are so narrow that only sums of many are rounded at all."""

from __future__ import annotations

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import code, safe_vectors
from mmaprobe.operands.batch import Batch

FLIPPED = 32
"""One product in so many has the other sign: one of a vector with the usual K of narrow formats."""


def adds_up(instruction: Instruction) -> bool:
    """Whether every sum of few products is exact in the result's format, and sums of all of them need not be."""
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    top = a.max_exponent + b.max_exponent + 2
    bottom = a.min_exponent + b.min_exponent - a.fraction_bits - b.fraction_bits
    places = d.fraction_bits + 1
    return instruction.scale is None and top - bottom <= places < top - bottom + instruction.k.bit_length() - 1


def heavy_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Safe vectors in which most products are near the largest, of one sign, and the others lowest."""
    rng = np.random.default_rng([seed, 0x4EA7])
    operands = dict(safe_vectors(instruction, seed, count).items())
    shape = (count, instruction.k)
    low = rng.random(shape) < rng.choice([0.1, 0.3], (count, 1))
    signs = rng.integers(0, 2, (count, 1)) ^ (rng.integers(0, FLIPPED, shape) == 0)
    for name in ("a", "b"):
        fmt = formats.get(getattr(instruction, name))
        exponents = np.where(low, fmt.min_exponent, fmt.max_exponent)
        size = code(rng, fmt, exponents) & fmt.dtype.type(~fmt.sign_mask & (fmt.code_limit - 1))
        operands[name] = (size | (signs * fmt.sign_mask if name == "a" else 0)).astype(fmt.dtype)
    return Batch(**operands)
