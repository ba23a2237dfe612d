"""Arrays of exact numbers: what flows between the stages of a datapath.

Magnitudes are ``int64`` while every bit of them provably fits in 61 bits;
where one does not, that operation goes on with Python integers in an object
array.  Either way nothing is ever lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats import INFINITE, NAN, SUBNORMAL, ZERO, Bits, Format, bit_length, decode, shift_right
from mmaprobe.models.special import Bools, NanRule, Nans, join, side_by_side
from mmaprobe.parameters.datapath import Operand

ABSENT = -(1 << 40)
"""The label of a zero term: no exponent at all."""

WORD = 61
"""Magnitudes of at most this many bits are held in int64."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Values of one shape: NaN, an infinity, or ``(-1)**negative * significand * 2**exponent``.

    ``label`` is the exponent that an alignment sees (ABSENT: a zero term).
    The significand of a NaN or an infinity is 0.  ``width`` bounds the bits
    of every significand.
    """

    negative: Bools
    significand: NDArray[Any]
    exponent: Ints
    label: Ints
    infinite: Bools
    nan: Nans
    width: int

    def map(self, function: Callable[[NDArray[Any]], Any]) -> Numbers:
        """The same function (an indexing, a reshape) applied to every array."""
        return replace(
            self,
            negative=function(self.negative),
            significand=function(self.significand),
            exponent=function(self.exponent),
            label=function(self.label),
            infinite=function(self.infinite),
            nan=self.nan.map(function),
        )

    def column(self, index: int) -> Numbers:
        """One column, as one value a row."""
        return self.map(lambda array: array[:, index])

    def take(self, columns: Sequence[int]) -> Numbers:
        """These columns, in this order."""
        first, count = columns[0], len(columns)
        run = tuple(columns) == tuple(range(first, first + count))
        chosen = slice(first, first + count) if run else list(columns)  # a slice copies nothing
        return self.map(lambda array: array[:, chosen])

    @property
    def columns(self) -> Numbers:
        """One value a row as one column; columns stay as they are."""
        return self if self.negative.ndim == 2 else self.map(lambda array: array[:, None])

    @property
    def top(self) -> Ints:
        """floor(log2 |x|); meaningless for zeros."""
        return self.exponent + bit_length(self.significand) - 1

    def within(self, width: int) -> Numbers:
        """The same values, held so that magnitudes of ``width`` bits can be computed."""
        if width <= WORD or self.significand.dtype == object:
            return self
        return replace(self, significand=self.significand.astype(object))


def beside(parts: Sequence[Numbers]) -> Numbers:
    """Columns of several values side by side."""
    parts = [part.columns for part in parts]
    if len(parts) == 1:
        return parts[0]
    return Numbers(
        side_by_side([part.negative for part in parts]),
        side_by_side([part.significand for part in parts]),
        side_by_side([part.exponent for part in parts]),
        side_by_side([part.label for part in parts]),
        side_by_side([part.infinite for part in parts]),
        join([part.nan for part in parts]),
        max(part.width for part in parts),
    )


def zeros(count: int, rule: NanRule) -> Numbers:
    """``count`` times +0."""
    none = np.zeros(count, bool)
    nan = Nans(none, np.zeros(count, np.uint64), none) if rule.local else Nans(none)
    return Numbers(none, np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, ABSENT), none, nan, 0)


def conditioned(fmt: Format, bits: Bits, operand: Operand) -> Bits:
    """The container bits that the unit looks at, and their sign bit as it sees it."""
    mask, flip = operand.code_bits(fmt)
    every = (1 << fmt.container_bits) - 1
    return bits if (mask, flip) == (-1, 0) else bits & bits.dtype.type(mask & every) ^ bits.dtype.type(flip)


def read_operands(fmt: Format, bits: Bits, operand: Operand, rule: NanRule) -> Numbers:
    """Operands as numbers: masked, their sign changed, decoded, subnormals flushed as ``operand`` says."""
    bits = conditioned(fmt, bits, operand)
    parts = decode(fmt, bits)
    infinite, nan = parts.kind == INFINITE, parts.kind == NAN
    dead, negative = infinite | nan, parts.negative
    if operand.subnormals != "keep":
        low = parts.kind == SUBNORMAL
        dead = dead | low
        if operand.subnormals == "zero":
            negative = negative & ~(low | (parts.kind == ZERO))
    significand = np.where(dead, 0, parts.significand)
    fraction = fmt.fraction_bits if fmt.is_float else 0
    label = np.where(significand == 0, ABSENT, parts.exponent + fraction)
    width = fmt.fraction_bits + 1 if fmt.is_float else fmt.bits
    return Numbers(negative, significand, parts.exponent, label, infinite, rule.read(fmt, bits, nan), width)


def multiply(x: Numbers, y: Numbers) -> Numbers:
    """Exact products, labels added; 0 times infinity is a NaN."""
    width = x.width + y.width
    significand = x.within(width).significand * y.within(width).significand
    infinite = x.infinite | y.infinite
    nothing = ((x.significand == 0) & ~x.infinite) | ((y.significand == 0) & ~y.infinite)
    flag = x.nan.flag | y.nan.flag | (infinite & nothing)
    label = np.where(significand == 0, ABSENT, x.label + y.label)
    negative, exponent = x.negative ^ y.negative, x.exponent + y.exponent
    return Numbers(negative, significand, exponent, label, infinite & ~flag, Nans(flag), width)


def cut(x: Numbers, quantum: Ints, rounding: str) -> Numbers:
    """Every value rounded to a multiple of 2**quantum (its sign is kept where it becomes zero)."""
    shift = np.where(x.significand == 0, 0, quantum - x.exponent)
    width = x.width - min(0, int(shift.min(initial=0))) + 1
    significand = shift_right(x.within(width).significand, shift, x.negative, rounding)
    return replace(x, significand=significand, exponent=np.broadcast_to(quantum, x.exponent.shape), width=width)


def total(terms: Numbers, label: Ints, rounding: str, rule: NanRule) -> Numbers:
    """The exact sum of each row's columns.

    A zero sum of zeros of one sign has that sign; another zero sum is +0, or
    -0 where ``rounding`` (of the encoding that follows) is RD.
    """
    live = terms.significand != 0
    low = np.where(live, terms.exponent, np.int64(1 << 40)).min(-1, keepdims=True)
    shift = np.where(live, terms.exponent - low, 0)
    width = terms.width + int(shift.max(initial=0)) + (terms.negative.shape[-1] - 1).bit_length()
    magnitude = terms.within(width).significand
    if magnitude.dtype == object:
        shift = shift.astype(object)
    magnitude = magnitude << shift
    value = np.where(terms.negative, -magnitude, magnitude).sum(-1)
    settled = ~live.any(-1) & (terms.negative == terms.negative[:, :1]).all(-1)
    zero_sign = np.where(settled, terms.negative[:, 0], rounding == "RD")
    up, down = ((terms.infinite & side).any(-1) for side in (~terms.negative, terms.negative))
    flag: Bools = np.asarray(terms.nan.flag.any(-1) | (up & down))
    infinite = np.asarray((up | down) & ~flag)
    negative = np.where(infinite, down, np.where(value == 0, zero_sign, value < 0)).astype(bool)
    exponent = np.where(live.any(-1), low[:, 0], 0)
    nan = rule.choose(terms.nan, flag)
    significand = np.where(infinite | flag, 0, abs(value))
    return Numbers(negative, significand, exponent, label, infinite, nan, width)


def sticky(terms: Numbers, precision: int) -> Numbers:
    """Two terms, the lower one rounded to odd far below any rounding of their sum to ``precision`` bits.

    The larger term's leading bit is put at bit 59.  The smaller loses bits
    only where it lies wholly below bit 57, so the sum keeps at least 58
    correct bits and a last one that says whether more follow; rounding it to
    at most 55 bits gives what rounding the exact sum gives.  Wider terms stay
    as they are.
    """
    if terms.width > 57 or precision > 55:
        return terms
    live = terms.significand != 0
    top = np.where(live, terms.top, ABSENT).max(-1, keepdims=True)
    shift = np.where(live, top - 59 - terms.exponent, 0)
    significand = shift_right(terms.significand.astype(np.int64), shift, terms.negative, "RO")
    return replace(terms, significand=significand, exponent=np.broadcast_to(top - 59, shift.shape), width=60)
