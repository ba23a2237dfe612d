"""The operand of random bits: one integer a result, uniform, in half of the vectors none, all, or all but one alike."""

from __future__ import annotations

import numpy as np

from mmaprobe.formats import Format
from mmaprobe.generators import philox
from mmaprobe.generators.operands import pick
from mmaprobe.operands.batch import Bits


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
