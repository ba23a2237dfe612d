"""Numbers of the oracle: formats by first principles, values as small classes, rounding by search.

A format is one line of text: sign bits, exponent bits, fraction bits, bias,
specials, bits to the right that are padding, and whether exponent field 0 holds
subnormals.  Everything else is found by decoding codes one by one; rounding looks
for the two codes around the exact value on a ruler of decoded codes (where the
spacing changes) and compares distances, so no exponent or shift arithmetic is
shared with the package.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

#            name       sign exp frac bias specials      padding subnormals
FLOATS = {
    row.split()[0]: row.split()[1:]
    for row in """
    f64      1 11 52 1023 ieee      0  yes
    f32      1  8 23  127 ieee      0  yes
    tf32     1  8 10  127 ieee      13 yes
    e8m13    1  8 13  127 ieee      10 yes
    f16      1  5 10   15 ieee      0  yes
    bf16     1  8  7  127 ieee      0  yes
    e5m2     1  5  2   15 ieee      0  yes
    e4m3     1  4  3    7 ones      0  yes
    e5m2fnuz 1  5  2   16 fnuz      0  yes
    e4m3fnuz 1  4  3    8 fnuz      0  yes
    e3m2     1  3  2    3 finite    0  yes
    e2m3     1  2  3    1 finite    0  yes
    e2m1     1  2  1    1 finite    0  yes
    ue8m0    0  8  0  127 ones      0  no
    ue4m3    0  4  3    7 ones      0  yes
    ue5m3    0  5  3   15 ones      0  yes
    e5m10f   1  5 10   15 finite    0  yes
    e5m2f    1  5  2   15 finite    0  yes
    e3m4ieee 1  3  4    3 ieee      0  yes
    e2m3ieee 1  2  3    1 ieee      0  yes
    e5m6fn   1  5  6   15 ones      0  yes
    e4m3b11fnuz 1 4 3  11 fnuz      0  yes
    ue4m4f   0  4  4    7 finite    0  yes
    e4m3b22fn    1 4 3  22 ones 0  yes
    e5m2b142ieee 1 5 2 142 ieee 0  yes
    """.strip().splitlines()
}
INTEGERS = {"s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "b1": 1}


@dataclass(frozen=True)
class Num:
    """An exact number; a zero has a sign; ``label`` is what an alignment sees (None: nothing)."""

    value: Fraction
    negative: bool
    label: int | None = None


@dataclass(frozen=True)
class Inf:
    negative: bool


@dataclass(frozen=True)
class Nan:
    """``code``: where payloads travel, the payload as a code of the result; else None."""

    code: int | None = None
    signalling: bool = False


@dataclass(frozen=True)
class FloatSpec:
    sign: int
    exponent: int
    fraction: int
    bias: int
    specials: str
    padding: int
    subnormals: bool

    @property
    def magnitude_codes(self) -> int:
        """How many codes there are without the sign bit (and without padding)."""
        return 1 << (self.exponent + self.fraction)


@cache
def spec(name: str) -> FloatSpec:
    sign, exponent, fraction, bias, specials, padding, subnormals = FLOATS[name]
    return FloatSpec(int(sign), int(exponent), int(fraction), int(bias), specials, int(padding), subnormals == "yes")


@lru_cache(maxsize=1 << 17)
def magnitude(name: str, code: int) -> Fraction | str:
    """What the code without sign and padding stands for: a number, ``"inf"`` or ``"nan"``."""
    f = spec(name)
    field, fraction = divmod(code, 1 << f.fraction)
    last = code == f.magnitude_codes - 1
    if f.specials == "ieee" and field == (1 << f.exponent) - 1:
        return "nan" if fraction else "inf"
    if f.specials == "ones" and last:
        return "nan"
    if field == 0 and f.subnormals:
        return Fraction(fraction, 1 << f.fraction) * power(1 - f.bias)
    return Fraction((1 << f.fraction) + fraction, 1 << f.fraction) * power(field - f.bias)


@cache
def largest_code(name: str) -> int:
    """The last code, without sign and padding, that is a finite number."""
    code = spec(name).magnitude_codes - 1
    while isinstance(magnitude(name, code), str) and code & ((1 << spec(name).fraction) - 1):
        code = code - 1 if spec(name).specials == "ones" else code & ~((1 << spec(name).fraction) - 1)
    while isinstance(magnitude(name, code), str):
        code -= 1
    return code


@cache
def lowest_exponent(name: str) -> int:
    """Exponent of the smallest normal number."""
    if name not in FLOATS:
        return 0
    f = spec(name)
    smallest = magnitude(name, (1 << f.fraction) if f.subnormals else 0)
    assert isinstance(smallest, Fraction)
    return floor_log2(smallest)


@cache
def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@lru_cache(maxsize=1 << 16)
def floor_log2(value: Fraction) -> int:
    """floor(log2(value)) of a positive number."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    while power(guess) > value:
        guess -= 1
    while power(guess + 1) <= value:
        guess += 1
    return guess


