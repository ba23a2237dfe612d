"""In which order the steps of an integer sum that saturates take the lanes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch, Bits

CODES = 1 << 16
"""Codes of a format, at most, whose values are looked through for the largest and the least, 1 and -1."""


def order_vectors(instruction: Instruction) -> Batch | None:
    """K vectors that tell the step of every lane: C the largest, lane i a product P of K or more, all others -1.

    In steps of s lanes, with i in step n (from 0): the sum before it is max - n s, and max - n s + P - (s - 1) is above
    max, since P >= K > n s + s - 1.  It saturates there, and max - (K/s - 1 - n) s comes out.  None where there is no C
    or there are no such products; then a sum that saturates does so whatever the order, or not at all.
    """
    factors = _factors(instruction)
    if instruction.c is None or factors is None:
        return None
    k, operands = instruction.k, {}
    for name, large, less in zip("ab", *factors, strict=True):
        operands[name] = np.full((k, k), less, formats.get(getattr(instruction, name)).dtype)
        np.fill_diagonal(operands[name], large)
    c = formats.get(instruction.c)
    return Batch(**operands, c=np.full(k, c.largest, c.dtype))


def order_told(answers: Bits) -> tuple[int, ...] | None:
    """The lanes by what comes out for each, which is less the earlier its step; None where all come out alike or as
    they lie."""
    order = tuple(np.argsort(answers.astype(np.int64), kind="stable").tolist())
    return None if order == tuple(range(len(order))) else order


def _factors(instruction: Instruction) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Codes of a and b whose product is the largest, and such that it is -1."""
    a, b = formats.get(instruction.a), formats.get(instruction.b)
    if a.is_float or b.is_float or max(a.code_limit, b.code_limit) > CODES:
        return None
    of_a, of_b = _telling(a), _telling(b)
    products = np.multiply.outer(_values(a)[of_a], _values(b)[of_b])
    less = np.argwhere(products == -1)
    large = np.unravel_index(np.argmax(products), products.shape)
    if not len(less) or products[large] < instruction.k:
        return None
    return (int(of_a[large[0]]), int(of_b[large[1]])), (int(of_a[less[0, 0]]), int(of_b[less[0, 1]]))


def _telling(fmt: formats.Format) -> NDArray[np.int64]:
    """The codes of the largest and the least value, and of 1 and -1 where there are these."""
    values = _values(fmt)
    ones = [int(np.flatnonzero(values == one)[0]) for one in (1, -1) if (values == one).any()]
    return np.array([int(values.argmax()), int(values.argmin()), *ones])


def _values(fmt: formats.Format) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The values of all codes."""
    decoded = formats.decode(fmt, np.arange(fmt.code_limit).astype(fmt.dtype))
    sizes = decoded.significand << np.maximum(decoded.exponent, 0)
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = np.where(decoded.negative, -sizes, sizes)
    return values
