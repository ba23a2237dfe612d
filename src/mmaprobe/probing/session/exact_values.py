"""Exact values as codes: a value to its bit pattern, a product to a pair of operands."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Format

Value = Fraction | None
"""An exact finite value; None for a NaN or an infinity."""


class UnrepresentableError(Exception):
    """A value that an experiment needs does not exist in the operand formats."""


def power(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def top_exponent(value: Fraction) -> int:
    """floor(log2 |value|) of a non-zero dyadic value."""
    return abs(value.numerator).bit_length() - value.denominator.bit_length()


class ContradictionError(Exception):
    """The device does not answer as any dot product could: unstable, or wrong where every unit agrees."""


@lru_cache(maxsize=1 << 16)
def code_of(fmt: Format, value: Fraction, subnormal: bool = True) -> int | None:
    """The bit pattern whose value is exactly ``value`` (zero as +0); None where there is none.

    ``subnormal`` False leaves out the subnormal numbers of the format.
    """
    negative = value < 0
    if negative and not fmt.signed:
        return None
    if not fmt.is_float:
        low = -fmt.largest - (fmt.kind == "integer" and fmt.signed)
        if value.denominator != 1 or not low <= value <= fmt.largest:
            return None
        if fmt.kind == "magnitude":
            return abs(value.numerator) | (fmt.sign_mask if negative else 0)
        return value.numerator & ((1 << fmt.bits) - 1)
    if value == 0:
        return 0 if fmt.subnormal else None
    top = top_exponent(value)
    if top < fmt.min_exponent and not (subnormal and fmt.subnormal):
        return None
    scaled = abs(value) / power(max(top, fmt.min_exponent) - fmt.fraction_bits)
    if scaled.denominator != 1 or top > fmt.max_exponent:
        return None
    fraction = scaled.numerator & ((1 << fmt.fraction_bits) - 1)
    field = top + fmt.bias if top >= fmt.min_exponent else 0
    code = (field << fmt.fraction_bits | fraction) << fmt.padding
    return None if code > fmt.largest else code | (fmt.sign_mask if negative else 0)


@lru_cache(maxsize=1 << 16)
def split(a: Format, b: Format, value: Fraction) -> tuple[int, int] | None:
    """Codes (a_k, b_k) with a_k * b_k exactly ``value``; None where there are none.

    Normal operands come first, with exponents as alike as the ranges allow;
    subnormal ones only where nothing else reaches the value.
    """
    zero_a, zero_b = code_of(a, Fraction(0)), code_of(b, Fraction(0))
    if value == 0:
        return (zero_a, zero_b) if zero_a is not None and zero_b is not None else None
    if not (a.is_float and b.is_float):
        return _split_integers(a, b, value)
    sign = -1 if value < 0 else 1
    odd, exponent = _odd(abs(value))
    for subnormal in (False, True):
        for left, right in _factors(odd, a, b):
            for e_a in _exponents(exponent, a, b, left, right, subnormal):
                signs = (sign, 1) if a.signed else (1, sign)
                code_a = code_of(a, signs[0] * left * power(e_a), subnormal)
                code_b = code_of(b, signs[1] * right * power(exponent - e_a), subnormal)
                if code_a is not None and code_b is not None:
                    return code_a, code_b
    return None


def _split_integers(a: Format, b: Format, value: Fraction) -> tuple[int, int] | None:
    """The first of a's small powers of two, units and ends that leaves a b."""
    if a.is_float or b.is_float:
        raise UnrepresentableError(f"{a.name} x {b.name}: an integer beside a float")
    for left in (*(s * (1 << n) for n in (3, 2, 1, 0, *range(4, a.bits)) for s in (1, -1)), a.largest, -a.largest - 1):
        code_a, code_b = code_of(a, Fraction(left)), code_of(b, value / left)
        if code_a is not None and code_b is not None:
            return code_a, code_b
    return None


def _odd(value: Fraction) -> tuple[int, int]:
    """value = odd * 2**exponent."""
    zeros = (value.numerator & -value.numerator).bit_length() - 1
    return value.numerator >> zeros, zeros - (value.denominator.bit_length() - 1)


def _factors(odd: int, a: Format, b: Format) -> list[tuple[int, int]]:
    """Ways to write an odd significand as a product of two that fit."""
    widths = [f.fraction_bits + 1 for f in (a, b)]
    found = []
    for left, right in ((odd, 1), (1, odd), *((d, odd // d) for d in range(3, 64, 2) if odd % d == 0)):
        if left.bit_length() <= widths[0] and right.bit_length() <= widths[1]:
            found.append((left, right))
    return found


def _exponents(total: int, a: Format, b: Format, left: int, right: int, subnormal: bool) -> list[int]:
    """Exponents of the lowest bit of a_k worth trying: the balanced one first, then the ends of its range."""
    low_a, low_b = (f.min_exponent - (f.fraction_bits if subnormal else 0) for f in (a, b))
    first = max(low_a - left.bit_length() + 1, total - (b.max_exponent - right.bit_length() + 1))
    last = min(a.max_exponent - left.bit_length() + 1, total - (low_b - right.bit_length() + 1))
    middle = min(max(total // 2, first), last)
    return [e for e in dict.fromkeys((middle, first, last)) if first <= e <= last]


def values_of(fmt: Format, codes: formats.Bits) -> list[Value]:
    """The exact value of each code; None for NaN and infinities."""
    distinct, which = np.unique(np.ravel(codes), return_inverse=True)
    found = formats.decode(fmt, distinct)
    out: list[Value] = []
    for kind, negative, exponent, significand in zip(*(np.ravel(part).tolist() for part in found), strict=True):
        finite = kind not in (formats.INFINITE, formats.NAN)
        out.append((-significand if negative else significand) * power(exponent) if finite else None)
    return [out[number] for number in which.tolist()]


def say(value: Fraction) -> str:
    """A value for a person: ``-3 * 2^-24``."""
    if value == 0 or (value.denominator == 1 and abs(value) < 1000):
        return str(value)
    low = ((value.numerator & -value.numerator).bit_length() - 1) - (value.denominator.bit_length() - 1)
    odd = value / power(low)
    return f"{odd} * 2^{low}" if abs(odd) != 1 else f"{'-' if odd < 0 else ''}2^{top_exponent(value)}"
