"""A long sum as a program: its tree and what each step does, run on random vectors and held against the device.

Every step is computed exactly and rounded once, to nearest even: additions in
f64 with their error (two-sum), products with theirs (two-product after Dekker),
both rounded to odd before they are rounded to fewer bits; a fused multiply-add
of f64 after Boldo and Melquiond (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.operands.edge import held_as
from mmaprobe.probing.long_sums.masked_calls import ITEMS, MaskedCalls
from mmaprobe.probing.long_sums.steps import Arithmetic
from mmaprobe.probing.long_sums.tree_arrays import TreeArrays

Floats = NDArray[np.float64]

DOUBLE = 53
"""Bits of a binary64 significand."""
SPLITTER = float((1 << 27) + 1)
"""Splits a binary64 significand in halves (Dekker, 1971)."""


def confirm(calls: MaskedCalls, tree: TreeArrays, steps: Arithmetic, count: int) -> int | None:
    """On how many of ``count`` normally distributed random vectors the program gives the device's bits.

    None where a step is not known, or is one that this program does not compute
    (a fused node, sums wider than f64, two unrounded f64 products).
    """
    held = all(held_as(fmt) is not None for fmt in calls.formats.values())
    if not (held and steps.complete) or tree.unknown or any(len(children) > 2 for children in tree.nodes):
        return None
    rng = np.random.default_rng(calls.random.getrandbits(64))
    per = max(64, ITEMS // calls.instruction.k)
    counts = [_equal(calls, tree, steps, min(per, count - start), rng) for start in range(0, count, per)]
    return None if None in counts else sum(n for n in counts if n is not None)


def _equal(calls: MaskedCalls, tree: TreeArrays, steps: Arithmetic, count: int, rng: np.random.Generator) -> int | None:
    """Of ``count`` vectors, those with equal bits."""
    k, formats = calls.instruction.k, calls.formats
    drawn = {name: rng.standard_normal((count, k) if name != "c" else count) for name in formats if name != "d"}
    if calls.plain:
        drawn["b"] = np.ones((count, k))
    held = {name: value.astype(held_as(formats[name])) for name, value in drawn.items()}
    wide = {name: value.astype(np.float64) for name, value in held.items()}
    expected = evaluate(tree, steps, wide["a"], wide["b"], wide.get("c"), formats["a"].fraction_bits + 1)
    if expected is None:
        return None
    codes = {name: value.view(formats[name].dtype) for name, value in held.items()}
    answers = calls.run(codes["a"], codes["b"], codes.get("c"))
    rounded = round_to(expected, formats["d"].fraction_bits + 1).astype(held_as(formats["d"]))
    return int(np.count_nonzero(rounded.view(formats["d"].dtype) == answers))


def evaluate(
    tree: TreeArrays, steps: Arithmetic, a: Floats, b: Floats, c: Floats | None, product_bits: int
) -> Floats | None:
    """d of vectors a, b of shape (n, K) and c (n,): the value at the root; None for steps it does not compute.

    Products that are rounded first are rounded to ``product_bits``.
    """
    high, low = two_product(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T))
    rounded = _narrow(high, low, product_bits)
    values: list[Any] = []
    for lane in range(len(high)):
        if lane in steps.unrounded:
            values.append((high[lane], low[lane] if low[lane].any() else None))
        else:
            values.append((rounded[lane], None))
    if c is not None:
        values.append((c, None))
    for (x, y), bits in zip(tree.nodes, steps.bits, strict=True):
        first, second = (values[x], values[y]) if values[y][1] is None else (values[y], values[x])
        if bits is None or bits > DOUBLE or second[1] is not None or (first[1] is not None and bits < DOUBLE):
            return None
        values.append((_add(first[0], first[1], second[0], bits), None))
        values[x] = values[y] = ()
    found: Floats = values[-1][0]
    return found


def _add(high: Floats, low: Floats | None, other: Floats, bits: int) -> Floats:
    """high + low + other, rounded once to ``bits``; ``low`` only where that is 53."""
    if low is None:
        return _narrow(*two_sum(high, other), bits)
    upper, under = two_sum(other, low)
    top, rest = two_sum(high, upper)
    return top + _odd(*two_sum(under, rest))


def _narrow(value: Floats, error: Floats, bits: int) -> Floats:
    return value if bits == DOUBLE else round_to(_odd(value, error), bits)


def round_to(value: Floats, bits: int) -> Floats:
    """To ``bits`` significant bits, ties to even; no limit on the exponent."""
    fraction, exponent = np.frexp(value)
    rounded: Floats = np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)
    return rounded


def two_sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x + y rounded, and its error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def two_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """x * y rounded, and its error."""
    product = x * y
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def _halves(x: Floats) -> tuple[Floats, Floats]:
    large = x * SPLITTER
    upper = large - (large - x)
    return upper, x - upper


def _odd(value: Floats, error: Floats) -> Floats:
    """value + error rounded to odd."""
    even = (value.view(np.int64) & 1) == 0
    return np.where((error != 0) & even, np.nextafter(value, np.copysign(np.inf, error)), value)
