"""In which order elements of D add K, M x N questions a call: where do the products of two lanes meet?

A is 2^lo but for one +M / 2^lo_b in row i, at lane p_i, and B is 2^lo_b but for one -M / 2^lo in column j, at lane q_j.
So D[i, j] adds K - 2 units of 2^(lo + lo_b), one +M at p_i and one -M at q_j.  What is added to either before the two
have met is lost, for M is so large that a unit beside it is nothing; so

    K - D[i, j] / unit = size(p_i, q_j),

the number of products in the smallest partial sum that holds both lanes, the two among them.  Where p_i is q_j the
element says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import Floats, ProductCalls

Lanes = NDArray[np.intp]
Sizes = NDArray[np.int64]
UNREAD = -1
"""The size of a pair of which an element says nothing, or something that is no size."""
ENOUGH = 2
"""Powers of two that M lies above what would still be seen beside it: one for the tie, one for the doubt."""


@dataclass(frozen=True)
class Room:
    """Exponents: a unit is 2^a in A times 2^b in B; M is 2^(a + b + span)."""

    a: int
    b: int
    span: int


def window(calls: ProductCalls, k: int) -> Room:
    """The exponents for so many lanes; UsageError where the formats leave too little room, or D cannot count to K."""
    name, lanes = calls.product.name, max(k, 2)
    if lanes > 1 << (calls.d.fraction_bits + 1):
        raise UsageError(
            f"{name}: D of {calls.d.name} cannot count to K = {k}; ask at K up to {1 << (calls.d.fraction_bits + 1)}, "
            "or for a wider result"
        )
    needed = calls.d.fraction_bits + 1 + lanes.bit_length() + ENOUGH
    span = min(_room(calls.a), _room(calls.b), calls.d.max_exponent - calls.d.min_exponent - 1, 2 * needed)
    if span < needed:
        raise UsageError(f"{name}: {calls.a.name} and {calls.b.name} leave no room for K = {k}; ask at a smaller K")
    a, b = (max(_least(fmt), -span // 2) for fmt in (calls.a, calls.b))
    unit = max(a + b, calls.d.min_exponent)
    return Room(a, b + unit - (a + b), span)


def _least(fmt: Format) -> int:
    """The exponent of the smallest number above 0."""
    return fmt.min_exponent - fmt.fraction_bits


def _room(fmt: Format) -> int:
    return fmt.max_exponent - _least(fmt)


def read_sizes(calls: ProductCalls, k: int, p: Lanes, q: Lanes) -> Sizes:
    """size(p_i, q_j) of every element (M, N) of one call; ``UNREAD`` where p_i is q_j or the answer is no size."""
    exponents = window(calls, k)
    d = calls.values(calls.ask(*masks(calls, k, p, q, exponents)))
    with np.errstate(all="ignore"):
        kept = np.ldexp(d, -(exponents.a + exponents.b))
    read = (kept >= 0) & (kept <= k - 2) & (kept == np.floor(kept)) & (p[:, None] != q[None, :])
    return np.where(read, k - np.where(read, kept, 0), UNREAD).astype(np.int64)


def masks(calls: ProductCalls, k: int, p: Lanes, q: Lanes, exponents: Room) -> tuple[Bits, Bits]:
    """A and B of units, with +M in row i at lane p_i and -M in column j at lane q_j."""
    a: Floats = np.full((len(p), k), np.ldexp(1.0, exponents.a))
    b: Floats = np.full((k, len(q)), np.ldexp(1.0, exponents.b))
    a[np.arange(len(p)), p] = np.ldexp(1.0, exponents.a + exponents.span)
    b[q, np.arange(len(q))] = -np.ldexp(1.0, exponents.b + exponents.span)
    return calls.bits(a, calls.a), calls.bits(b, calls.b)
