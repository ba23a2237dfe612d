"""Vectors for sums of few products a step."""

from __future__ import annotations

import random

import numpy as np

from mmaprobe import formats
from mmaprobe.models.kernels import SHORT_SUMS, kernel
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Exact,
    Fused,
    Node,
    Operand,
    Products,
    Special,
    Term,
)


def near(path: Datapath, exponent: int, count: int) -> Batch:
    """Products and C near 2^exponent, or far from each other; many zeros of either sign, some special values."""
    rng = np.random.default_rng(exponent & 0xFFF)
    shape = (count, path.k)
    a_exponent = rng.integers(-60, 60, shape)
    b_exponent = exponent - a_exponent + rng.integers(-3, 4, shape) - rng.integers(0, 40, (count, 1))

    def codes(name: str, exponents: Bits) -> Bits:
        fmt = formats.get(name)
        fields = np.clip(exponents + fmt.bias, 0, (1 << fmt.exponent_bits) - 2)
        found = fields << fmt.fraction_bits | rng.integers(0, 1 << fmt.fraction_bits, fields.shape)
        kind = rng.integers(0, 300, fields.shape)
        found = np.where(kind < 40, 0, np.where(kind == 299, fmt.infinity_code or found, found))
        found = np.where(kind == 298, (fmt.infinity_code or found) | rng.integers(0, 1 << fmt.fraction_bits, 1), found)
        return (found | rng.integers(0, 2, fields.shape) << fmt.bits - 1).astype(fmt.dtype)

    assert path.c is not None
    c = codes(path.c, exponent + rng.integers(-40, 4, count))
    return Batch(codes(path.a, a_exponent), codes(path.b, b_exponent), c)


def random_short_sum(seed: int) -> Datapath:
    """A datapath that the kernel of short sums has, unlike any unit's."""
    chooser = random.Random(seed)
    while True:
        path = _some_short_sum(chooser)
        if kernel(path) == SHORT_SUMS:
            return path


def _some_short_sum(chooser: random.Random) -> Datapath:
    parts, size = chooser.choice((0, 0, 1, 2, 3)), chooser.choice((1, 2, 3, 4))
    length, bits, d = (parts or 1) * size, chooser.randint(8, 26), chooser.choice(("f32", "f16", "bf16"))
    rounding = "RD" if parts else "RZ"
    lanes = [Products(tuple(range(first, first + size))) for first in range(0, length, size)]
    sums = [Term(Fused.alike((part,), bits, "RD") if parts else part, bits, rounding) for part in lanes]
    zero = chooser.choice((None, chooser.randint(-160, 20)))
    cutoff = chooser.randint(0, 40) if parts and chooser.random() < 0.7 else None
    c = Term(Accumulator(), bits, rounding, zero, cutoff, chooser.randint(-8, 8))
    subnormals = "zero" if chooser.random() < 0.5 and d != "f16" else "keep"
    to = Encode("f16" if d == "f16" else "f32", subnormals=subnormals, zero="positive", underflow="positive")
    tree: Node = Fused((*sums, c), to, complement=not parts)
    if d == "bf16":
        tree = Exact((tree,), Encode("bf16", "RZ"))
    a, b = (chooser.choice(("f16", "bf16", "e4m3", "e5m2", "e3m2", "e2m1")) for _ in "ab")
    k = length * chooser.randint(1, 3)
    order = tuple(chooser.sample(range(k), k))
    code = formats.get(d).nan_code
    operands = {
        name: Operand(chooser.choice(("keep", "zero", "signed_zero")))
        for name in ("operand_a", "operand_b", "operand_c")
    }
    special = Special(chooser.choice(("canonical", "cause")), code or 0, factor_code=code or 0)
    return Datapath(a, b, d, d, k, tree, length, order=order, special=special, **operands)
