"""Number formats: one frozen record each, everything else derived.

A bit pattern is an unsigned integer in the low bits of its container
(``uint8/16/32/64``).  A decoded finite value is

    (-1)**negative * significand * 2**exponent

with an integer significand and the exponent of its lowest bit.  Subnormals
keep the exponent of the format's lowest normal, as hardware labels them.

Sources: IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0; OCP
Microscaling Formats 1.0; PTX ISA (tf32, ue4m3, ue8m0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError, near

Bits = NDArray[np.unsignedinteger[Any]]

ZERO, NORMAL, SUBNORMAL, INFINITE, NAN = range(5)
"""Classes of a decoded bit pattern."""

ROUNDINGS = ("RU", "RD", "RZ", "RA", "RNU", "RND", "RNZ", "RNA", "RNE", "RNO", "RO")
"""Toward +inf, -inf, zero, away; nearest with ties up, down, to zero, away, even, odd; to odd."""


@dataclass(frozen=True)
class Format:
    """The layout of one number format.

    ``bits`` counts the bits that carry the value; ``padding`` low bits of the
    container below them are ignored (tf32), ``ignored_high`` bits above them
    too (ue4m3).  ``nan`` says which codes are NaN: ``ieee`` (all exponent
    ones, fraction not zero), ``all_ones`` (every bit but the sign),
    ``negative_zero`` (fnuz) or ``none``.
    """

    name: str
    kind: str  # float | integer | magnitude | bits
    bits: int
    exponent_bits: int = 0
    fraction_bits: int = 0
    bias: int = 0
    signed: bool = True
    infinity: bool = False
    nan: str = "none"
    subnormal: bool = True
    padding: int = 0
    ignored_high: int = 0

    def __post_init__(self) -> None:
        if self.kind == "float" and self.bits != self.signed + self.exponent_bits + self.fraction_bits:
            raise ValueError(f"format {self.name}: widths do not add up to {self.bits} bits")
        if self.nan not in ("ieee", "all_ones", "negative_zero", "none"):
            raise ValueError(f"format {self.name}: nan rule {self.nan!r}")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def container_bits(self) -> int:
        """Width of the unsigned integer that holds one item: 8, 16, 32 or 64."""
        need = self.bits + self.padding + self.ignored_high
        return next(width for width in (8, 16, 32, 64) if need <= width)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.container_bits // 8}")

    @property
    def code_limit(self) -> int:
        """One above the largest container value that is a code of this format."""
        return 1 << (self.bits + self.padding + self.ignored_high)

    @property
    def min_exponent(self) -> int:
        """Exponent of the lowest normal (of the only lowest value where there are no subnormals)."""
        return (1 if self.subnormal else 0) - self.bias

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite value."""
        top = (1 << self.exponent_bits) - 1
        if self.nan == "ieee" or (self.fraction_bits == 0 and self.nan == "all_ones"):
            top -= 1
        return top - self.bias

    @property
    def max_fraction(self) -> int:
        """Fraction field of the largest finite value."""
        ones = (1 << self.fraction_bits) - 1
        return ones - 1 if self.nan == "all_ones" and self.fraction_bits else ones

    @property
    def largest(self) -> int:
        """Code of the largest finite value."""
        if self.kind == "magnitude":
            return (1 << self.fraction_bits) - 1
        if not self.is_float:
            return (1 << (self.bits - self.signed)) - 1
        return ((self.max_exponent + self.bias) << self.fraction_bits | self.max_fraction) << self.padding

    @property
    def sign_mask(self) -> int:
        """The sign bit in the container; 0 for an unsigned format."""
        return 1 << (self.bits - 1 + self.padding) if self.signed else 0

    @property
    def infinity_code(self) -> int | None:
        """Code of +infinity, None where the format has none."""
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.padding) if self.infinity else None

    @property
    def quiet_bit(self) -> int:
        """The bit that makes an IEEE NaN quiet; 0 elsewhere."""
        return 1 << (self.fraction_bits - 1 + self.padding) if self.nan == "ieee" else 0

    @property
    def nan_code(self) -> int | None:
        """A positive quiet NaN (the negative zero in fnuz formats), None where the format has none."""
        if self.nan == "ieee":
            return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.padding) | self.quiet_bit
        if self.nan == "all_ones":
            return ((1 << (self.exponent_bits + self.fraction_bits)) - 1) << self.padding
        return self.sign_mask if self.nan == "negative_zero" else None

    @property
    def one(self) -> int:
        """Code of 1."""
        return (self.bias << self.fraction_bits) << self.padding if self.is_float else 1


def _ieee(name: str, exponent: int, fraction: int, **more: Any) -> Format:
    return Format(
        name, "float", 1 + exponent + fraction, exponent, fraction, (1 << (exponent - 1)) - 1,
        infinity=True, nan="ieee", **more,
    )  # fmt: skip


def _small(name: str, exponent: int, fraction: int, nan: str = "none", bias: int | None = None, **more: Any) -> Format:
    bias = (1 << (exponent - 1)) - 1 if bias is None else bias
    signed = more.get("signed", True)
    return Format(name, "float", signed + exponent + fraction, exponent, fraction, bias, nan=nan, **more)


