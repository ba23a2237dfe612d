"""Vendors' pseudo-code of CPU instructions in a few lines of NumPy, independent of the package.

Floats are computed in float64 by round to odd, which makes one later rounding
to float32 or float16 exact: 53 >= 24 + 2 bits.  float64 itself goes one value at
a time through ``oracle.exact``.

What the vendors' texts say of the payload of a NaN result (``PAYLOAD``):
VDPBF16PS: Intel SDM, table of NaN propagation priorities, low pair first, then
the high pair, then the accumulator.  FMA: SDM volume 1, the first NaN of the
three sources.  Arm: default NaN for the bf16 and the SME instructions (as if FPCR.DN is 1),
FPProcessNaNs for FMMLA, signalling before quiet, first before second.  DPPS, DPPD
and AMX: not fixed by any text; their NaNs are compared as NaN.
"""

from __future__ import annotations

import numpy as np

from oracle.exact import Exact

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


DPPS_PAIRS = {"intel": ((1, 0), (3, 2)), "amd": ((0, 1), (2, 3))}
"""Which product of a pair is the sum's first operand: no text says it, both were measured; only NaN payloads tell."""


def dpps(a, b, rounding="rn", ftz=False, flush=False, vendor="intel"):
    """(p1 + p0) + (p3 + p2), on AMD (p0 + p1) + (p2 + p3).

    Every multiplication and addition rounds, and flushes its own operands.
    """
    kept = daz if flush else np.asarray

    def pair(x, y):
        return add(kept(x), kept(y), rounding, ftz)

    p = [multiply(kept(a[:, k]), kept(b[:, k]), rounding, ftz) for k in range(4)]
    low, high = (pair(p[x], p[y]) for x, y in DPPS_PAIRS[vendor])
    return pair(low, high)


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
    """d = c + (even chain + odd chain) over float32 bits a (n, M, K), b (n, K, N), c (n, M, N).

    Two chains of fused multiply-adds from +0, over the even and over the odd
    k; results flushed, c read with subnormals as zeros.
    """
    chains = [np.zeros(c.shape, np.uint32) for _ in range(2)]
    for k in range(a.shape[-1]):
        x, y = np.broadcast_to(a[:, :, k, None], c.shape), np.broadcast_to(b[:, None, k, :], c.shape)
        acc = chains[k % 2]
        chains[k % 2] = first_nan(fma(x, y, acc, ftz=True), (x, y, acc))
    return add(daz(c), add(*chains, ftz=True), ftz=True)


def widen_f16(bits):
    """float32 bits of f16 bits; a NaN keeps its payload and stays signalling."""
    sign = (bits & np.uint16(0x8000)).astype(np.uint32) << np.uint32(16)
    nan = sign | np.uint32(0x7F800000) | (bits & np.uint16(0x3FF)).astype(np.uint32) << np.uint32(13)
    return np.where(bits & np.uint16(0x7FFF) > 0x7C00, nan, bits_of(bits.view(np.float16).astype(np.float32)))


# --- half and double precision FMA, DPPD


def vfmadd_f16(a, b, c, rounding="rn"):
    """float16 bits of a * b + c: exact in float64 by round to odd (53 >= 11 + 2); subnormals kept."""
    x, y, z = (np.ascontiguousarray(v, np.uint16).view(np.float16).astype(np.float64) for v in (a, b, c))
    with np.errstate(all="ignore"):
        product = x * y
        total = odd_sum(product, z)
        zero = (total == 0) & (np.signbit(product) != np.signbit(z))
        total = np.where(zero, -0.0 if rounding == "rd" else 0.0, total)
        near = total.astype(np.float16)
        low = np.where(near > total, np.nextafter(near, np.float16(-np.inf)), near)
        high = np.where(near < total, np.nextafter(near, np.float16(np.inf)), near)
        chosen = {"rn": near, "rd": low, "ru": high, "rz": np.where(total < 0, high, low)}[rounding]
        d = np.copysign(chosen, total).astype(np.float16).view(np.uint16)
    result = np.where(np.isnan(total), np.uint16(0xFE00), d)
    for operand in (c, b, a):
        result = np.where(operand & np.uint16(0x7FFF) > 0x7C00, operand | np.uint16(0x0200), result)
    return result


def vfmadd_f64(a, b, c, rounding="rn", ftz=False, flush=False):
    """float64 bits of a * b + c, one value at a time."""
    unit = Exact(11, 52, rounding, ftz, flush)
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([unit.fma(*row) for row in rows], np.uint64)


