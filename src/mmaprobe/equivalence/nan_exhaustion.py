"""An argument by exhaustion: NaN rules that give the same answer for every kind of every operand.

Which NaN comes out depends on the kind of each operand alone: zero, finite, an infinity of either sign, a quiet or
a signalling NaN of its own payload.  A sum that overflows inside is what an infinite operand in its place would
make of it.  Where there are few operands, every choice of kinds is evaluated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath

MOST = 20_000
"""Choices of operands that are evaluated at most: those of five operands."""
KINDS = 6
"""Kinds of an operand: zero, one, either infinity, a quiet and a signalling NaN."""


@lru_cache(maxsize=64)
def nan_rules_agree(old: Datapath, new: Datapath) -> bool:
    """Whether two datapaths differ in their NaN rules alone and give the same answer to every choice of kinds."""
    if old == new or replace(old, special=new.special) != new or old.scale is not None:
        return False
    if "cause" in (old.special.nan, new.special.nan):  # an infinity made in a sum is none among the products
        return False
    names = [old.a] * old.k + [old.b] * old.k + ([old.c] if old.c else [])
    of = [formats.get(name) for name in names]
    masked = any(operand.mask is not None for operand in (old.operand_a, old.operand_b, old.operand_c))
    if KINDS ** len(names) > MOST or masked or not all(_payloads(fmt, len(names)) for fmt in (*of, formats.get(old.d))):
        return False
    choices = np.indices((KINDS,) * len(names)).reshape(len(names), -1)
    codes = [_codes(fmt, i, len(names))[choices[i]] for i, fmt in enumerate(of)]
    k = old.k
    operands = {"a": np.stack(codes[:k], axis=1), "b": np.stack(codes[k : 2 * k], axis=1)}
    if old.c:
        operands["c"] = codes[-1]
    if old.random:
        operands["random"] = np.zeros(choices.shape[1], formats.get(old.random).dtype)  # of exact sums any are alike
    answers = evaluate_many([old, new], Batch(**operands))
    return bool((answers[0] == answers[1]).all())


def _payloads(fmt: formats.Format, count: int) -> bool:
    """Whether so many operands can have payloads of their own in this format, which d keeps too: in the first bits."""
    return fmt.is_float and fmt.nan == "ieee" and count < 1 << (fmt.fraction_bits - 1)


def _codes(fmt: formats.Format, number: int, count: int) -> NDArray[np.unsignedinteger]:
    """One code of each kind; the NaNs of operand ``number`` of so many have its payload, and its parity for a sign."""
    infinity = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    own = (number + 1) << (fmt.fraction_bits - 1 - count.bit_length()) | (number & 1) << (fmt.bits - 1)
    quiet = infinity | 1 << (fmt.fraction_bits - 1) | own
    kinds = [0, fmt.bias << fmt.fraction_bits, infinity, infinity | 1 << (fmt.bits - 1), quiet, infinity | own]
    return (np.array(kinds, np.uint64) << np.uint64(fmt.padding)).astype(fmt.dtype)
