"""Sums of products of integers by a schedule: exact numbers, saturated where ``parameters/integer_sums`` says so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm_operands import GemmCall, items_of
from mmaprobe.models.gemm_quantised import quantised_rows
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.epilogue import Input
from mmaprobe.parameters.integer_sums import (
    NO_BIAS,
    IntegerSums,
    LaneGroups,
    Rescale,
    ends,
    scale_number,
    whole_number,
)
from mmaprobe.parameters.schedule import Schedule

EXACT = 1 << 53
"""Sums below it are exact in f64, in which the processor's products are fast."""
BLOCK = (32, 64)
"""Rows and columns of D whose groups are added at a time."""
AT_ONCE = 1 << 16
"""Products of numbers that are held at a time: so many stay near the processor."""
PLACES = 31
"""Places by which a fixed-point product is shifted."""

Whole = NDArray[np.int64]


def fitted(values: Whole, name: str, overflow: str) -> Whole:
    """Numbers in an integer format: those outside of it wrapped, or saturated."""
    fmt, (low, high) = formats.get(name), ends(name)
    if overflow == "saturate":
        found: Whole = np.clip(values, low, high)
        return found
    return values if fmt.bits == 64 else (values - low & (1 << fmt.bits) - 1) + low


def integer_product(made: Schedule, call: GemmCall, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Bits:
    """D at these rows and columns of one product; UsageError where it has numbers for another N."""
    rule = made.integers
    assert rule is not None
    wanted, n = rule.columns(), call.b.shape[1]
    if wanted not in (None, n):
        raise UsageError(f"N is {n}; the schedule has numbers for {wanted} columns")
    b = formats.whole_numbers(formats.get(made.b), call.b[:, columns])
    find, of_a = _Numbers({each.name: each for each in made.inputs}, call.inputs, rows, columns), None
    zero_b = find.whole(rule.zero_b)
    if rule.quantised is None:
        a, zero_a = formats.whole_numbers(formats.get(made.a), call.a[rows]), find.whole(rule.zero_a)
    else:
        a, zero_a, of_a = quantised_rows(rule.quantised, call.a, rows)
    total = _ordered_sum(rule, a, b, zero_a, zero_b) if rule.ordered else exact_sum(a - zero_a, b - zero_b)
    total = fitted(total + _added(made, call, find, rows, columns), rule.format, rule.overflow)
    if rule.rescale is None:
        return formats.whole_codes(formats.get(made.d), total)
    scale = find.scales(rule.rescale)
    numbers = scale if of_a is None else of_a * scale, find.biases(rule.rescale)
    if made.d == "f32":
        return scaled(rule.rescale, total, *numbers).view(np.uint32)
    found = rescaled(rule.rescale, total, *numbers, find.whole((rule.rescale.zero,)), made.d)
    return formats.whole_codes(formats.get(made.d), found)


def _added(made: Schedule, call: GemmCall, find: _Numbers, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Whole:
    """What is added to sums of products: the bias and C."""
    assert made.integers is not None
    found = find.whole(made.integers.bias)
    if call.c is None:
        return found
    return found + formats.whole_numbers(formats.get(made.integers.format), call.c[np.ix_(rows, columns)])


class _Numbers:
    """What words of a schedule stand for at these rows and columns: numbers that are written, or a call's inputs."""

    def __init__(
        self, known: dict[str, Input], given: dict[str, Bits], rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> None:
        self._known, self._given, self._at = known, given, (rows, columns)

    def _input(self, name: str) -> Bits:
        return items_of(self._known[name], self._given[name], *self._at)

    def whole(self, words: tuple[str, ...]) -> Whole:
        """Whole numbers, as an array that is broadcast to D."""
        if words[0] in self._known:
            return formats.whole_numbers(formats.get(self._known[words[0]].format), self._input(words[0]))
        every = np.array([whole_number(word) for word in words], np.int64)
        return every[None, self._at[1]] if len(words) > 1 else every[None]

    def scales(self, rule: Rescale) -> NDArray[Any]:
        """Scales, f32 or whole numbers, likewise."""
        return self.whole(rule.scale) if rule.by == "fixed" else self._singles(rule.scale)

    def biases(self, rule: Rescale) -> NDArray[np.float32] | None:
        """What is added in f32, likewise; None: nothing is."""
        return None if rule.bias == NO_BIAS else self._singles(rule.bias)

    def _singles(self, words: tuple[str, ...]) -> NDArray[np.float32]:
        """Numbers of f32, likewise."""
        if words[0] in self._known:
            return self._input(words[0]).view(np.float32)
        every = np.array([scale_number(word) for word in words], np.float32)
        return every[None, self._at[1]] if len(words) > 1 else every[None]


def exact_sum(a: Whole, b: Whole) -> Whole:
    """A B modulo 2^64, which is A B wherever that fits."""
    most = int(abs(a).max(initial=0)) * int(abs(b).max(initial=0)) * max(a.shape[1], 1)
    if most < EXACT:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    with np.errstate(over="ignore"):
        found: Whole = a @ b
    return found


def _ordered_sum(rule: IntegerSums, a: Whole, b: Whole, zero_a: Whole, zero_b: Whole) -> Whole:
    """The sum where groups, or the sum on its way, saturate; offsets, and zero points ``after``, come off it."""
    before = rule.zeros == "before"
    a, b = (x - zero + offset for x, zero, offset in
            ((a, zero_a * before, rule.offset_a), (b, zero_b * before, rule.offset_b)))  # fmt: skip
    off_a, off_b = (offset + zero * (not before) for offset, zero in
                    ((rule.offset_a, zero_a), (rule.offset_b, zero_b)))  # fmt: skip
    total = np.empty((len(a), b.shape[1]), np.int64)
    high, wide = BLOCK
    for i in range(0, len(a), high):
        for j in range(0, b.shape[1], wide):
            total[i : i + high, j : j + wide] = _steps(rule, a[i : i + high], b[:, j : j + wide])
    total -= off_a * b.sum(0, keepdims=True)
    total -= off_b * a.sum(1, keepdims=True)
    total += a.shape[1] * off_a * off_b
    return total


def _steps(rule: IntegerSums, a: Whole, b: Whole) -> Whole:
    """Raw products of a block added, groups and the sum saturating as the rule says."""
    total = np.zeros((len(a), b.shape[1]), np.int64)
    every = rule.every or max(a.shape[1], 1)
    for start in range(0, a.shape[1], every):
        x, y = a[:, start : start + every], b[start : start + every]
        total += exact_sum(x, y) if rule.groups is None else _grouped_sum(rule.groups, x, y)
        if rule.every:
            np.clip(total, *ends(rule.format), out=total)
    return total


def _grouped_sum(groups: LaneGroups, x: Whole, y: Whole) -> Whole:
    """Sums of groups, each fitted into its format, so many lanes at a time."""
    (m, k), n, size = x.shape, y.shape[1], groups.lanes * groups.stride
    total = np.zeros((m, n), np.int64)
    room = max(1, AT_ONCE // (m * n * size)) * size
    for first in range(0, k, room):
        some = np.zeros((m, -(-min(room, k - first) // size) * size, n), np.int64)
        own = x[:, first : first + room, None] * y[None, first : first + room]
        some[:, : own.shape[1]] = own
        sums = some.reshape(m, -1, groups.lanes, groups.stride, n).sum(2)
        total += fitted(sums, groups.format, groups.overflow).sum((1, 2))
    return total


def scaled(rule: Rescale, total: Whole, scale: NDArray[Any], bias: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """Sums in f32, times their scales; a bias, where there is one, is added before or after that."""
    with np.errstate(all="ignore"):
        x = total.astype(np.float32)
        if bias is not None and rule.bias_added == "before":
            x = x + bias
        x = x * scale
        if bias is not None and rule.bias_added == "after":
            x = x + bias
        found: NDArray[np.float32] = np.ascontiguousarray(x)
    return found


def rescaled(
    rule: Rescale, total: Whole, scale: NDArray[Any], bias: NDArray[np.float32] | None, zero: Whole, d: str
) -> Whole:
    """Sums as numbers of D."""
    if rule.by == "fixed":
        found = _shifted(total * scale + (1 << PLACES - 1) >> PLACES, rule.shift, rule.rounding) + zero
    else:
        x = scaled(rule, total, scale, bias)
        if rule.zero_added == "before":
            x = x + zero.astype(np.float32)
        found = rounded_whole(x, rule.rounding) + (zero if rule.zero_added == "after" else 0)
    low, high = ends(d)
    low, high = (low if rule.lowest is None else rule.lowest), (high if rule.highest is None else rule.highest)
    clamped: Whole = np.clip(found, low, high)
    return clamped


def rounded_whole(x: NDArray[np.float32], rounding: str) -> Whole:
    """Numbers of f32 as whole ones; those beyond 2^62 in size as that."""
    wide = x.astype(np.float64)
    if rounding == "even":
        wide = np.rint(wide)
    elif rounding == "away":
        wide = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    elif rounding == "up":
        wide = np.floor(wide + 0.5)
    else:
        wide = np.floor(wide) if rounding == "down" else np.trunc(wide)
    return np.clip(wide, -float(1 << 62), float(1 << 62)).astype(np.int64)


def _shifted(x: Whole, shift: int, rounding: str) -> Whole:
    """Divided by a power of two, ties up or away from zero."""
    if not shift:
        return x
    return x + (1 << shift - 1) - ((x < 0) if rounding == "away" else 0) >> shift
