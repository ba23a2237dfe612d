"""Datapaths of many kinds, and hard operand patterns for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Operand,
    Product,
    Products,
    Scale,
    Special,
    Term,
    Zero,
)

C = Accumulator()
RNE, FTZ = Encode(), Encode(subnormals="signed_zero")
RZ_POSITIVE = Encode(rounding="RZ", overflow="infinity", zero="positive")
DAZ, DAZ_POSITIVE = Operand("signed_zero"), Operand("zero")
LOCAL = Special("local", 0xFFC00000, ("a", "b", "acc"))


def lanes(*of: int) -> Products:
    return Products(of)


def one(lane: int, to: Encode | None = None) -> Exact:
    return Exact((lanes(lane),), to)


def pairs(to: Encode) -> Node:
    return Add(Add(one(0), one(1), to), Add(one(2), one(3), to), to)


def tensor_core(bits: int, length: int, zero: int, a: str, k: int, to: Encode = RZ_POSITIVE, **more: Any) -> Datapath:
    """T-FDPA: truncated fused dot-product-add."""
    d = "f32" if to.format == "e8m13" else to.format
    tree = Fused.alike((lanes(*range(length)), C), bits, "RZ", zero, to)
    return Datapath(
        a, a, d, d, k, tree, step=length, special=Special(code=0x7FFF if d == "f16" else 0x7FFFFFFF), **more
    )


def amx(fmt: str, operand: Operand) -> Datapath:
    even, odd = (Fma(Zero(), tuple(range(start, 32, 2)), FTZ) for start in (0, 1))
    tree = Add(Add(even, odd, FTZ), C, FTZ)
    return Datapath(
        fmt, fmt, "f32", "f32", 32, tree, operand_a=operand, operand_b=operand, operand_c=operand, special=LOCAL
    )


def two_stage(parts: tuple[Node, ...], cutoff: int | None = None) -> Node:
    """CDNA3: the products' sum and C cut towards minus infinity, then rounded twice."""
    products = Fused.alike(parts, 24, "RZ" if len(parts) == 1 else "RD")
    c = Term(C, 24, "RD", -126, cutoff)
    return Fused((Term(products, 32, "RD"), c), Encode(first=(31, "RD")))


def halves(length: int) -> tuple[Node, ...]:
    return tuple(Fused.alike((lanes(*range(start, length, 2)),), 24, "RZ") for start in (0, 1))


def groups() -> tuple[Node, ...]:
    return tuple(Exact((lanes(*range(g, g + 16)),), scaled=True) for g in range(0, 64, 16))


def integers(a: str, b: str, k: int, overflow: Any, d: str = "s32", c: str | None = "s32", **more: Any) -> Datapath:
    terms = (lanes(*range(k)), C) if c else (lanes(*range(k)),)
    return Datapath(a, b, c, d, k, Exact(terms, Encode(d, overflow=overflow)), **more)