_ALL = (
    _ieee("f64", 11, 52),
    _ieee("f32", 8, 23),
    _ieee("tf32", 8, 10, padding=13),
    _ieee("e8m13", 8, 13, padding=10),
    _ieee("f16", 5, 10),
    _ieee("bf16", 8, 7),
    _ieee("e5m2", 5, 2),
    _small("e4m3", 4, 3, "all_ones"),
    _small("e5m2fnuz", 5, 2, "negative_zero", 16),
    _small("e4m3fnuz", 4, 3, "negative_zero", 8),
    _small("e3m2", 3, 2),
    _small("e2m3", 2, 3),
    _small("e2m1", 2, 1),
    _small("ue8m0", 8, 0, "all_ones", 127, signed=False, subnormal=False),
    _small("ue4m3", 4, 3, "all_ones", signed=False, ignored_high=1),
    _small("ue5m3", 5, 3, "all_ones", signed=False),
    Format("s8", "integer", 8),
    Format("u8", "integer", 8, signed=False),
    Format("s16", "integer", 16),
    Format("u16", "integer", 16, signed=False),
    Format("s4", "integer", 4),
    Format("u4", "integer", 4, signed=False),
    Format("s32", "integer", 32),
    Format("b1", "bits", 1, signed=False),
    Format("ti16", "magnitude", 16, fraction_bits=11),
)

FORMATS: dict[str, Format] = {f.name: f for f in _ALL}


def get(name: str) -> Format:
    """The format called ``name``; UsageError with the near names otherwise."""
    try:
        return FORMATS[name]
    except KeyError:
        raise UsageError(f"unknown format {name!r}{near(name, FORMATS)}") from None


class Decoded(NamedTuple):
    """Bit patterns taken apart: ``(-1)**negative * significand * 2**exponent``.

    ``kind`` is one of ZERO, NORMAL, SUBNORMAL, INFINITE, NAN.  For INFINITE
    and NAN the significand is the fraction field (the NaN's payload).
    """

    kind: NDArray[np.uint8]
    negative: NDArray[np.bool_]
    exponent: NDArray[np.int64]
    significand: NDArray[np.int64]