def split(name: str, code: int) -> tuple[bool, int]:
    """Sign and the code without sign and padding (and without ignored high bits)."""
    f = spec(name)
    code = (code >> f.padding) % (f.magnitude_codes << f.sign)
    return code >= f.magnitude_codes, code % f.magnitude_codes


@lru_cache(maxsize=1 << 17)
def decode(name: str, code: int) -> Num | Inf | Nan:
    """The value of a code; labels are encoded exponents, zeros have none; integers have label 0."""
    if name not in FLOATS:
        return decode_integer(name, code)
    negative, rest = split(name, code)
    what = magnitude(name, rest)
    if what == "nan" or (spec(name).specials == "fnuz" and negative and rest == 0):
        return Nan()
    if what == "inf":
        return Inf(negative)
    assert isinstance(what, Fraction)
    if not what:
        return Num(what, negative)
    return Num(-what if negative else what, negative, max(floor_log2(what), lowest_exponent(name)))


def decode_integer(name: str, code: int) -> Num:
    if name == "ti16":
        size, negative = code % 2048, bool(code & 0x8000)
    else:
        size = code % (1 << INTEGERS[name])
        negative = name[0] == "s" and size >= 1 << (INTEGERS[name] - 1)
        size = (1 << INTEGERS[name]) - size if negative else size
    return Num(Fraction(-size if negative else size), negative, 0 if size else None)


def choose(below: Fraction, above: Fraction, size: Fraction, negative: bool, odd: bool, mode: str) -> bool:
    """Whether the magnitude ``size`` strictly between two neighbours goes to the upper one.

    ``odd``: the lower neighbour is odd.
    """
    outward = {"RZ": False, "RA": True, "RU": not negative, "RD": negative, "RO": not odd}
    if mode in outward:
        return outward[mode]
    if size - below != above - size:
        return size - below > above - size
    return {"RNZ": False, "RNA": True, "RNU": not negative, "RND": negative, "RNE": odd, "RNO": not odd}[mode]


def round_to_multiple(value: Fraction, exponent: int, mode: str) -> Fraction:
    """``value`` rounded to a multiple of 2**exponent; even and odd are those of the multiple."""
    unit = power(exponent)
    size = abs(value)
    count = size // unit
    if count * unit == size:
        return value
    if choose(count * unit, (count + 1) * unit, size, value.numerator < 0, count % 2 == 1, mode):
        count += 1
    return -count * unit if value.numerator < 0 else count * unit


def round_fraction(name: str, value: Fraction, mode: str) -> Fraction | str:
    """``value`` (not zero) rounded to the format: a number with the value's sign, or ``"over"``.

    Above the largest finite number the neighbours are those of the same
    precision with unbounded exponent.
    """
    size, negative = abs(value), value.numerator < 0
    top = largest_code(name)
    largest = magnitude(name, top)
    assert isinstance(largest, Fraction)
    if size > largest:
        step = largest - finite(name, top - 1) if spec(name).fraction else largest
        if size >= largest + step or choose(largest, largest + step, size, negative, top % 2 == 1, mode):
            return "over"
        return -largest if negative else largest
    if size <= finite(name, 0):
        return round_below_lowest(name, size, negative, mode)
    low = last_code_up_to(name, size)
    below = finite(name, low)
    if below == size:
        return value
    above = finite(name, low + 1)
    size = above if choose(below, above, size, negative, low % 2 == 1, mode) else below
    return -size if negative else size