def dppd(a, b, rounding="rn", ftz=False, flush=False):
    """p1 + p0, each rounded."""
    unit = Exact(11, 52, rounding, ftz, flush)
    rows = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([unit.add(unit.multiply(x[1], y[1]), unit.multiply(x[0], y[0])) for x, y in rows], np.uint64)


# --- Arm: BFMulH, BFAdd, BFDotAdd without FEAT_EBF16; FPMatMulAdd


def round_to_odd(x):
    """float32 bits of float64 values (themselves exact or rounded to odd) as BFRound has it: round to odd,
    overflow to infinity, below 2**-126 before rounding to a zero of its sign, every NaN the default one."""
    near = x.astype(np.float32)
    cut = np.where(abs(near) > abs(x), np.nextafter(near, np.float32(0)), near).astype(np.float32)
    code = bits_of(cut)
    code = np.where(np.isfinite(x) & (cut != x), code | np.uint32(1), code)
    sign = np.where(np.signbit(x), np.uint32(0x80000000), np.uint32(0))
    code = np.where(abs(x) >= 2.0**128, sign | np.uint32(0x7F800000), code)
    code = np.where(abs(x) < 2.0**-126, sign, code)
    return np.where(np.isnan(x), np.uint32(0x7FC00000), code).astype(np.uint32)


def bf_multiply(a, b):
    with np.errstate(all="ignore"):
        return round_to_odd(f32(daz(widen(a))).astype(np.float64) * f32(daz(widen(b))).astype(np.float64))


def bf_add(x, y):
    with np.errstate(all="ignore"):
        x, y = (f32(daz(v)).astype(np.float64) for v in (x, y))
        return round_to_odd(odd_sum(x, y))


def bfdot(a, b, c):
    """c + (a0 b0 + a1 b1) for each pair of K in turn: BFDOT has one pair, BFMMLA two."""
    for k in range(0, a.shape[1], 2):
        c = bf_add(c, bf_add(bf_multiply(a[:, k], b[:, k]), bf_multiply(a[:, k + 1], b[:, k + 1])))
    return c


def process_nans(d, x, y):
    """FPProcessNaNs: a signalling x, a signalling y, a quiet x, a quiet y, else the default NaN."""
    chosen = np.where(is_nan(d), np.uint32(0x7FC00000), d)
    for loud in (False, True):
        for operand in (y, x):
            hit = is_nan(operand) & ((operand & QUIET == 0) == loud)
            chosen = np.where(hit, operand | QUIET, chosen)
    return chosen.astype(np.uint32)


def fmmla(a, b, c, rounding="rn"):
    """c + (a0 b0 + a1 b1), every product and sum rounded."""
    one = np.full(c.shape, 0x3F800000, np.uint32)

    def times(x, y):
        return process_nans(fma(x, y, (x ^ y) & np.uint32(0x80000000), rounding), x, y)

    def plus(x, y):
        return process_nans(fma(one, x, y, rounding), x, y)

    return plus(c, plus(times(a[:, 0], b[:, 0]), times(a[:, 1], b[:, 1])))


# --- Arm SME: FPMulAdd_ZA, FPDotAdd_ZA; every NaN is the default one


def default_nan(d):
    """d, where every NaN is the default one."""
    return np.where(is_nan(d), np.uint32(0x7FC00000), d).astype(np.uint32)


def fmopa_f32(a, b, c, rounding="rn"):
    """c + a b, rounded once."""
    return default_nan(fma(a[:, 0], b[:, 0], c, rounding))


def fmopa_f64(a, b, c, rounding="rn"):
    """c + a b of float64, rounded once, one value at a time."""
    d = vfmadd_f64(a[:, 0], b[:, 0], c, rounding)
    nan = (d & np.uint64((1 << 63) - 1)) > np.uint64(0x7FF << 52)
    return np.where(nan, np.uint64(0x7FF8 << 48), d)


def fmopa_f16(a, b, c, rounding="rn"):
    """c + FPDot(a, b): two products, each exact in float64, summed by round to odd and rounded once; then an addition.

    A sum of zeros of one sign keeps it; else it is -0 where rounding is toward minus infinity, +0 otherwise.
    """
    x, y = (np.ascontiguousarray(v, np.uint16).view(np.float16).astype(np.float64) for v in (a, b))
    with np.errstate(all="ignore"):
        first, second = (x * y).T
        total = odd_sum(first, second)
        zero = (total == 0) & (np.signbit(first) != np.signbit(second))
        dot = to_f32(np.where(zero, -0.0 if rounding == "rd" else 0.0, total), rounding)
        one = np.full(c.shape, 0x3F800000, np.uint32)
        return default_nan(fma(one, c, dot, rounding))


