"""Scalar IEEE 754 arithmetic on bit patterns by fractions: product, sum, fused multiply-add of one format."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Exact:
    """A format and a control state; ``flush`` reads subnormal operands as zeros, ``ftz`` writes them so."""

    exponent_bits: int
    fraction_bits: int
    rounding: str = "rn"
    ftz: bool = False
    flush: bool = False

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.fraction_bits)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def quiet(self) -> int:
        return 1 << (self.fraction_bits - 1)

    @property
    def emin(self) -> int:
        return 2 - (1 << (self.exponent_bits - 1))

    def is_nan(self, x: int) -> bool:
        return x & ~self.sign > self.infinity

    def value(self, x: int) -> Fraction:
        field, fraction = x >> self.fraction_bits & (self.infinity >> self.fraction_bits), x & (2 * self.quiet - 1)
        if field == 0 and self.flush:
            fraction = 0
        significand = fraction | (2 * self.quiet if field else 0)
        size = Fraction(significand) * Fraction(2) ** (max(field, 1) - 1 + self.emin - self.fraction_bits)
        return -size if x & self.sign else size

    def fma(self, a: int, b: int, c: int) -> int:
        """a * b + c, one rounding; the first NaN of a, b, c, quieted."""
        for x in (a, b, c):
            if self.is_nan(x):
                return x | self.quiet
        sign = (a ^ b) & self.sign
        finite = [x & ~self.sign != self.infinity for x in (a, b, c)]
        if not finite[0] or not finite[1]:
            zero = any(ok and not self.value(x) for x, ok in zip((a, b), finite, strict=False))
            if zero or (not finite[2] and sign != c & self.sign):
                return self.sign | self.infinity | self.quiet
            return sign | self.infinity
        if not finite[2]:
            return c
        total = self.value(a) * self.value(b) + self.value(c)
        if total == 0:
            same = not self.value(c) and not self.value(a) * self.value(b) and sign == c & self.sign
            return sign if same else self.sign * (self.rounding == "rd")
        return self.round(total)

    def add(self, x: int, y: int) -> int:
        """x + y; x before y where both are NaN."""
        one = ((1 << (self.exponent_bits - 1)) - 1) << self.fraction_bits
        return x | self.quiet if self.is_nan(x) else self.fma(one, x, y)

    def multiply(self, a: int, b: int) -> int:
        return self.fma(a, b, (a ^ b) & self.sign)

    def round(self, total: Fraction) -> int:
        sign, size = (self.sign if total < 0 else 0), abs(total)
        top = size.numerator.bit_length() - size.denominator.bit_length()
        top -= size < Fraction(2) ** top
        if self.ftz and self.whole(size, top - self.fraction_bits, sign) < Fraction(2) ** self.emin:
            return sign
        code = self.whole(size, max(top, self.emin) - self.fraction_bits, sign)
        if code >= Fraction(2) ** (1 << (self.exponent_bits - 1)):
            inward = self.rounding == "rz" or self.rounding == ("ru" if sign else "rd")
            return sign | self.infinity - inward
        if code < Fraction(2) ** self.emin:
            return sign | int(code / Fraction(2) ** (self.emin - self.fraction_bits))
        top = code.numerator.bit_length() - code.denominator.bit_length()
        top -= code < Fraction(2) ** top
        significand = int(code / Fraction(2) ** (top - self.fraction_bits)) & (2 * self.quiet - 1)
        return sign | (top - self.emin + 1) << self.fraction_bits | significand

    def whole(self, size: Fraction, exponent: int, sign: int) -> Fraction:
        """A multiple of 2**exponent: ``size`` rounded."""
        unit = Fraction(2) ** exponent
        kept, rest = divmod(size, unit)
        up = {
            "rn": rest > unit / 2 or (rest == unit / 2 and kept % 2 == 1),
            "rz": False,
            "ru": rest > 0 and not sign,
            "rd": rest > 0 and bool(sign),
        }[self.rounding]
        return (kept + up) * unit


def scalar_families(rng, exponent_bits, fraction_bits, count):
    """Named families of ``count`` bit patterns: near one, products near the lowest normal, subnormals, specials."""
    bias, top = (1 << (exponent_bits - 1)) - 1, (1 << exponent_bits) - 1
    low = bias - bias // 2 - 3

    def make(first, last):
        out = []
        for _ in range(count):
            fraction = int(rng.integers(0, 1 << 62)) % (1 << fraction_bits)
            fraction &= -1 << int(rng.integers(0, fraction_bits + 1))
            field = int(rng.integers(first, last))
            out.append((int(rng.integers(0, 2)) << exponent_bits | field) << fraction_bits | fraction)
        return out

    return {
        "near": lambda: make(bias - 3, bias + 4),
        "tiny": lambda: make(low, low + 6),
        "low": lambda: make(0, 3),
        "ends": lambda: make(0, 2) if rng.random() < 0.5 else make(top - 1, top + 1),
        "any": lambda: make(0, top + 1),
    }
