"""Operand codes from exponents, signs and kinds of fractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.operands.batch import Bits

Ints = NDArray[np.int64]

ONE, NEXT, FULL, HALF, ANY, FEW, TIE = range(7)
"""Fractions: none, the last bit, all bits, the first bit, random, one or two powers of two added or taken away, half of
a last place after so many bits, random ones or all ones."""
KINDS = 7
"""Kinds of fractions, those of ``codes_of``."""
ABSENT = -(1 << 40)
"""The exponent of a zero: far below that of every value."""


def codes_of(
    rng: np.random.Generator, fmt: formats.Format, exponent: Ints, negative: Any, kind: Any, cuts: Sequence[int] = ()
) -> Bits:
    """Codes of this exponent, sign and kind of fraction; subnormal below the lowest normal, zero for ABSENT.  ``cuts``:
    after how many bits there are ties."""
    bits = fmt.fraction_bits
    ones = (1 << bits) - 1
    kinds = np.where(exponent == ABSENT, ONE, kind)
    fraction = np.array([0, min(1, ones), ones, (ones + 1) >> 1, 0, 0, 0], np.int64)[kinds]
    few, anything, tied = kinds == FEW, kinds == ANY, kinds == TIE
    fraction[tied] = _tied(rng, bits, int(tied.sum()), cuts)
    fraction[few] = _few(rng, bits, int(few.sum()))
    fraction[anything] = rng.integers(0, ones + 1, int(anything.sum()))
    under = np.clip(fmt.min_exponent - exponent, 0, bits + 1)
    field = np.clip(exponent, fmt.min_exponent, fmt.max_exponent) + fmt.bias
    top = exponent >= fmt.max_exponent
    normal = field << bits | np.where(top, np.minimum(fraction, fmt.max_fraction), fraction)
    code = np.where(under > 0, ((1 << bits) | fraction) >> under, normal) if fmt.subnormal else normal
    code = np.where(exponent == ABSENT, 0, code).astype(np.uint64) << np.uint64(fmt.padding)
    signed = negative & ((code != 0) | (fmt.nan != "negative_zero"))
    found: Bits = np.where(signed, code | np.uint64(fmt.sign_mask), code).astype(fmt.dtype)
    return found


def _tied(rng: np.random.Generator, bits: int, count: int, cuts: Sequence[int]) -> Ints:
    """Fractions of half of a last place after one of these numbers of bits or one less, or after any."""
    if not bits:
        return np.zeros(count, np.int64)
    short = [cut for cut in cuts if cut < bits] or list(range(bits))
    kept = np.asarray(short, np.int64)[rng.integers(0, len(short), count)]
    kept = np.maximum(kept - (rng.integers(0, 4, count) == 0), 0)  # one less: of a number below the lowest normal one
    ones = (np.int64(1) << kept) - 1
    above = np.where(rng.integers(0, 2, count) == 0, ones, rng.integers(0, 1 << 62, count) & ones)
    found: Ints = (2 * above + 1) << (bits - 1 - kept)
    return found


def _few(rng: np.random.Generator, bits: int, count: int) -> Ints:
    """Fractions of significands with three digits, one of them the first; a digit is a power of two of either sign."""
    total = np.zeros(count, np.int64)
    for _ in range(2):
        total += rng.integers(-1, 2, count) << rng.integers(0, max(bits, 1), count)
    return total % (1 << bits)
