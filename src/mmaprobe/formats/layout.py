"""The layout of every number format: one frozen record each, everything else derived; and of those that a name
declares.

Sources: IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0; OCP
Microscaling Formats 1.0; PTX ISA (tf32, ue4m3, ue8m0); LLVM's APFloat (suffixes of declared formats).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from mmaprobe.errors import UsageError, brief, near


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
    def has_sign_bit(self) -> bool:
        """True where flipping one bit negates every value: not in two's complement, nor where -0 is the NaN."""
        return self.signed and self.kind in ("float", "magnitude") and self.nan != "negative_zero"

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
        """Code of 1; in a format whose numbers are all smaller, of its largest power of two."""
        exponent = min(0, self.max_exponent)
        return (exponent + self.bias) << self.fraction_bits << self.padding if self.is_float else 1


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
    Format("u32", "integer", 32, signed=False),
    Format("s64", "integer", 64),
    Format("b1", "bits", 1, signed=False),
    Format("ti16", "magnitude", 16, fraction_bits=11),
)

FORMATS: dict[str, Format] = {f.name: f for f in _ALL}


_SPECIALS = {"ieee": ("ieee", True), "fnuz": ("negative_zero", False), "fn": ("all_ones", False), "f": ("none", False)}
"""How a declared format ends: its NaNs, and whether it has infinities.  ``f``: finite alone, every code a number."""
_DECLARED = re.compile(rf"(u?)e([1-9]\d?)m(0|[1-9]\d?)(?:b(0|[1-9]\d{{0,3}}))?({'|'.join(_SPECIALS)})")
MOST_EXPONENT = 11
"""Bits of a declared format's exponent, at most."""
MOST_FRACTION = 52
"""Bits of its fraction, at most."""
MOST_BIAS = (1 << MOST_EXPONENT) - 2
"""Its bias, at most: that with which an exponent of the most bits still holds 1 and infinities."""


def get(name: str) -> Format:
    """The format called ``name``: one of ``FORMATS``, or one that its name declares.

    A declared float is spelled ``e5m10f``: so many exponent and fraction bits, the bias behind a ``b`` where it is
    not 2**(e - 1) - 1, and what is special: ``ieee`` (the largest exponent holds infinities and NaNs), ``fn``
    (all ones are NaN), ``fnuz`` (the code of -0 is NaN), ``f`` (none: every code is a number); ``u`` in front: no
    sign, as of scales.  The suffixes are LLVM's.  With a larger bias by n all numbers are 2**n times smaller.
    UsageError, with the near names, for any other name, for another spelling of a format, for a layout whose numbers
    are all larger than 1, and for one without a sign (of scales) that holds no 1.
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        if not isinstance(name, str) or not _DECLARED.fullmatch(name):
            raise UsageError(f"unknown format {brief(name)}{near(name, FORMATS)}") from None
    return _declared(name)


def downscaled(fmt: Format, by: int) -> Format:
    """The format whose every number is 2**-by (``by`` above 0) times what its code is in ``fmt``: of a larger bias.

    UsageError where no name declares it: of integers, of formats whose containers have bits without a meaning, of a
    bias that is too large.
    """
    if not fmt.is_float or fmt.padding or fmt.ignored_high:
        raise UsageError(f"format {fmt.name}: no name declares it with another bias")
    end = next(end for end, special in _SPECIALS.items() if special == (fmt.nan, fmt.infinity))
    return get(f"{'' if fmt.signed else 'u'}e{fmt.exponent_bits}m{fmt.fraction_bits}b{fmt.bias + by}{end}")


@lru_cache(maxsize=1024)
def _declared(name: str) -> Format:
    """The format that a name declares."""
    sign, exponents, fractions, bias, end = _DECLARED.fullmatch(name).groups()  # type: ignore[union-attr]
    exponent, fraction, signed = int(exponents), int(fractions), not sign
    if exponent > MOST_EXPONENT or fraction > MOST_FRACTION or (signed and not fraction):
        raise UsageError(
            f"format {name}: {exponent} exponent and {fraction} fraction bits; a format can have 1 to {MOST_EXPONENT} "
            f"and {1 if signed else 0} to {MOST_FRACTION}"
        )
    nan, infinity = _SPECIALS[end]
    if not signed and (infinity or nan == "negative_zero"):
        raise UsageError(f"format {name}: one without a sign ends with f or fn")
    usual = (1 << (exponent - 1)) - 1
    made = Format(
        name, "float", signed + exponent + fraction, exponent, fraction, bias=usual if bias is None else int(bias),
        signed=signed, infinity=infinity, nan=nan, subnormal=fraction > 0,
    )  # fmt: skip
    if made.bias > MOST_BIAS:
        raise UsageError(f"format {name}: a bias of {made.bias}; a format can have {MOST_BIAS}")
    if made.min_exponent > 0 or (made.max_exponent < 0 and not signed):
        raise UsageError(f"format {name}: a bias of {made.bias} leaves no code for 1, which this format must have")
    own = next((fmt.name for fmt in _ALL if replace(fmt, name=name) == made), name)
    if own == name and bias is not None and made.bias == usual:
        own = name.replace(f"b{bias}", "")
    if own != name:
        raise UsageError(f"format {name} is called {own}")
    return made
