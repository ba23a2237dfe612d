"""Pairs of lanes, each asked in a row and a column of its own, of operands whose exponents reach less far than M.

FP8 has no number that is a unit beside one lane's M and M beside another's unit.  But the product of two of its
largest numbers lies 2^34 (e4m3) above that of two of its smallest.  So row i has large numbers at lanes p_i and q_i,
the second one negative, and column i has such at both; all else is small: D[i, i] adds +M at p_i, -M at q_i, and units.
What other elements of D are says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.probing.gemm.calls import Floats, ProductCalls
from mmaprobe.probing.gemm.sizes import ENOUGH, WIDE, Lanes, countable, least_exponent

FEWEST = 8
"""Lanes that a call must count at least."""


@dataclass(frozen=True)
class PairedRoom:
    """Exponents of the large and small numbers of A and B, and how many units at most are counted at a time."""

    large_a: int
    large_b: int
    small_a: int
    small_b: int
    lanes: int

    @property
    def unit(self) -> int:
        """Exponent of a unit."""
        return self.small_a + self.small_b


def paired_room(calls: ProductCalls) -> PairedRoom:
    """The exponents; UsageError naming what leaves too little room: A and B, or D."""
    large_a, large_b = calls.a.max_exponent, calls.b.max_exponent
    large_a, large_b = (min(each, (calls.d.max_exponent - 1) // 2) for each in (large_a, large_b))
    small_a, small_b = least_exponent(calls.a), least_exponent(calls.b)
    while small_a + small_b < least_exponent(calls.d):
        small_a, small_b = (small_a + 1, small_b) if small_a <= small_b else (small_a, small_b + 1)
    bits = large_a + large_b - small_a - small_b - _beside(calls)
    lanes = min((1 << max(bits, 0)) - 1, countable(calls.d))
    if lanes < FEWEST:
        of_operands = calls.a.max_exponent + calls.b.max_exponent - least_exponent(calls.a) - least_exponent(calls.b)
        fault = f"{calls.a.name} and {calls.b.name}" if of_operands - _beside(calls) < FEWEST.bit_length() else ""
        raise UsageError(
            f"{calls.product.name}: {fault or f'D of {calls.d.name}'} leaves no room for a number beside which units "
            "vanish and for units that are counted; ask a product with a wider result"
        )
    return PairedRoom(large_a, large_b, small_a, small_b, lanes)


def _beside(calls: ProductCalls) -> int:
    """Powers of two that M lies above a unit at least, but for what their number needs."""
    return max(calls.d.fraction_bits, formats.get(WIDE).fraction_bits) + 1 + ENOUGH


def paired_masks(p: Lanes, q: Lanes, live: NDArray[np.bool_], room: PairedRoom) -> tuple[Floats, Floats]:
    """Rows of A and columns of B (pairs, K): +M at p and -M at q of each, units on the other live lanes, (pairs, K)."""
    rows: Floats = np.ldexp(live.astype(float), room.small_a)
    columns: Floats = np.full(live.shape, np.ldexp(1.0, room.small_b))
    at = np.arange(len(p))
    rows[at, p], rows[at, q] = np.ldexp(1.0, room.large_a), -np.ldexp(1.0, room.large_a)
    columns[at, p] = columns[at, q] = np.ldexp(1.0, room.large_b)
    return rows, columns