# --- Arm FP8: FP8Unpack, FP8DotAddFP; every NaN is the default one


def fp8_unpack(code, e4m3):
    """(value in units of 2**-16, whether NaN, whether infinite, sign) of an FP8 code."""
    fraction_bits = 3 if e4m3 else 2
    sign, rest = code >> 7, code & 0x7F
    field, fraction = rest >> fraction_bits, rest & ((1 << fraction_bits) - 1)
    nan = rest == 0x7F if e4m3 else rest > 0x7C
    size = (fraction | bool(field) << fraction_bits) << (max(field, 1) - 1 + (7 if e4m3 else 0))
    return (-size if sign else size), nan, not e4m3 and rest == 0x7C, sign


FP8 = {name: [fp8_unpack(code, name == "e4m3") for code in range(256)] for name in ("e4m3", "e5m2")}
FP8_ADDENDS = {"f16": Exact(5, 10), "f32": Exact(8, 23)}


def fp8_dot_add(addend, pairs, unit, most, lscale):
    """The code of addend + 2^-lscale times the sum of products of unpacked pairs, rounded once; ``most``: FPMR.OSM."""
    default = unit.infinity | unit.quiet
    if unit.is_nan(addend) or any(x[1] or y[1] for x, y in pairs):
        return default
    negative = bool(addend & unit.sign)
    signs = [bool(x[3] ^ y[3]) for x, y in pairs]
    infinities = {sign for sign, (x, y) in zip(signs, pairs, strict=True) if x[2] or y[2]}
    if addend & ~unit.sign == unit.infinity:
        infinities.add(negative)
    if len(infinities) == 2 or any((x[2] and not y[0]) or (y[2] and not x[0]) for x, y in pairs):
        return default
    if infinities:
        return unit.sign * infinities.pop() | unit.infinity
    value, lowest = unit.parts(addend)
    unit_of_products = -32 - lscale
    low = min(lowest, unit_of_products)
    total = (value << lowest - low) + (sum(x[0] * y[0] for x, y in pairs) << unit_of_products - low)
    if total == 0:
        zeros = not value and not any(x[0] * y[0] for x, y in pairs)
        return unit.sign if zeros and negative and all(signs) else 0
    code = unit.round(total, low)
    return code - (most and code & ~unit.sign == unit.infinity)


def fp8_dot(a, b, c, formats, most, lscale):
    """FP8DotAddFP of vectors a, b (n, K) and c (n,); ``formats``: of A, B and D; LSCALE: of f16 its low four bits."""
    first, second, unit = FP8[formats[0]], FP8[formats[1]], FP8_ADDENDS[formats[2]]
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    scale = lscale & 15 if formats[2] == "f16" else lscale
    found = []
    for x, y, addend in rows:
        pairs = [(first[i], second[j]) for i, j in zip(x, y, strict=True)]
        found.append(fp8_dot_add(addend, pairs, unit, most, scale))
    return np.array(found, c.dtype)


# --- every instruction by its opcode, on separate vectors


