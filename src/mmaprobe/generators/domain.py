"""The domain of a generator: what it must know of an instruction, small integers, the same for NumPy and C++."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction

POW2, FULL, ONES, LOWBIT, TOP2, UPPER, GRAZE_A, GRAZE_B, GIVEN = range(9)
"""Fraction patterns: 1.0, random, all ones, one ulp above 1, two random top bits, random upper half; a pair whose
product lies within a few places below 2: 2 - 2 s u and 1 + s u for the unit u and a small random s; and, in tiles, a
fraction that the family gives."""

NAN_RULES = ("none", "ieee", "all_ones", "negative_zero")


@dataclass(frozen=True)
class CodeLayout:
    """One operand format as integers.

    The code of a finite value with exponent e and fraction x is
    ``((max(e, normal) - normal) << fraction) + ((implicit | x) >> max(normal - e, 0))``, shifted by ``padding``.
    """

    present: int = 0
    is_float: int = 0
    bits: int = 0  # of the container that a raw value may use
    item: int = 0  # bytes of the container
    fraction: int = 0
    implicit: int = 0
    normal: int = 0  # exponent of the lowest normal
    low: int = 0  # exponent of the lowest nonzero value
    top: int = 0  # exponent of the largest finite value
    padding: int = 0
    largest: int = 0  # code of the largest finite value, padding left out
    sign: int = 0  # sign bit in the container
    infinity: int = 0  # code of +infinity, padding left out; 0: none
    nan_rule: int = 0  # index into NAN_RULES


def layout(name: str | None) -> CodeLayout:
    """The integers of a format; all zero for an absent operand."""
    if name is None:
        return CodeLayout()
    f = formats.get(name)
    bits = f.bits + f.padding + f.ignored_high
    if not f.is_float:
        return CodeLayout(1, 0, bits, f.container_bits // 8, sign=f.sign_mask)
    low = f.min_exponent - (f.fraction_bits if f.subnormal else 0)
    return CodeLayout(
        1, 1, bits, f.container_bits // 8, f.fraction_bits, f.subnormal << f.fraction_bits, f.min_exponent, low,
        f.max_exponent, f.padding, f.largest >> f.padding, f.sign_mask, (f.infinity_code or 0) >> f.padding,
        NAN_RULES.index(f.nan),
    )  # fmt: skip


def fraction_masks(fraction: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(keep, set) by pattern: the fraction is ``random & keep | set``, in ``fraction`` bits."""
    full = (1 << fraction) - 1
    keep = (0, full, 0, 0, full & ~(full >> 2), full & ~((1 << (fraction // 2)) - 1), 0, 0, 0)
    return keep, (0, 0, full, full & 1, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Space:
    """The exponents that an instruction's terms and results can have (floating formats), and its lanes.

    ``live`` lanes are multiplied (half of K where A is sparse).  Exponents of
    products include the block scales.  ``anchor_*`` bound the largest term
    such that it is a normal product, C can hold it and K of them do not
    overflow the result.
    """

    k: int
    live: int
    chunk: int
    groups: int  # scale blocks, 0 without scales
    group_lanes: int  # live lanes of a scale block
    product_top: int
    product_normal: int
    product_low: int
    anchor_top: int
    anchor_low: int
    c_top: int
    d_top: int
    d_normal: int
    d_low: int
    d_fraction: int


@dataclass(frozen=True)
class Domain:
    """An instruction as generators see it: formats, and what exponents and lanes there are."""

    a: CodeLayout
    b: CodeLayout
    c: CodeLayout
    d: CodeLayout
    scale: CodeLayout
    space: Space

    def packed(self) -> NDArray[np.int64]:
        """Every integer in order, the argument of the native generator; read-only."""
        return self._packed

    @cached_property
    def _packed(self) -> NDArray[np.int64]:
        parts = (self.a, self.b, self.c, self.d, self.scale, self.space)
        flat = [value for part in parts for value in astuple(part)]
        packed = np.array([value - (1 << 64) if value >> 63 == 1 else value for value in flat], dtype=np.int64)
        packed.flags.writeable = False
        return packed


@lru_cache(maxsize=512)
def domain(instruction: Instruction) -> Domain:
    """The domain of an instruction."""
    a, b, c, d = (layout(name) for name in (instruction.a, instruction.b, instruction.c, instruction.d))
    scale = layout(instruction.scale)
    k = instruction.k
    live = k // 2 if instruction.chunk else k
    groups = k // instruction.scale_size if instruction.scale_size else 0
    top = a.top + b.top + 2 * scale.top
    normal = a.normal + b.normal + 2 * scale.normal
    c_top = min(c.top, d.top) if c.is_float else d.top
    anchor_top = min(top, c_top, d.top - 1 - (live - 1).bit_length())
    anchor_low = min(max(normal, d.normal), anchor_top)
    low = a.low + b.low + 2 * scale.low
    space = Space(
        k, live, instruction.chunk, groups, live // groups if groups else 0, top, normal, low,
        anchor_top, anchor_low, c_top, d.top, d.normal, d.low, d.fraction,
    )  # fmt: skip
    return Domain(a, b, c, d, scale, space)