def decode(fmt: Format, bits: Bits) -> Decoded:
    """Take bit patterns apart; the top and padding bits that a format ignores are dropped."""
    code = np.asarray(bits).astype(np.uint64)
    if fmt.bits < 64:
        code = (code >> np.uint64(fmt.padding)) & np.uint64((1 << fmt.bits) - 1)
    if not fmt.is_float:
        return _decode_integer(fmt, code)
    fraction = (code & np.uint64((1 << fmt.fraction_bits) - 1)).astype(np.int64)
    field = ((code >> np.uint64(fmt.fraction_bits)) & np.uint64((1 << fmt.exponent_bits) - 1)).astype(np.int64)
    negative = (code >> np.uint64(fmt.bits - 1)).astype(bool) if fmt.signed else np.zeros(code.shape, bool)
    low = (field == 0) & fmt.subnormal
    significand = np.where(low, fraction, fraction | (1 << fmt.fraction_bits))
    exponent = np.where(low, fmt.min_exponent, field - fmt.bias) - fmt.fraction_bits
    kind = np.where(low, np.where(fraction == 0, ZERO, SUBNORMAL), NORMAL).astype(np.uint8)
    if fmt.nan == "ieee":
        top = field == (1 << fmt.exponent_bits) - 1
        kind[top] = np.where(fraction[top] == 0, INFINITE, NAN)
        significand = np.where(top, fraction, significand)
    elif fmt.nan == "all_ones":
        kind[(code & np.uint64((1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1)) == np.uint64(
            (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1)] = NAN  # fmt: skip
    elif fmt.nan == "negative_zero":
        kind[code == np.uint64(1 << (fmt.bits - 1))] = NAN
    return Decoded(kind, negative, exponent, significand)


def _decode_integer(fmt: Format, code: NDArray[np.uint64]) -> Decoded:
    value = code.astype(np.int64)
    negative = np.zeros(value.shape, bool)
    if fmt.kind == "magnitude":
        negative, value = (value >> (fmt.bits - 1)) != 0, value & ((1 << fmt.fraction_bits) - 1)
    elif fmt.signed:
        negative = value >= 1 << (fmt.bits - 1)
        value = np.where(negative, (1 << fmt.bits) - value, value)
    kind = np.where(value == 0, ZERO, NORMAL).astype(np.uint8)
    return Decoded(kind, negative, np.zeros(value.shape, np.int64), value)


def bit_length(value: NDArray[Any]) -> NDArray[np.int64]:
    """Number of bits of non-negative integers (``int64``, or Python ints in an object array)."""
    value = np.asarray(value)
    if value.dtype == object:
        return np.asarray(np.frompyfunc(int.bit_length, 1, 1)(value), dtype=np.int64)
    length = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    over = (length > 0) & ((value >> np.maximum(length - 1, 0)) == 0)  # float64 rounded up to the next power
    return length - over


def shift_right(value: NDArray[Any], shift: NDArray[Any], negative: NDArray[Any], rounding: str) -> NDArray[Any]:
    """``round(value / 2**shift)`` of magnitudes, exact for ``shift <= 0``.

    ``int64`` magnitudes must be below 2**61; object arrays hold any size.
    ``negative`` gives the sign that the directed roundings look at.
    """
    wide = value.dtype == object
    shift = np.asarray(shift).astype(object if wide else np.int64)
    left = np.maximum(-shift, 0)
    right = np.maximum(shift, 0)
    if not wide:
        right = np.minimum(right, 62)
    one = np.ones_like(value)
    kept = value >> right
    rest = value - (kept << right)
    inexact = rest != 0
    if rounding == "RO":
        return (kept | inexact.astype(kept.dtype)) << left
    if rounding.startswith("RN"):
        half = np.where(right > 0, (one << np.maximum(right, 1)) >> 1, one)
        tie = rest == half
        up = (rest > half) | (tie & _tie_goes_away(rounding, kept, negative))
        up = up & (right > 0)
    else:
        up = inexact & {"RZ": np.False_, "RA": np.True_, "RU": ~negative, "RD": negative}[rounding]
    return (kept + up.astype(kept.dtype)) << left


def _tie_goes_away(rounding: str, kept: NDArray[Any], negative: NDArray[Any]) -> Any:
    odd = (kept & 1) != 0
    return {"RNU": ~negative, "RND": negative, "RNZ": np.False_, "RNA": np.True_, "RNE": odd, "RNO": ~odd}[rounding]


def overflow_goes_to_infinity(rounding: str, negative: NDArray[Any]) -> Any:
    """IEEE 754 section 7.4: what a result beyond the largest finite value becomes."""
    if rounding in ("RZ", "RO"):
        return np.False_
    return {"RU": ~negative, "RD": negative}.get(rounding, np.True_)


def encode(
    fmt: Format, negative: NDArray[Any], significand: NDArray[Any], exponent: NDArray[Any],
    rounding: str = "RNE", overflow: str = "ieee",
) -> Bits:  # fmt: skip
    """Bit patterns of finite values ``(-1)**negative * significand * 2**exponent``, rounded once.

    ``overflow`` is ``ieee`` (by the rounding's direction), ``infinity`` (the
    format's NaN where it has no infinity) or ``largest``; for integer formats
    ``wrap`` or ``largest``.  A zero keeps its sign where the format has one.
    ``int64`` significands must be below 2**61.
    """
    negative = np.asarray(negative, dtype=bool)
    if not fmt.is_float:
        return _encode_integer(fmt, negative, significand, exponent, rounding, overflow)
    top = exponent + bit_length(significand) - 1
    quantum = np.maximum(top, fmt.min_exponent) - fmt.fraction_bits
    kept = shift_right(significand, quantum - exponent, negative, rounding)
    limit = 1 << (fmt.fraction_bits + 1)
    carried = kept >= limit
    kept = np.where(carried, kept >> 1, kept)
    quantum = quantum + carried
    normal = kept >= 1 << fmt.fraction_bits
    field = np.where(normal, quantum + fmt.fraction_bits + fmt.bias, 0)
    if not fmt.subnormal:
        field = np.where(normal, field, 0)
    fraction = np.where(normal, kept - (1 << fmt.fraction_bits), kept)
    code = (field.astype(object) << fmt.fraction_bits | fraction.astype(object)) if kept.dtype == object else (
        field.astype(np.int64) << fmt.fraction_bits | fraction)  # fmt: skip
    code = np.asarray(code, dtype=np.uint64) << np.uint64(fmt.padding)
    over = code > np.uint64(fmt.largest)
    special = fmt.infinity_code if fmt.infinity else fmt.nan_code
    if special is None or overflow == "largest":
        beyond = np.full(code.shape, fmt.largest, np.uint64)
    else:
        to_infinity = True if overflow == "infinity" else overflow_goes_to_infinity(rounding, negative)
        beyond = np.where(to_infinity, np.uint64(special), np.uint64(fmt.largest))
    code = np.where(over, beyond, code)
    signs = negative & ((code != 0) | (fmt.nan != "negative_zero"))
    code = np.where(signs, code | np.uint64(fmt.sign_mask), code)
    return code.astype(fmt.dtype)


def _encode_integer(
    fmt: Format, negative: NDArray[Any], significand: NDArray[Any], exponent: NDArray[Any],
    rounding: str, overflow: str,
) -> Bits:  # fmt: skip
    value = shift_right(significand, -np.asarray(exponent), negative, rounding).astype(object)
    value = np.where(negative, -value, value)
    if fmt.kind == "magnitude":
        size = np.minimum(abs(value), fmt.largest)
        return np.asarray(np.where(negative, size | fmt.sign_mask, size), dtype=np.uint64).astype(fmt.dtype)
    if overflow != "wrap":
        low = -(1 << (fmt.bits - 1)) if fmt.signed else 0
        value = np.minimum(np.maximum(value, low), fmt.largest)
    return np.asarray(value & ((1 << fmt.bits) - 1), dtype=np.uint64).astype(fmt.dtype)
