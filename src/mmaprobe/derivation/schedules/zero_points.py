"""Zero points of products of integers, and what is added to their sums, as one changed lane or operand shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.formats import Format, integer_range, whole_codes, whole_numbers
from mmaprobe.operands.batch import Bits
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.integer_values import Whole, Zeros

Shape = tuple[int, int, int]


def shortest(values: NDArray[Any]) -> NDArray[Any]:
    """One number where every column has the same, else all."""
    return values[:1] if (values == values[:1]).all() else values


def words_of(values: Whole) -> tuple[str, ...]:
    """How whole numbers are written in a schedule."""
    return tuple(str(each) for each in shortest(values).tolist())


def read_zero_points(calls: ProductCalls, shape: Shape) -> tuple[Zeros, Whole] | None:
    """Those of A and B where D is the sum: by what a 1 on one lane of the other operand takes off zeros.  What D of
    zeros is beside K products of them is added to the sum; of B and of that one number, or one for each column."""
    units = _units(calls, shape)
    if any((each != each[:1]).any() for each in units):
        return None
    none, in_a, in_b = (whole_numbers(calls.d, each)[0] for each in units)
    zero_a, zero_b = _in_range(none - in_b, calls.a, calls.d.bits), _in_range(none - in_a, calls.b, calls.d.bits)
    if zero_a is None or zero_b is None or len(zero_a) > 1:
        return None
    added = none - shape[2] * zero_a * zero_b
    return (int(zero_a[0]), zero_b), shortest(whole_numbers(calls.d, whole_codes(calls.d, added)))


def _in_range(values: Whole, fmt: Format, bits: int) -> Whole | None:
    """Numbers that are known up to 2^bits as ones of a format; None where one is none of it."""
    low, high = integer_range(fmt)
    found = (values - low & (1 << bits) - 1) + low if bits < 64 else values
    return shortest(found) if ((found >= low) & (found <= high)).all() else None


def read_f32_zero_points(calls: ProductCalls, shape: Shape) -> Zeros | None:
    """The same where D is the sum times a scale, which a 1 on one lane of both operands shows."""
    try:
        d = [each[0].view(np.float32).astype(np.float64) for each in _units(calls, shape, both=True)]
    except UsageError:
        return None
    none, in_a, in_b, both = d
    scale = both - in_a - in_b + none
    if not (np.isfinite(scale) & (scale > 0)).all():
        return None
    sides = [np.rint((none - each) / scale) for each in (in_b, in_a)]
    inside = all(
        low <= each.min() and each.max() <= high
        for each, (low, high) in zip(sides, map(integer_range, (calls.a, calls.b)), strict=True)
    )
    zero_a, zero_b = (shortest(each.astype(np.int64)) for each in sides)
    return (int(zero_a[0]), zero_b) if inside and len(zero_a) == 1 else None


def _units(calls: ProductCalls, shape: Shape, both: bool = False) -> list[Bits]:
    """D of zeros, of a 1 on the first lane of A, of one of B, and (``both``) of both."""
    m, n, k = shape
    found = []
    for x, y in ((0, 0), (1, 0), (0, 1), (1, 1))[: 4 if both else 3]:
        a, b = np.zeros((m, k), np.int64), np.zeros((k, n), np.int64)
        a[:, 0], b[0] = x, y
        found.append(calls.ask(whole_codes(calls.a, a), whole_codes(calls.b, b)))
    return found


def flat_zero_points(calls: ProductCalls, shape: Shape) -> Zeros | None:
    """Those of A and B where D has few bits: the number, in all lanes, beside which the other operand does nothing."""
    found = []
    for of_a in (True, False):
        flat = _flat_numbers(calls, shape, of_a)
        low, high = integer_range(calls.a if of_a else calls.b)
        if not flat or len(flat) == high - low + 1:
            return None
        edge = flat[-1] if flat[0] == low else flat[0] if flat[-1] == high else 0 if 0 in flat else flat[0]
        found.append(flat[0] if len(flat) == 1 else edge)
    return found[0], np.array(found[1:])


def _flat_numbers(calls: ProductCalls, shape: Shape, of_a: bool) -> Sequence[int]:
    """The numbers of A, or of B, beside which D is the same whether the other operand is as small or as large as it
    can be."""
    m, n, k = shape
    own, other, length = (calls.a, calls.b, m) if of_a else (calls.b, calls.a, n)
    low, high = integer_range(own)
    flat = set[int]()
    for start in range(low, high + 1, length):
        values = np.minimum(np.arange(start, start + length), high)
        if of_a:
            a = whole_codes(own, np.broadcast_to(values[:, None], (length, k)))
            d = [calls.ask(a, whole_codes(other, np.full((k, n), far))) for far in integer_range(other)]
            same = (d[0] == d[1]).all(1)
        else:
            far = np.resize(integer_range(other), max(m, 2))
            b = whole_codes(own, np.broadcast_to(values[None], (k, length)))
            both = calls.ask(whole_codes(other, np.broadcast_to(far[:, None], (len(far), k))), b)
            same = (both == both[:1]).all(0)
        flat |= set(values[same].tolist())
    return sorted(flat)
