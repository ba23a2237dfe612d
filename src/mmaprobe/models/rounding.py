"""Encode: an exact number becomes a bit pattern (docs/datapath.md, section 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Bits, Format, bit_length, shift_right
from mmaprobe.models.numbers import Ints, Numbers, read_operands
from mmaprobe.models.special import Bools, NanRule, Nans
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath, Encode, Operand


class Encoded(NamedTuple):
    """Bit patterns of finite and infinite results (a NaN's are meaningless) and the numbers they mean."""

    bits: Bits
    numbers: Numbers
    tiny: Bools


class RandomBits(NamedTuple):
    """The operand r of each vector, of so many bits."""

    codes: Ints  # (n,)
    held: int

    @classmethod
    def of(cls, datapath: Datapath, vectors: Batch) -> RandomBits | None:
        """Those of vectors, where the datapath has such an operand."""
        if datapath.random is None or vectors.random is None:
            return None
        return cls(vectors.random.astype(np.int64), formats.get(datapath.random).bits)

    def taken(self, to: Encode, axes: int) -> Ints:
        """The bits that an Encode takes, for numbers of so many axes."""
        codes = self.codes >> (self.held - to.random_bits if to.random_from == "highest" else 0)
        return (codes & ((1 << to.random_bits) - 1)).reshape(-1, *(1,) * (axes - 1))


def encode(x: Numbers, to: Encode, rule: NanRule, random: RandomBits | None = None) -> Encoded:
    """Round ``x`` to ``to.format``: first cut, random bits, rounding, overflow, flush, sign of zero."""
    fmt = formats.get(to.format)
    zero = x.significand == 0
    if to.first is not None:
        x = first_cut(x, fmt, *to.first)
    if to.random_bits and random is not None:
        x = lifted(x, fmt, to.random_bits, random.taken(to, x.negative.ndim))
    code = formats.encode(fmt, x.negative, x.significand, x.exponent, to.rounding, to.overflow)
    tiny = _tiny(x, to, fmt)
    code = np.where(tiny, code.dtype.type(0), code)
    code = _sign_zeros(code, x.negative, zero, to, fmt)
    code = np.where(x.infinite, _infinity(x.negative, to, fmt), code)
    numbers = read_operands(fmt, code, Operand(), rule)
    return Encoded(code, _with_nans(numbers, x.nan, rule), tiny)


def first_cut(x: Numbers, fmt: Format, bits: int, rounding: str) -> Numbers:
    """Round to ``bits`` fraction bits of the value's own exponent (not below the lowest normal's)."""
    quantum = np.maximum(x.top, fmt.min_exponent) - bits
    significand = shift_right(x.within(bits + 2).significand, quantum - x.exponent, x.negative, rounding)
    return replace(x, significand=significand, exponent=quantum, width=max(x.width, bits + 2))


def lifted(x: Numbers, fmt: Format, bits: int, random: Ints) -> Numbers:
    """The next multiple of the last place away from zero, where the ``bits`` below that place and ``random`` carry."""
    quantum = np.maximum(x.top, fmt.min_exponent) - fmt.fraction_bits if fmt.is_float else np.zeros_like(x.exponent)
    shift = np.where(x.significand == 0, 0, np.maximum(quantum - x.exponent, 0))
    kept = shift_right(x.significand, shift, x.negative, "RZ")
    seen = shift_right(x.within(x.width + bits).significand, shift - bits, x.negative, "RZ")
    carries = seen - (kept.astype(seen.dtype) << bits) + random >= 1 << bits
    significand = np.where(carries, kept + 1, x.significand)
    return replace(x, significand=significand, exponent=np.where(carries, quantum, x.exponent))


def _tiny(x: Numbers, to: Encode, fmt: Format) -> Bools:
    """Non-zero results that a flush takes away."""
    if to.subnormals == "keep" or not fmt.is_float:
        return np.zeros(x.negative.shape, bool)
    top = x.top
    if to.tininess != "before":
        quantum = (np.maximum(top, fmt.min_exponent) if to.tininess == "encoded" else top) - fmt.fraction_bits
        top = quantum + bit_length(shift_right(x.significand, quantum - x.exponent, x.negative, to.rounding)) - 1
    return np.asarray((x.significand != 0) & (top < fmt.min_exponent))


def _sign_zeros(code: Bits, negative: Bools, was_zero: Bools, to: Encode, fmt: Format) -> Bits:
    """Zero results with their sign: that of the exact zero, or the one an underflow leaves."""
    if not fmt.sign_mask or fmt.nan == "negative_zero" or not fmt.is_float:
        return code
    sign = code.dtype.type(fmt.sign_mask)
    underflow = to.underflow == "signed" and to.subnormals != "zero"
    keeps = np.where(was_zero, to.zero == "ieee", underflow)
    signed = np.where(negative & keeps, sign, code.dtype.type(0))
    return np.where((code & ~sign) == 0, signed, code)


def _infinity(negative: Bools, to: Encode, fmt: Format) -> Bits:
    """What an infinity becomes: the format's own, else what the overflow rule says."""
    overflow = "infinity" if fmt.infinity else to.overflow
    exponent = np.full(negative.shape, fmt.max_exponent + 1 if fmt.is_float else fmt.bits)
    return formats.encode(fmt, negative, np.ones(negative.shape, np.int64), exponent, to.rounding, overflow)


def _with_nans(numbers: Numbers, before: Nans, rule: NanRule) -> Numbers:
    """The encoded numbers with the NaNs that went in; one that the overflow made carries the rule's code."""
    made = numbers.nan.flag & ~before.flag
    flag = before.flag | made
    nan = Nans(flag)
    if rule.local:
        assert before.code is not None
        nan = Nans(flag, np.where(made, np.uint64(rule.special.code), before.code), before.signalling)
    zero = np.where(before.flag, 0, numbers.significand)
    return replace(numbers, nan=nan, significand=zero, infinite=numbers.infinite & ~flag)