@cache
def ruler(name: str) -> tuple[list[int], list[Fraction]]:
    """The codes from which on a format's numbers are spaced evenly (one for each exponent field), and those numbers."""
    codes = list(range(0, largest_code(name) + 1, 1 << spec(name).fraction))
    return codes, [finite(name, code) for code in codes]


def last_code_up_to(name: str, size: Fraction) -> int:
    """The code of the largest number that is not above ``size``, which is neither below all of them nor above."""
    codes, numbers = ruler(name)
    mark = bisect_right(numbers, size) - 1
    if codes[mark] == largest_code(name):
        return codes[mark]
    spacing = finite(name, codes[mark] + 1) - numbers[mark]
    return min(codes[mark] + int((size - numbers[mark]) // spacing), largest_code(name))


def round_below_lowest(name: str, size: Fraction, negative: bool, mode: str) -> Fraction:
    """Formats without zero: whatever is below their lowest number becomes that number."""
    lowest = finite(name, 0)
    return -lowest if negative else lowest


def finite(name: str, code: int) -> Fraction:
    what = magnitude(name, code)
    assert isinstance(what, Fraction)
    return what


def code_of(name: str, value: Fraction, negative: bool) -> int:
    """The code (with sign and padding) of a number that the format holds exactly."""
    f = spec(name)
    low = last_code_up_to(name, abs(value))
    assert finite(name, low) == abs(value), f"{value} is not a number of {name}"
    signed = f.sign and negative and not (f.specials == "fnuz" and low == 0)
    return (low + (f.magnitude_codes if signed else 0)) << f.padding


def infinity_code(name: str, negative: bool) -> int | None:
    f = spec(name)
    if f.specials != "ieee":
        return None
    return (((1 << f.exponent) - 1 << f.fraction) + (f.magnitude_codes if negative else 0)) << f.padding


def nan_code(name: str, negative: bool = False) -> int | None:
    """The NaN that an overflow makes in a format without infinity; None where there is none."""
    f = spec(name)
    if f.specials == "fnuz":
        return f.magnitude_codes
    return f.magnitude_codes - 1 + (f.magnitude_codes if negative and f.sign else 0) if f.specials == "ones" else None


def goes_to_infinity(mode: str, negative: bool) -> bool:
    """IEEE 754 section 7.4."""
    return {"RZ": False, "RO": False, "RU": not negative, "RD": negative}.get(mode, True)


def encode_value(name: str, value: Fraction, negative: bool, mode: str, overflow: str = "ieee") -> int:
    """Code of a finite value rounded once; a test's counterpart of the package's ``encode``."""
    if name not in FLOATS:
        return encode_integer(name, value, mode, overflow)
    if not spec(name).sign and ((negative and value) or (not spec(name).subnormals and not value)):
        code = nan_code(name)
        assert code is not None
        return code
    rounded = Fraction(0) if not value else round_fraction(name, value, mode)
    if isinstance(rounded, Fraction):
        return code_of(name, rounded, negative)
    special = infinity_code(name, negative)
    special = nan_code(name, negative) if special is None else special
    if special is None or overflow == "largest" or (overflow == "ieee" and not goes_to_infinity(mode, negative)):
        return code_of(name, finite(name, largest_code(name)), negative)
    return special


def encode_integer(name: str, value: Fraction, mode: str, overflow: str) -> int:
    whole = int(round_to_multiple(value, 0, mode))
    if name == "ti16":
        return min(abs(whole), 2047) + (0x8000 if value < 0 else 0)
    width = INTEGERS[name]
    if overflow != "wrap":
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if name[0] == "s" else (0, (1 << width) - 1)
        whole = min(max(whole, low), high)
    return whole % (1 << width)