def integer_dot(a, b, c, types, bits=32, saturate=False):
    """The exact sum of products of the lanes (numpy types) and c, wrapped or limited."""
    total = (a.view(types[0]).astype(np.int64) * b.view(types[1])).sum(1)
    if bits == 64:  # four products of 16 bits are below 2**34; the sum with c wraps as unsigned integers do
        return total.view(np.uint64) + c
    total = total if c is None else total + c.view(np.int32)
    if saturate:
        total = np.clip(total, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return (total & (2**bits - 1)).astype(f"u{bits // 8}")


S8, U8, S16, U16 = np.int8, np.uint8, np.int16, np.uint16
INTEGER = {
    "x86.vpdpbusd": ((U8, S8), 32, False), "x86.vpdpbusds": ((U8, S8), 32, True),
    "x86.vpdpwssd": ((S16, S16), 32, False), "x86.vpdpwssds": ((S16, S16), 32, True),
    "x86.pmaddubsw": ((U8, S8), 16, True), "x86.pmaddwd": ((S16, S16), 32, False),
    "x86.tdpbssd": ((S8, S8), 32, False), "x86.tdpbsud": ((S8, U8), 32, False),
    "x86.tdpbusd": ((U8, S8), 32, False), "x86.tdpbuud": ((U8, U8), 32, False),
    "arm.sdot": ((S8, S8), 32, False), "arm.udot": ((U8, U8), 32, False), "arm.smmla": ((S8, S8), 32, False),
    "arm.usdot": ((U8, S8), 32, False), "arm.sudot": ((S8, U8), 32, False),
    "arm.ummla": ((U8, U8), 32, False), "arm.usmmla": ((U8, S8), 32, False),
    "arm.smopa": ((S8, S8), 32, False), "arm.umopa": ((U8, U8), 32, False), "arm.sumopa": ((S8, U8), 32, False),
    "arm.usmopa": ((U8, S8), 32, False),
    "arm.sdot.za.s8": ((S8, S8), 32, False), "arm.udot.za.u8": ((U8, U8), 32, False),
    "arm.sudot.za.s8": ((S8, U8), 32, False), "arm.usdot.za.u8": ((U8, S8), 32, False),
    "arm.sdot.za.s16": ((S16, S16), 32, False), "arm.udot.za.u16": ((U16, U16), 32, False),
    "arm.svdot.s8": ((S8, S8), 32, False), "arm.uvdot.u8": ((U8, U8), 32, False),
    "arm.suvdot.s8": ((S8, U8), 32, False), "arm.usvdot.u8": ((U8, S8), 32, False),
    "arm.svdot.s16": ((S16, S16), 32, False), "arm.uvdot.u16": ((U16, U16), 32, False),
    "arm.smopa.s16": ((S16, S16), 32, False), "arm.umopa.u16": ((U16, U16), 32, False),
    "arm.sdot.s16.s64": ((S16, S16), 64, False), "arm.udot.u16.s64": ((U16, U16), 64, False),
    "arm.smopa.s16.s64": ((S16, S16), 64, False), "arm.umopa.u16.s64": ((U16, U16), 64, False),
    "arm.sumopa.s16.s64": ((S16, U16), 64, False), "arm.usmopa.u16.s64": ((U16, S16), 64, False),
    "arm.sdot.za.s16.s64": ((S16, S16), 64, False), "arm.udot.za.u16.s64": ((U16, U16), 64, False),
    "arm.svdot.s16.s64": ((S16, S16), 64, False), "arm.uvdot.u16.s64": ((U16, U16), 64, False),
}  # fmt: skip
PAYLOAD = ("x86.vdpbf16ps", "x86.vfmadd.", "arm.")
"""How the opcodes begin of which a text fixes the payload of a NaN result."""


def evaluate(opcode, state, a, b, c):
    """d (n,) of vectors a, b (n, K), c (n,) of an opcode in a control state: ``{"rounding": "rz", "ftz": ""}``."""
    if opcode in INTEGER:
        types, bits, saturate = INTEGER[opcode]
        return integer_dot(a, b, c, types, bits, saturate)
    control = (state.get("rounding", "rn"), "ftz" in state, "daz" in state)
    if opcode == "x86.vfmadd.f32":
        read = [daz(x) if control[2] else x for x in (a[:, 0], b[:, 0], c)]
        return first_nan(fma(*read, *control[:2]), (a[:, 0], b[:, 0], c))
    if opcode == "x86.vfmadd.f64":
        return vfmadd_f64(a[:, 0], b[:, 0], c, *control)
    if opcode == "x86.vfmadd.f16":
        return vfmadd_f16(a[:, 0], b[:, 0], c, control[0])
    if opcode in ("x86.tdpbf16ps", "x86.tdpfp16ps"):
        x, y = (daz(widen(v)) if opcode == "x86.tdpbf16ps" else widen_f16(v) for v in (a, b))
        return tile_dot(x[:, None, :], y[:, :, None], c[:, None, None])[:, 0, 0]
    if opcode in ("x86.dpps", "x86.dppd"):
        return (dpps if opcode == "x86.dpps" else dppd)(a, b, *control)
    if opcode == "arm.fmmla":
        return fmmla(a, b, c, control[0])
    if "neg_a" in state:  # FMOPS, BFMOPS
        a = a ^ a.dtype.type(1 << (8 * a.itemsize - 1))
    formats = tuple(opcode.split(".")[-3:])
    if set(formats[:2]) <= FP8.keys():
        return fp8_dot(a, b, c, formats, "osm" in state, int(state.get("lscale", "0")))
    if opcode.startswith("arm.f"):
        return {"f16": fmopa_f16, "f32": fmopa_f32, "f64": fmopa_f64}[formats[-1]](a, b, c, control[0])
    return (vdpbf16ps if opcode == "x86.vdpbf16ps" else bfdot)(a, b, c)
