"""Vendors' pseudo-code of CPU instructions in a few lines of NumPy, independent of the package.

Floats are computed in float64 by round to odd, which makes one later rounding
to float32 exact: 53 >= 24 + 2 bits.
"""

from __future__ import annotations

import numpy as np

QUIET = np.uint32(0x00400000)
INVALID = np.uint32(0xFFC00000)


def f32(bits):
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


def bits_of(values):
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def is_nan(bits):
    return (bits & np.uint32(0x7FFFFFFF)) > 0x7F800000


def daz(bits):
    """Subnormals become zeros of their own sign."""
    return np.where(bits & np.uint32(0x7F800000), bits, bits & np.uint32(0x80000000)).astype(np.uint32)


def odd_sum(x, y):
    """x + y of float64, rounded to odd."""
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part)
    code = total.view(np.int64)
    away = (rest > 0) == (total > 0)
    fix = np.isfinite(total) & (rest != 0) & (code & 1 == 0)
    return np.where(fix, code + np.where(away, 1, -1), code).view(np.float64)


def to_f32(x, rounding="rn", ftz=False):
    """float32 bits of float64 values that were rounded to odd; tininess is detected after rounding."""
    near = x.astype(np.float32)
    if rounding != "rn":
        low = np.where(near > x, np.nextafter(near, np.float32(-np.inf)), near)
        high = np.where(near < x, np.nextafter(near, np.float32(np.inf)), near)
        near = {"rd": low, "ru": high, "rz": np.where(x < 0, high, low)}[rounding].astype(np.float32)
        near = np.copysign(near, x).astype(np.float32)
    if not ftz:
        return bits_of(near)
    scaled = to_f32(x * 2.0**64, rounding)  # the same rounding with 64 more exponents below
    tiny = (f32(scaled & np.uint32(0x7FFFFFFF)) < 2.0**-62) & (x != 0)
    return np.where(tiny, bits_of(near) & np.uint32(0x80000000), bits_of(near))


def fma(a, b, c, rounding="rn", ftz=False):
    """float32 bits of a * b + c for float32 bits, one rounding; NaN results are left to the caller."""
    with np.errstate(all="ignore"):
        product = f32(a).astype(np.float64) * f32(b).astype(np.float64)
        addend = f32(c).astype(np.float64)
        total = odd_sum(product, addend)
        zero = (total == 0) & (np.signbit(product) != np.signbit(addend))
        total = np.where(zero, -0.0 if rounding == "rd" else 0.0, total)
        return to_f32(total, rounding, ftz)


def first_nan(d, operands):
    """d, where NaN replaced by the first NaN among the operands, quieted, or by the invalid code."""
    chosen = np.full(d.shape, INVALID)
    for operand in reversed(operands):
        chosen = np.where(is_nan(operand), operand | QUIET, chosen)
    return np.where(is_nan(d), chosen, d).astype(np.uint32)


def multiply(a, b, rounding="rn", ftz=False):
    """float32 bits of a * b, a before b where both are NaN."""
    with np.errstate(all="ignore"):
        d = to_f32(f32(a).astype(np.float64) * f32(b).astype(np.float64), rounding, ftz)
    return first_nan(d, (a, b))


def add(x, y, rounding="rn", ftz=False):
    """float32 bits of x + y, x before y where both are NaN."""
    return first_nan(fma(np.full_like(x, 0x3F800000), x, y, rounding, ftz), (x, y))


def dpps(a, b, rounding="rn", ftz=False, flush=False):
    """(p1 + p0) + (p3 + p2): every multiplication and addition rounds, and flushes its own operands."""
    kept = daz if flush else np.asarray

    def pair(x, y):
        return add(kept(x), kept(y), rounding, ftz)

    p = [multiply(kept(a[:, k]), kept(b[:, k]), rounding, ftz) for k in range(4)]
    return pair(pair(p[1], p[0]), pair(p[3], p[2]))


def widen(bits):
    """float32 bits of bf16 bits."""
    return bits.astype(np.uint32) << np.uint32(16)


def vdpbf16ps(a, b, c):
    """fma(a0, b0, fma(a1, b1, c)), subnormals read and written as zeros of their sign."""
    a, b = widen(a), widen(b)
    inner = fma(daz(a[:, 1]), daz(b[:, 1]), daz(c), ftz=True)
    d = fma(daz(a[:, 0]), daz(b[:, 0]), inner, ftz=True)
    return first_nan(d, (a[:, 0], b[:, 0], a[:, 1], b[:, 1], c))


def int32(total, saturate=False):
    """uint32 bits of int64 sums, wrapped or limited to 32 bits."""
    if saturate:
        total = np.clip(total, -(2**31), 2**31 - 1)
    return (total & 0xFFFFFFFF).astype(np.uint32)


def tile_dot(a, b, c):
    """d = c + (even chain + odd chain) over float32 bits a (n, 16, K), b (n, K, 16), c (n, 16, 16).

    Two chains of fused multiply-adds from +0, over the even and over the odd
    k; results flushed, c read with subnormals as zeros.
    """
    n, _, lanes = a.shape
    chains = [np.zeros((n, 16, 16), np.uint32) for _ in range(2)]
    for k in range(lanes):
        x = np.broadcast_to(a[:, :, k, None], (n, 16, 16))
        y = np.broadcast_to(b[:, None, k, :], (n, 16, 16))
        acc = chains[k % 2]
        chains[k % 2] = first_nan(fma(x, y, acc, ftz=True), (x, y, acc))
    return add(daz(c), add(*chains, ftz=True), ftz=True)


def widen_f16(bits):
    """float32 bits of f16 bits; a NaN keeps its payload and stays signalling."""
    sign = (bits & np.uint16(0x8000)).astype(np.uint32) << np.uint32(16)
    nan = sign | np.uint32(0x7F800000) | (bits & np.uint16(0x3FF)).astype(np.uint32) << np.uint32(13)
    return np.where(bits & np.uint16(0x7FFF) > 0x7C00, nan, bits_of(bits.view(np.float16).astype(np.float32)))