DATAPATHS: dict[str, Datapath] = {
    "fma f32": Datapath("f32", "f32", "f32", "f32", 1, Fma(C, (0,), RNE), special=LOCAL),
    "fma f64": Datapath(
        "f64", "f64", "f64", "f64", 1, Fma(C, (0,), Encode("f64")), special=replace(LOCAL, code=0xFFF8 << 48)
    ),
    "fma f64 RZ, flushed": Datapath(
        "f64", "f64", "f64", "f64", 1, Fma(C, (0,), Encode("f64", "RZ", subnormals="signed_zero")), operand_a=DAZ,
        special=Special("global", 0xFFF8 << 48, ("c", "b0", "a0"), quiet=False, signalling_first=True),
    ),
    "fma f16 chain": Datapath(
        "f16", "f16", "f16", "f16", 4, Fma(C, (2, 0, 1, 3), Encode("f16", "RNA", overflow="largest")),
        special=Special("local", 0x7E01, ("acc", "b", "a")),
    ),
    "fma f64 as an exact sum": Datapath("f64", "f64", "f64", "f64", 1, Exact((lanes(0), C), Encode("f64", "RD"))),
    "vdpbf16ps": Datapath(
        "bf16", "bf16", "f32", "f32", 2, Fma(C, (1, 0), FTZ), operand_a=DAZ, operand_b=DAZ, operand_c=DAZ,
        special=Special("global", 0xFFC00000, ("a0", "b0", "a1", "b1", "c")),
    ),
    "dpps": Datapath("f32", "f32", None, "f32", 4, pairs(RNE), product=Product(RNE), special=LOCAL),
    "dppd": Datapath(
        "f64", "f64", None, "f64", 2, Add(one(0), one(1), Encode("f64")), product=Product(Encode("f64")),
        special=Special("local", 0xFFF8 << 48, ("b", "a"), quiet=False, signalling_first=True),
    ),
    "AMX bf16": amx("bf16", DAZ),
    "AMX f16": amx("f16", Operand()),
    "T-FDPA f16": tensor_core(25, 16, -133, "f16", 16),
    "T-FDPA f16, Volta chain": tensor_core(23, 4, -131, "f16", 8),
    "T-FDPA bf16 chain": tensor_core(24, 8, -132, "bf16", 16),
    "T-FDPA tf32": tensor_core(25, 8, -133, "tf32", 8),
    "T-FDPA e4m3": tensor_core(25, 32, -133, "e4m3", 32),
    "T-FDPA e5m2 to e8m13": tensor_core(13, 32, -133, "e5m2", 64, replace(RZ_POSITIVE, format="e8m13")),
    "T-FDPA f16 to f16": tensor_core(25, 16, -21, "f16", 32, Encode("f16", zero="positive")),
    "T-FDPA operands' labels": tensor_core(
        20, 4, -90, "bf16", 16, product=Product(label="operands"), order=tuple(reversed(range(16)))
    ),
    "T-FDPA normalised labels": tensor_core(20, 4, -100, "bf16", 16, product=Product(label="normalised")),
    "T-FDPA, local NaN": replace(
        tensor_core(20, 4, -90, "f16", 16),
        special=Special("local", 0x7FC12345, ("b", "a"), quiet=False, signalling_first=True),
    ),
    "mxf8f6f4": replace(
        tensor_core(25, 32, -133, "e5m2", 32), b="e2m3", scale=Scale("ue8m0", 32, "product")
    ),
    "mxf4nvf4": Datapath(
        "e2m1", "e2m1", "f32", "f32", 64, Fused.alike((*groups(), C), 35, "RZ", -139, RZ_POSITIVE),
        scale=Scale("ue4m3", 16, "group"),
    ),
    "CDNA1 f16": Datapath("f16", "f16", "f32", "f32", 4, Exact((lanes(0, 1, 2, 3), C), RNE)),
    "CDNA1 bf16": Datapath("bf16", "bf16", "f32", "f32", 4, Exact((lanes(0, 1), C), RNE), step=2),
    "exact f32": Datapath("f32", "f32", "f32", "f32", 4, Exact((lanes(0, 1, 2, 3), C), Encode(rounding="RD"))),
    "CDNA2 bf16_1k": Datapath(
        "bf16", "bf16", "f32", "f32", 8, Add(C, pairs(FTZ), FTZ), step=4, product=Product(FTZ),
        operand_a=DAZ_POSITIVE, operand_b=DAZ_POSITIVE, operand_c=DAZ_POSITIVE,
    ),
    "CDNA3 bf16": Datapath(
        "bf16", "bf16", "f32", "f32", 16, two_stage((lanes(*range(8)),)), step=8,
        product=Product(overflow_exponent=128),
    ),
    "CDNA3 fp8": Datapath("e4m3fnuz", "e5m2fnuz", "f32", "f32", 32, two_stage(halves(16), 25), step=16),
    "BFDOT": Datapath(
        "bf16", "bf16", "f32", "f32", 2,
        Add(C, Add(one(0), one(1), Encode(rounding="RO", subnormals="zero")),
            Encode(rounding="RO", subnormals="zero", tininess="before")),
        product=Product(Encode(rounding="RO")), operand_a=DAZ_POSITIVE, operand_b=DAZ,
    ),
    "e4m3 result": Datapath(
        "e4m3", "e5m2", "f16", "e4m3", 8, Fused.alike((lanes(*range(8)), C), None, to=Encode("f16")),
        result=Encode("e4m3"), special=Special(code=0x7F),
    ),
    "s8": integers("s8", "u8", 16, "wrap"),
    "vpdpbusd": integers("u8", "s8", 4, "wrap"),
    "vpdpwssd": integers("s16", "s16", 2, "wrap"),
    "s16 saturating": integers("s16", "s16", 2, "largest"),
    "s64": integers("s16", "u16", 4, "wrap", "s64", "s64"),
    "s64 saturating": integers("s16", "s16", 4, "largest", "s64", "s64"),
    "s64 without C": integers("u16", "s16", 6, "wrap", "s64", None),
    "fp8 scaled down": Datapath(
        "e4m3b22fn", "e5m2", "f16", "f16", 4, Exact((C, lanes(0, 1, 2, 3)), Encode("f16")),
        special=Special("canonical", 0x7E00),
    ),
    "fp8 scaled down by most": Datapath(
        "e5m2b142ieee", "e5m2", "f32", "f32", 4, Exact((C, lanes(0, 1, 2, 3)), Encode("f32", overflow="largest")),
        special=Special("canonical", 0x7FC00000),
    ),
    "pmaddubsw": integers("u8", "s8", 2, "largest", "s16", None),
    "s4": integers("s4", "u4", 32, "wrap"),
    "b1 xor": integers("b1", "b1", 128, "wrap", product=Product(multiply="xor")),
    "b1 and": integers("b1", "b1", 128, "wrap", product=Product(multiply="and")),
}  # fmt: skip

