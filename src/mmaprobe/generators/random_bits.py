"""The operand of random bits: one integer a result, uniform, in half of the vectors none, all, or all but one alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format
from mmaprobe.generators import philox
from mmaprobe.generators.operands import pick
from mmaprobe.operands.batch import Batch, Bits

OTHERS = 0xFFFF
"""The stream of those of vectors that no family made; no answer depends on it."""


def random_bits(fmt: Format, seed: int, stream: int, start: int, count: int) -> Bits:
    """r (n,) of vectors ``start`` to ``start + count - 1``, by four words of the block ``philox.RANDOM`` of each.

    Of the second word modulo 8: 0, no bit; 1, all bits; 2, one bit; 3, all but one, number floor(third * w / 2**32) of
    the w; else the first w bits of the first word.
    """
    index = np.arange(count, dtype=np.uint64) + np.uint64(start)
    word, kind, place, _ = (each.astype(np.int64) for each in philox.draw(seed, stream, index, philox.RANDOM, 0))
    every = fmt.code_limit - 1
    one = np.int64(1) << pick(place, fmt.bits)
    corners = [np.zeros_like(one), np.full_like(one, every), one, every - one]
    bits: Bits = np.choose(np.minimum(kind & 7, 4), [*corners, word >> (32 - fmt.bits)]).astype(fmt.dtype)
    return bits


def with_random_bits(instruction: Instruction, vectors: Batch, seed: int) -> Batch:
    """Vectors that were made without, with the random bits that the instruction takes; as they are where it takes
    none."""
    if instruction.random is None:
        return vectors
    bits = random_bits(formats.get(instruction.random), seed, OTHERS, 0, vectors.size)
    return replace(vectors, random=bits)
