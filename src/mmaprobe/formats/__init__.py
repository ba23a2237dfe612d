"""Number formats: their layouts, and bit patterns taken apart and put together.

A bit pattern is an unsigned integer in the low bits of its container
(``uint8/16/32/64``).  A decoded finite value is

    (-1)**negative * significand * 2**exponent

with an integer significand and the exponent of its lowest bit.  Subnormals
keep the exponent of the format's lowest normal, as hardware labels them.
"""

from mmaprobe.formats.codes import (
    INFINITE,
    NAN,
    NORMAL,
    SUBNORMAL,
    ZERO,
    Bits,
    Decoded,
    decode,
    encode,
    is_nan,
    is_zero,
)
from mmaprobe.formats.integers import integer_range, whole_codes, whole_numbers
from mmaprobe.formats.layout import FORMATS, Format, downscaled, get
from mmaprobe.formats.rounding import ROUNDINGS, bit_length, overflow_goes_to_infinity, shift_right

__all__ = [
    "FORMATS", "INFINITE", "NAN", "NORMAL", "ROUNDINGS", "SUBNORMAL", "ZERO", "Bits", "Decoded", "Format",
    "bit_length", "decode", "downscaled", "encode", "get", "integer_range", "is_nan", "is_zero",
    "overflow_goes_to_infinity", "shift_right", "whole_codes", "whole_numbers",
]  # fmt: skip
