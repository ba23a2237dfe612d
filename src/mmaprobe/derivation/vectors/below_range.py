"""Vectors of terms far below the result's lowest normal, at which no end of a range matters.

Plain vectors have products that are normal results.  Where operands reach lower
than the result, most of what a sum cuts can show in a rounding alone: beside a large
term and half of its last place, or where two large terms cancel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, split, unit
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits

Mask = NDArray[np.bool_]
FROM_C = 0.7
"""The share of vectors whose large term is c, where there is one: one c stands against many lanes."""


def reaches_lower(instruction: Instruction) -> bool:
    """Whether products of normal operands lie below those of plain vectors."""
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    return d.is_float and a.min_exponent + b.min_exponent < d.min_exponent + 3


def faint_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """A large term, c or a product, beside half of its last place or its opposite, or neither; in an eighth of the
    vectors c is a zero instead, and only a zero's sign tells what is lost.  The products of all other lanes are about
    one exponent, anywhere below, of one sign or of both; all other operands are normal."""
    rng = np.random.default_rng([seed, 0xFA17])
    k, rows = instruction.k, np.arange(count)
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    in_c = rng.random(count) < (0.0 if instruction.c is None else FROM_C)
    top, depth = _exponents(rng, instruction, in_c)
    first = rng.integers(0, k, count)
    second = (first + rng.integers(1, max(k, 2), count)) % k
    kind = rng.integers(0, 8, count)
    tie, opposite, alone = kind < 4, (kind == 4) | (kind == 5), kind == 7
    exponents = depth[:, None] + rng.integers(0, 2, (count, k))
    large = ~in_c & ~alone
    exponents[rows[large], first[large]] = top[large]
    half = top - d.fraction_bits - 1 + (kind < 2) * rng.integers(-1, 2, count)
    exponents[rows[tie], second[tie]] = half[tie]
    powers = rng.random((count, k)) < rng.choice([0.0, 0.5, 1.0], (count, 1))
    powers[rows, second] |= tie
    negative = rng.integers(0, 2, (count, 1)).astype(bool) ^ (
        rng.integers(0, 2, (count, k)).astype(bool) & (rng.random((count, 1)) < 0.4)
    )
    low, highest = a.min_exponent + b.min_exponent, a.max_exponent + b.max_exponent - 1
    e_a, e_b = split(rng, np.clip(exponents, low, highest), a, b)
    batch = {"a": _shaped(rng, a, e_a, powers, negative), "b": _shaped(rng, b, e_b, powers, np.zeros_like(powers))}
    _cancel(batch, a, rows[opposite & ~in_c], first, second)
    if instruction.c is not None:
        c = formats.get(instruction.c)
        e_c = np.clip(np.where(in_c, top, depth), c.min_exponent, c.max_exponent - 2)
        found = _shaped(rng, c, e_c, rng.integers(0, 2, count).astype(bool), rng.integers(0, 2, count).astype(bool))
        batch["c"] = np.where(alone, found & c.dtype.type(c.sign_mask), found)
    if instruction.scale is not None:
        blocks = (count, k // instruction.scale_size)
        batch |= {role: np.full(blocks, unit(instruction.scale)) for role in ("scale_a", "scale_b")}
    return Batch(**batch)


def _exponents(rng: np.random.Generator, instruction: Instruction, in_c: Mask) -> tuple[Ints, Ints]:
    """Of the large term, and of the others."""
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    low, highest = a.min_exponent + b.min_exponent, a.max_exponent + b.max_exponent - 1
    top = rng.integers(d.min_exponent // 2, d.max_exponent - 1 - instruction.k.bit_length(), in_c.size)
    top = np.where(in_c, top, np.clip(top, low, highest))
    return top, rng.integers(low, np.maximum(low + 1, top - d.fraction_bits // 2))


def _shaped(rng: np.random.Generator, fmt: Format, exponents: Ints, powers: Mask, negative: Mask) -> Bits:
    """Codes with these exponents and signs; where ``powers`` says so powers of two."""
    body = code(rng, fmt, exponents) & fmt.dtype.type(fmt.code_limit - 1 - fmt.sign_mask)
    low = fmt.dtype.type(fmt.padding + fmt.fraction_bits)
    body = np.where(powers, body >> low << low, body)
    found: Bits = np.where(negative, body | fmt.dtype.type(fmt.sign_mask), body).astype(fmt.dtype)
    return found


def _cancel(batch: dict[str, Bits], a: Format, rows: Ints, first: Ints, second: Ints) -> None:
    """Make the second lane of these rows the first one's opposite, in place."""
    for name in ("a", "b"):
        batch[name][rows, second[rows]] = batch[name][rows, first[rows]]
    batch["a"][rows, second[rows]] ^= a.dtype.type(a.sign_mask)
