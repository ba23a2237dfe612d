"""Scalar IEEE 754 arithmetic on bit patterns by Python integers: product, sum, fused multiply-add of one format."""

from __future__ import annotations

from dataclasses import dataclass


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

    def parts(self, x: int) -> tuple[int, int]:
        """Signed significand and the exponent of its lowest bit."""
        field, fraction = x >> self.fraction_bits & (self.infinity >> self.fraction_bits), x & (2 * self.quiet - 1)
        size = fraction | 2 * self.quiet if field else 0 if self.flush else fraction
        return -size if x & self.sign else size, max(field, 1) - 1 + self.emin - self.fraction_bits

    def fma(self, a: int, b: int, c: int) -> int:
        """a * b + c, one rounding; the first NaN of a, b, c, quieted."""
        for x in (a, b, c):
            if self.is_nan(x):
                return x | self.quiet
        sign = (a ^ b) & self.sign
        finite = [x & ~self.sign != self.infinity for x in (a, b, c)]
        if not finite[0] or not finite[1]:
            zero = any(ok and not self.parts(x)[0] for x, ok in zip((a, b), finite, strict=False))
            if zero or (not finite[2] and sign != c & self.sign):
                return self.sign | self.infinity | self.quiet
            return sign | self.infinity
        if not finite[2]:
            return c
        (x, i), (y, j), (z, low) = self.parts(a), self.parts(b), self.parts(c)
        lowest = min(i + j, low)
        total = (x * y << i + j - lowest) + (z << low - lowest)
        if total == 0:
            same = not x * y and not z and sign == c & self.sign
            return sign if same else self.sign * (self.rounding == "rd")
        return self.round(total, lowest)

    def add(self, x: int, y: int) -> int:
        """x + y; x before y where both are NaN."""
        one = ((1 << (self.exponent_bits - 1)) - 1) << self.fraction_bits
        return x | self.quiet if self.is_nan(x) else self.fma(one, x, y)

    def multiply(self, a: int, b: int) -> int:
        return self.fma(a, b, (a ^ b) & self.sign)

    def round(self, total: int, lowest: int) -> int:
        """The code of total * 2**lowest, not zero."""
        sign, size = (self.sign if total < 0 else 0), abs(total)
        top = lowest + size.bit_length() - 1
        free = top - self.fraction_bits  # the quantum with unbounded exponent
        if self.ftz and free + self.whole(size, lowest, free, sign).bit_length() - 1 < self.emin:
            return sign
        quantum = max(top, self.emin) - self.fraction_bits
        # adding the significand with its leading bit steps into the next exponent field where it carries
        code = (quantum + self.fraction_bits - self.emin << self.fraction_bits) + self.whole(
            size, lowest, quantum, sign
        )
        if code >= self.infinity:
            inward = self.rounding == "rz" or self.rounding == ("ru" if sign else "rd")
            return sign | self.infinity - inward
        return sign | code

    def whole(self, size: int, lowest: int, quantum: int, sign: int) -> int:
        """size * 2**lowest in units of 2**quantum, rounded."""
        if quantum <= lowest:
            return size << lowest - quantum
        kept = size >> quantum - lowest
        rest, half = size - (kept << quantum - lowest), 1 << quantum - lowest - 1
        up = {
            "rn": rest > half or (rest == half and kept % 2 == 1),
            "rz": False,
            "ru": rest > 0 and not sign,
            "rd": rest > 0 and bool(sign),
        }[self.rounding]
        return kept + up


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