for _i, _mode in enumerate(formats.ROUNDINGS):
    _flush: Any = ("keep", "zero", "signed_zero")[_i % 3]
    DATAPATHS[f"fma {_mode}"] = Datapath(
        "f16", "f16", "f32", "f32", 3,
        Fma(C, (0, 1, 2), Encode(
            rounding=_mode, subnormals=_flush, tininess=("before", "after", "encoded")[(_i + _i // 3) % 3],
            zero=("ieee", "positive")[_i >> 1 & 1], underflow=("signed", "positive")[_i >> 2 & 1])),
    )  # fmt: skip
    DATAPATHS[f"fused {_mode}"] = Datapath(
        "f16", "bf16", "f32", "f32", 8,
        Fused((Term(lanes(*range(8)), 22, _mode, -130), Term(C, 20, formats.ROUNDINGS[_i - 1], -130)),
              Encode(rounding=_mode)),
    )  # fmt: skip
    DATAPATHS[f"exact {_mode}"] = Datapath(
        "e4m3", "e4m3", "f16", "f16", 8,
        Exact((lanes(*range(8)), C), Encode("f16", _mode, first=(12, formats.ROUNDINGS[_i - 3]))),
        special=Special(code=0x7FFF),
    )  # fmt: skip

MODES = ("uniform", "sparse", "low", "clustered")


def operand(rng: np.random.Generator, name: str, shape: tuple[int, ...], mode: str) -> Bits:
    """Codes of a format: uniform; few significand bits around 1 with zeros; near the lowest exponents; clustered."""
    fmt = formats.get(name)
    uniform = rng.integers(0, fmt.code_limit - 1, shape, np.uint64, endpoint=True)
    if mode == "uniform" or not fmt.is_float:
        return uniform.astype(fmt.dtype)
    top = (1 << fmt.exponent_bits) - 1
    centre = {"sparse": fmt.bias, "low": 2, "clustered": int(rng.integers(top // 4, 3 * top // 4 + 1))}[mode]
    exponent = np.clip(centre + rng.integers(-4, 5, shape), 0, top).astype(np.uint64)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
    negative = rng.integers(0, 1 + fmt.signed, shape, np.uint64)
    if mode == "sparse":
        fraction &= rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
        fraction &= rng.integers(0, 1 << fmt.fraction_bits, shape, np.uint64)
        dead = rng.random(shape) < 0.2
        exponent, fraction = np.where(dead, np.uint64(0), exponent), np.where(dead, np.uint64(0), fraction)
    code = negative << np.uint64(fmt.bits - 1) | exponent << np.uint64(fmt.fraction_bits) | fraction
    return (code << np.uint64(fmt.padding)).astype(fmt.dtype)


def batch(datapath: Datapath, mode: str, seed: int, count: int) -> Batch:
    """Vectors of a datapath; half of the sparse ones cancel, upper lanes against lower."""
    rng = np.random.default_rng((seed, MODES.index(mode)))
    a = operand(rng, datapath.a, (count, datapath.k), mode)
    b = operand(rng, datapath.b, (count, datapath.k), mode)
    half = datapath.k // 2
    if mode == "sparse" and half:
        sign = a.dtype.type(formats.get(datapath.a).sign_mask)
        a[: count // 2, half : 2 * half] = a[: count // 2, :half] ^ sign
        b[: count // 2, half : 2 * half] = b[: count // 2, :half]
    scales: dict[str, Bits] = {}
    if datapath.scale is not None:
        shape = (count, datapath.k // datapath.scale.size)
        scales = {name: operand(rng, datapath.scale.format, shape, mode) for name in ("scale_a", "scale_b")}
    c = None if datapath.c is None else operand(rng, datapath.c, (count,), mode)
    return Batch(a, b, c, **scales)
