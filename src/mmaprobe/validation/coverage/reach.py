"""What the formats of an instruction can reach: the exponents of its terms and of their sum."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format

_INTEGER_PLACES = 32
"""Places of an integer's sum beyond which cells are not told apart."""


@dataclass(frozen=True)
class SumReach:
    """Exponents as floor(log2 |x|): of a product ``low`` to ``top`` (every one between them occurs, since powers of two
    do), of C ``c_low`` to ``c_top`` (None where there is none), of a sum at most ``sum_top``; ``lowest``: that of the
    lowest bit of any term.

    ``places``: the bits of D's significand, and one more, the guard.
    ``signed``, ``c_signed``: whether a product, C, can be negative; ``special``: whether an operand can be infinite or
    NaN.  ``cancels``: the largest exponent of a term that others certainly cancel, None where none does.
    """

    lanes: int
    low: int
    top: int
    c_low: int | None
    c_top: int
    sum_top: int
    signed: bool
    c_signed: bool
    special: bool
    places: int
    a: Format
    b: Format
    c: Format | None
    d: Format
    scale: Format | None

    @property
    def has_c(self) -> bool:
        return self.c_low is not None

    @property
    def lowest(self) -> int:
        return self.low if self.c_low is None else min(self.low, self.c_low)

    @property
    def cancels(self) -> int | None:
        products = self.top if self.signed and self.lanes > 1 else None
        if self.c_low is None or not (self.signed or self.c_signed):
            return products
        # C against all lanes: one place less than the largest sum of products, which may come just short of it
        against_c = min(self.c_top, self.top + self.lanes.bit_length() - 2)
        return max(against_c, self.c_low if products is None else products)

    @property
    def depth(self) -> int:
        """Places that certainly can cancel below the largest term."""
        if self.cancels is None:
            return 0
        deepest = self.cancels - self.lowest
        if self.lanes > 1 or self.c is None or not self.d.is_float:
            return deepest
        # of a single product (1 + 2^-i)(1 + 2^-j) = 1 + 2^-i + 2^-j + 2^-(i + j) C takes all but the last; or C is the
        # number below a power of two
        beside_c = sum(min(x.fraction_bits, self.c.fraction_bits) for x in (self.a, self.b))
        return min(deepest, max(beside_c, self.c.fraction_bits + 1))


@lru_cache(maxsize=512)
def reach_of(made: Instruction) -> SumReach:
    """The reach of an instruction's formats."""
    known = made.formats()
    a, b, c, d, scale = (known.get(name) for name in ("a", "b", "c", "d", "scale_a"))
    assert a is not None
    assert b is not None
    assert d is not None
    times = Fraction(1) if scale is None else _value(scale, scale.largest) ** 2
    corners = [x * y * times for x in _ends(a) for y in _ends(b)]
    low = _lowest(a) + _lowest(b) + (0 if scale is None else 2 * _lowest(scale))
    c_ends = (Fraction(0),) if c is None else _ends(c)
    sums = [made.selected * pick(corners) + pick(c_ends) for pick in (max, min)]
    return SumReach(
        lanes=made.selected,
        low=low,
        top=_log2(max(map(abs, corners))),
        c_low=None if c is None else _lowest(c),
        c_top=_log2(max(map(abs, c_ends))) if c is not None else 0,
        sum_top=_log2(max(map(abs, sums))),
        signed=a.signed or b.signed,
        c_signed=c is not None and c.signed,
        special=any(fmt is not None and (fmt.infinity or fmt.nan != "none") for fmt in (a, b, c, scale)),
        places=d.fraction_bits + 2 if d.is_float else min(d.bits, _INTEGER_PLACES),
        a=a, b=b, c=c, d=d, scale=scale,
    )  # fmt: skip


def _ends(fmt: Format) -> tuple[Fraction, Fraction]:
    """The smallest and the largest finite value of a format."""
    largest = _value(fmt, fmt.largest)
    if not fmt.signed:
        return Fraction(0), largest
    return -largest - (fmt.kind == "integer"), largest


def _value(fmt: Format, code: int) -> Fraction:
    """The value of a code that is finite and not negative."""
    if not fmt.is_float:
        return Fraction(code)
    code >>= fmt.padding
    field, fraction = code >> fmt.fraction_bits, code & ((1 << fmt.fraction_bits) - 1)
    low = field == 0 and fmt.subnormal
    significand = fraction if low else fraction | 1 << fmt.fraction_bits
    return significand * Fraction(2) ** ((fmt.min_exponent if low else field - fmt.bias) - fmt.fraction_bits)


def _lowest(fmt: Format) -> int:
    """The exponent of the lowest value above 0."""
    if not fmt.is_float:
        return 0
    return fmt.min_exponent - (fmt.fraction_bits if fmt.subnormal else 0)


def _log2(value: Fraction) -> int:
    """floor(log2 value)."""
    found = value.numerator.bit_length() - value.denominator.bit_length()
    return found if value >= Fraction(2) ** found else found - 1
