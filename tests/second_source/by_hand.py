"""Datapaths and vectors worked out by hand: values in, codes out."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Operand,
    Products,
    Special,
)

C = Accumulator()


def lanes(*of: int) -> Products:
    return Products(of)


def tensor_core(fraction_bits: int, length: int, zero: int, a: str = "f16", d: str = "f32", k: int = 0) -> Datapath:
    """T-FDPA: truncated fused dot-product-add."""
    to = Encode(d, rounding="RZ" if d == "f32" else "RNE", overflow="infinity", zero="positive")
    tree = Fused.alike((lanes(*range(length)), C), fraction_bits, "RZ", zero, to)
    return Datapath(
        a, a, d, d, k or length, tree, step=length, special=Special(code=0x7FFFFFFF if d == "f32" else 0x7FFF)
    )


def code(fmt: str, value: float | Fraction) -> int:
    """The code of a value that the format holds exactly."""
    value = Fraction(value)
    power = value.denominator.bit_length() - 1
    bits = formats.encode(
        formats.get(fmt), np.array([value < 0]), np.array([abs(value.numerator)], object), np.array([-power])
    )
    assert exact(fmt, int(bits[0])) == value
    return int(bits[0])


def exact(fmt: str, bits: int) -> Fraction:
    """The value of a finite code."""
    parts = formats.decode(formats.get(fmt), np.array([bits], formats.get(fmt).dtype))
    size = Fraction(int(parts.significand[0])) * Fraction(2) ** int(parts.exponent[0])
    return -size if parts.negative[0] else size


def dot(path: Datapath, a: list[float], b: list[float], c: float | int | None = None, **bits: list[int]) -> int:
    """One vector of values (c: a value); the missing lanes are +0."""
    pad = [0.0] * (path.k - len(a))
    arrays = {
        name: np.array([[code(fmt, value) for value in values]], formats.get(fmt).dtype)
        for name, fmt, values in (("a", path.a, a + pad), ("b", path.b, b + pad))
    }
    if path.c is not None:
        arrays["c"] = np.array([code(path.c, c or 0)], formats.get(path.c).dtype)
    for name, values in bits.items():
        arrays[name] = np.array([values], np.uint8)
    return int(evaluate(path, Batch(**arrays))[0])


def raw(path: Datapath, a: list[int], b: list[int], c: int | None = None) -> int:
    """One vector of bit patterns."""
    batch = Batch(
        np.array([a], formats.get(path.a).dtype),
        np.array([b], formats.get(path.b).dtype),
        None if path.c is None else np.array([c], formats.get(path.c).dtype),
    )
    return int(evaluate(path, batch)[0])


def p(n: int) -> float:
    return 2.0**n


def random_bits(fmt: str, shape: tuple[int, ...], seed: int, spread: int | None = None) -> Any:
    """Uniform codes, or with exponents within ``spread`` of 1."""
    f = formats.get(fmt)
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 63, shape, dtype=np.uint64) << np.uint64(1) | rng.integers(0, 2, shape, dtype=np.uint64)
    bits >>= np.uint64(64 - f.bits)
    if spread is not None:
        exponent = rng.integers(f.bias - spread, f.bias + spread + 1, shape).astype(np.uint64)
        field = np.uint64(((1 << f.exponent_bits) - 1) << f.fraction_bits)
        bits = (bits & ~field) | exponent << np.uint64(f.fraction_bits)
    return (bits << np.uint64(f.padding)).astype(f.dtype)


def rounded(value: Fraction, fmt: str, rounding: str) -> Fraction:
    """``value`` rounded to the format with unbounded range above, by fractions alone."""
    f = formats.get(fmt)
    if value == 0:
        return value
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, f.min_exponent) - f.fraction_bits)
    low = (value / unit).__floor__()
    rest = value / unit - low
    if rest == 0:
        return value
    toward = {"RU": low + 1, "RD": low, "RZ": low + (value < 0), "RA": low + (value > 0), "RO": low | 1}
    if rounding in toward:
        return toward[rounding] * unit
    if rest != Fraction(1, 2):
        return (low + (rest > Fraction(1, 2))) * unit
    tie = {"RNU": low + 1, "RND": low, "RNZ": low + (value < 0), "RNA": low + (value > 0)}
    tie |= {"RNE": low + (low & 1), "RNO": low | 1}
    return tie[rounding] * unit


FLUSH = Encode(subnormals="signed_zero")
DAZ = Operand("signed_zero")
VDPBF16PS = Datapath(
    "bf16", "bf16", "f32", "f32", 2, Fma(Fma(C, (1,), FLUSH), (0,), FLUSH),
    operand_a=DAZ, operand_b=DAZ, operand_c=DAZ,
    special=Special("global", 0xFFC00000, ("a0", "b0", "a1", "b1", "c")),
)  # fmt: skip


def fma(to: Encode | None = None, **more: Any) -> Datapath:
    return Datapath("f32", "f32", "f32", "f32", 1, Fma(C, (0,), to or Encode()), **more)


def f32_sum(to: Encode | None = None, **more: Any) -> Datapath:
    return Datapath("f32", "f32", "f32", "f32", 1, Exact((lanes(0), C), to or Encode()), **more)
