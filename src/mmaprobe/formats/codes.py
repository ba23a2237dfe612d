"""Bit patterns taken apart (decode) and put together with one rounding (encode)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.formats.layout import Format
from mmaprobe.formats.rounding import bit_length, overflow_goes_to_infinity, shift_right

Bits = NDArray[np.unsignedinteger[Any]]

ZERO, NORMAL, SUBNORMAL, INFINITE, NAN = range(5)
"""Classes of a decoded bit pattern."""
_ZERO, _NORMAL, _SUBNORMAL, _INFINITE, _NAN = (np.uint8(kind) for kind in range(5))
_WORD = 61
"""Magnitudes of at most this many bits are held in int64."""


class Decoded(NamedTuple):
    """Bit patterns taken apart: ``(-1)**negative * significand * 2**exponent``.

    ``kind`` is one of ZERO, NORMAL, SUBNORMAL, INFINITE, NAN.  For INFINITE
    and NAN the significand is the fraction field (the NaN's payload).  Significands are ``int64``, of 64-bit integers
    Python integers.
    """

    kind: NDArray[np.uint8]
    negative: NDArray[np.bool_]
    exponent: NDArray[np.int64]
    significand: NDArray[Any]


def decode(fmt: Format, bits: Bits) -> Decoded:
    """Take bit patterns apart; the top and padding bits that a format ignores are dropped."""
    held = np.asarray(bits)
    code = held.view(np.int64) if held.dtype.itemsize == 8 else held.astype(np.int64)
    if fmt.bits < 64:
        code = (code >> fmt.padding) & ((1 << fmt.bits) - 1)
    if not fmt.is_float:
        return _decode_integer(fmt, code)
    fraction = code & ((1 << fmt.fraction_bits) - 1)
    field = (code >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    negative = (code >> (fmt.bits - 1)) & 1 != 0 if fmt.signed else np.zeros(code.shape, bool)
    low = (field == 0) & fmt.subnormal
    significand = np.where(low, fraction, fraction | (1 << fmt.fraction_bits))
    exponent = np.where(low, fmt.min_exponent, field - fmt.bias) - fmt.fraction_bits
    empty = fraction == 0
    kind = np.where(low, np.where(empty, _ZERO, _SUBNORMAL), _NORMAL)
    if fmt.nan == "ieee":
        top = field == (1 << fmt.exponent_bits) - 1
        kind = np.where(top, np.where(empty, _INFINITE, _NAN), kind)
        significand = np.where(top, fraction, significand)
    elif fmt.nan == "all_ones":
        ones = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
        kind = np.where(code & ones == ones, _NAN, kind)
    elif fmt.nan == "negative_zero":
        kind = np.where(code == 1 << (fmt.bits - 1), _NAN, kind)
    return Decoded(kind, negative, exponent, significand)


def is_nan(fmt: Format, bits: Bits) -> NDArray[np.bool_]:
    """Which codes are NaN, as ``decode`` says, in a third of its time."""
    size = _size(fmt, bits)
    if fmt.nan == "ieee":
        return np.asarray(size > bits.dtype.type(((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.padding)))
    if fmt.nan == "all_ones":
        return np.asarray(size == bits.dtype.type(((1 << (fmt.bits - fmt.signed)) - 1) << fmt.padding))
    if fmt.nan == "negative_zero":
        return np.asarray((size == 0) & (bits & bits.dtype.type(fmt.sign_mask) != 0))
    return np.zeros(bits.shape, bool)


def is_zero(fmt: Format, bits: Bits) -> NDArray[np.bool_]:
    """Which codes of a float format are zeros, as ``decode`` says."""
    if not fmt.subnormal:
        return np.zeros(bits.shape, bool)
    zero = _size(fmt, bits) == 0
    return np.asarray(zero if fmt.nan != "negative_zero" else zero & (bits & bits.dtype.type(fmt.sign_mask) == 0))


def _size(fmt: Format, bits: Bits) -> Bits:
    """The bits that say the size of a value, where they are."""
    found: Bits = bits & bits.dtype.type(((1 << (fmt.bits - fmt.signed)) - 1) << fmt.padding)
    return found


def _decode_integer(fmt: Format, value: NDArray[Any]) -> Decoded:
    negative = np.zeros(value.shape, bool)
    if fmt.bits > _WORD:
        value = value.astype(object) & ((1 << fmt.bits) - 1)
    if fmt.kind == "magnitude":
        negative, value = (value >> (fmt.bits - 1)) != 0, value & ((1 << fmt.fraction_bits) - 1)
    elif fmt.signed:
        negative = np.asarray(value >= 1 << (fmt.bits - 1), bool)
        value = np.where(negative, (1 << fmt.bits) - value, value)
    return Decoded(np.where(value == 0, _ZERO, _NORMAL), negative, np.zeros(value.shape, np.int64), value)


def encode(
    fmt: Format, negative: NDArray[Any], significand: NDArray[Any], exponent: NDArray[Any],
    rounding: str = "RNE", overflow: str = "ieee",
) -> Bits:  # fmt: skip
    """Bit patterns of finite values ``(-1)**negative * significand * 2**exponent``, rounded once.

    ``overflow`` is ``ieee`` (by the rounding's direction), ``infinity`` (the
    format's NaN where it has no infinity) or ``largest``; for integer formats
    ``wrap`` or ``largest``.  A zero keeps its sign where the format has one.
    A value that the format cannot approach (negative in an unsigned one, zero
    in one without zero) becomes its NaN.  ``int64`` significands must be below 2**61.
    """
    negative = np.asarray(negative, dtype=bool)
    if not fmt.is_float:
        return _encode_integer(fmt, negative, significand, exponent, rounding, overflow)
    quantum = np.maximum(exponent + bit_length(significand) - 1, fmt.min_exponent) - fmt.fraction_bits
    kept = _round_to_quantum(fmt, negative, significand, exponent, quantum, rounding)
    carried = kept >= 2 << fmt.fraction_bits
    kept = np.where(carried, kept >> 1, kept)
    normal = kept >= 1 << fmt.fraction_bits
    field = np.where(normal, quantum + carried + (fmt.fraction_bits + fmt.bias), 0)
    field = np.minimum(field, 1 << fmt.exponent_bits).astype(np.uint64)
    fraction = np.where(normal, kept - (1 << fmt.fraction_bits), kept).astype(np.uint64)
    code = (field << np.uint64(fmt.fraction_bits) | fraction) << np.uint64(fmt.padding)
    special = fmt.infinity_code if fmt.infinity else fmt.nan_code
    if special is None or overflow == "largest":
        beyond = np.full(code.shape, fmt.largest, np.uint64)
    else:
        to_infinity = True if overflow == "infinity" else overflow_goes_to_infinity(rounding, negative)
        beyond = np.where(to_infinity, np.uint64(special), np.uint64(fmt.largest))
    code = np.where(code > np.uint64(fmt.largest), beyond, code)
    signs = negative & ((code != 0) | (fmt.nan != "negative_zero"))
    code = np.where(signs, code | np.uint64(fmt.sign_mask), code)
    if not fmt.signed and fmt.nan_code is not None:
        lost = (negative & (significand != 0)) | ((significand == 0) & (not fmt.subnormal))
        code = np.where(lost, np.uint64(fmt.nan_code), code)
    return code.astype(fmt.dtype)


_BY_PARITY = {"RNE": ("RNZ", "RNA"), "RNO": ("RNA", "RNZ"), "RO": ("RA", "RZ")}
"""What a parity rule does where the lower neighbour is even, and where it is odd."""


def _round_to_quantum(
    fmt: Format, negative: NDArray[Any], significand: NDArray[Any], exponent: NDArray[Any],
    quantum: NDArray[Any], rounding: str,
) -> NDArray[Any]:  # fmt: skip
    """The magnitudes in units of 2**quantum; even and odd are those of the code."""
    shift = quantum - exponent
    if fmt.fraction_bits or rounding not in _BY_PARITY:
        return shift_right(significand, shift, negative, rounding)
    even, odd = (shift_right(significand, shift, negative, mode) for mode in _BY_PARITY[rounding])
    return np.where((quantum + fmt.bias) & 1, odd, even)


def _encode_integer(
    fmt: Format, negative: NDArray[Any], significand: NDArray[Any], exponent: NDArray[Any],
    rounding: str, overflow: str,
) -> Bits:  # fmt: skip
    significand, exponent = np.asarray(significand), np.asarray(exponent)
    live = significand != 0
    top = np.where(live, exponent + bit_length(significand), 0).max(initial=0)
    if max(int(top), fmt.bits) > _WORD:  # whole numbers beyond int64
        significand = significand.astype(object)
    value = shift_right(significand, np.where(live, -exponent, 0), negative, rounding)
    value = np.where(negative, -value, value)
    if fmt.kind == "magnitude":
        size = np.minimum(abs(value), fmt.largest)
        return np.asarray(np.where(negative, size | fmt.sign_mask, size), dtype=np.uint64).astype(fmt.dtype)
    if overflow != "wrap":
        low = -(1 << (fmt.bits - 1)) if fmt.signed else 0
        value = np.minimum(np.maximum(value, low), fmt.largest)
    return np.asarray(value & ((1 << fmt.bits) - 1), dtype=np.uint64).astype(fmt.dtype)
