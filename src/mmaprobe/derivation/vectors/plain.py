"""Plain vectors: finite, normal and far from every range limit, so that only the structure, the precision and the
roundings can show."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators.random_bits import with_random_bits
from mmaprobe.operands.batch import Batch, Bits

Ints = NDArray[np.int64]
SCALES = 2
"""Binades from 1 at which the scales of half of the plain vectors lie at most; those of the others lie anywhere."""
HEIGHT = 4
"""The exponent of the operands of products that cancel, at most: what is left of them is seldom below a range."""


def safe_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Vectors of finite normal operands whose sums do not overflow and are normal unless they cancel.

    A third cancels in pairs, a third sets terms near half a place of the
    largest, the rest is spread; significands are random, sparse or full.
    """
    rng = np.random.default_rng([seed, instruction.k])
    return with_random_bits(instruction, _plain(rng, instruction, count, instruction.k), seed)


def zeroed_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Safe vectors with some lanes, or c, zero, of either sign; one term at least is not."""
    rng = np.random.default_rng([seed, 0x2E80])
    vectors = safe_vectors(instruction, seed, count)
    operands = {name: value.copy() for name, value in vectors.items()}
    zero = rng.random((count, instruction.k)) < rng.choice([0.2, 0.7, 0.95], (count, 1))
    zero[np.arange(count), rng.integers(0, instruction.k, count)] = False
    for name in ("a", "b"):
        fmt = formats.get(getattr(instruction, name))
        signed = rng.integers(0, 2, zero.shape) & fmt.has_sign_bit
        signs = np.where(signed, fmt.dtype.type(fmt.sign_mask), fmt.dtype.type(0))
        mine = zero & (rng.integers(0, 2, zero.shape) == (name == "a"))
        operands[name][mine] = signs[mine]
    if instruction.c is not None:
        operands["c"][rng.integers(0, 3, count) == 0] = 0
    return Batch(**operands)


def uniform_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Safe vectors whose lanes are all alike (scale blocks too), so that no order of the lanes shows.

    A third of them has a c that cancels one or several of the products.
    """
    rng = np.random.default_rng([seed, 0x0A11])
    vectors = _plain(rng, instruction, count, 1)
    return Batch(**{
        name: value if name == "c" else np.repeat(value, wide[1] // value.shape[1], axis=1)
        for (name, value), wide in zip(vectors.items(), _shapes(instruction, vectors), strict=True)
    })  # fmt: skip


def single_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Vectors of one normal product, or c, alone (a third), all else +0: nothing is added."""
    rng = np.random.default_rng([seed, 0x0501])
    a, b, d = formats.get(instruction.a), formats.get(instruction.b), formats.get(instruction.d)
    low, high = window(instruction, a, b, d)
    rows, lanes = np.arange(count), rng.integers(0, instruction.k, count)
    exponents = split(rng, rng.integers((low + high + 1) // 2, high + 1, (count, 1)), a, b)
    of_c = (rng.integers(0, 3, count) == 0) & (instruction.c is not None)
    batch: dict[str, Bits] = {}
    for name, fmt, exponent in zip("ab", (a, b), exponents, strict=True):
        batch[name] = np.zeros((count, instruction.k), fmt.dtype)
        batch[name][rows, lanes] = np.where(of_c, 0, code(rng, fmt, exponent)[:, 0])
    if instruction.c is not None:
        c = formats.get(instruction.c)
        lowest, highest = max(c.min_exponent, d.min_exponent + 3), c.max_exponent - 2
        exponent = np.clip(rng.integers(-3, max(high, -2) + 1, count), lowest, highest)
        batch["c"] = np.where(of_c, code(rng, c, exponent), 0).astype(c.dtype)
    if instruction.scale is not None:
        around = room(instruction, d, low, high)
        shift = rng.integers(around[0], around[1] + 1, (count, instruction.k // instruction.scale_size))
        batch |= scales_of(rng, instruction.scale, np.where(rng.random((count, 1)) < 0.5, 0, shift), around)
    return Batch(**batch)


def opposite_vectors(instruction: Instruction) -> Batch:
    """A power of two and its opposite in the first two lanes, and in c and the first lane, in either order; all else
    +0.  As many of the two as the instruction has."""
    a, b = formats.get(instruction.a), formats.get(instruction.b)
    e_a, e_b = (min(HEIGHT, fmt.max_exponent) for fmt in (a, b))
    in_lanes, k = 2 * (instruction.k > 1), instruction.k
    c = formats.get(instruction.c) if instruction.c else None
    count = in_lanes + 2 * (c is not None)
    signs = np.array([0, 1] * (count // 2), np.uint64)
    batch: dict[str, Bits] = {"a": np.zeros((count, k), a.dtype), "b": np.full((count, k), _power(b, e_b), b.dtype)}
    batch["a"][:, 0] = _power(a, e_a) | signs * a.sign_mask
    if in_lanes:
        batch["a"][:in_lanes, 1] = _power(a, e_a) | (1 - signs[:in_lanes]) * a.sign_mask
    if c is not None:
        batch["c"] = np.zeros(count, c.dtype)
        batch["c"][in_lanes:] = _power(c, e_a + e_b) | (1 - signs[in_lanes:]) * c.sign_mask
    if instruction.scale is not None:
        one = np.full((count, k // instruction.scale_size), unit(instruction.scale))
        batch |= {"scale_a": one, "scale_b": one.copy()}
    return Batch(**batch)


def _power(fmt: formats.Format, exponent: int) -> np.uint64:
    """The code of two to this power, as near as normal numbers have it."""
    held = min(max(exponent, fmt.min_exponent), fmt.max_exponent)
    return np.uint64((held + fmt.bias) << fmt.fraction_bits << fmt.padding)


def _shapes(instruction: Instruction, vectors: Batch) -> list[tuple[int, ...]]:
    """The shape that each operand of separate vectors has."""
    k, size = instruction.k, max(instruction.scale_size, 1)
    wide = {"a": k, "b": k, "c": 1, "scale_a": k // size, "scale_b": k // size}
    return [(vectors.size, wide[name]) for name, _ in vectors.items()]


def _plain(rng: np.random.Generator, instruction: Instruction, count: int, lanes: int) -> Batch:
    """Vectors of so many lanes: K, or one that stands for all."""
    a, b = formats.get(instruction.a), formats.get(instruction.b)
    d = formats.get(instruction.d)
    low, high = window(instruction, a, b, d)
    shape = (count, lanes)
    anchor = rng.integers((low + high + 1) // 2, high + 1, (count, 1))
    exponents = np.clip(anchor - _spread(rng, shape, d.fraction_bits, high - low), low, high)
    e_a, e_b = split(rng, exponents, a, b)
    operands = [code(rng, fmt, e) for fmt, e in ((a, e_a), (b, e_b))]
    _cancel_pairs(rng, operands[0], operands[1], b)
    batch: dict[str, Bits] = {"a": operands[0], "b": operands[1]}
    if instruction.c is not None:
        c = formats.get(instruction.c)
        top = np.clip(anchor[:, 0] - rng.integers(-c.fraction_bits - 12, d.fraction_bits + 4, count), None, high)
        e_c = np.clip(top, max(c.min_exponent, d.min_exponent + 3), c.max_exponent - 2)
        batch["c"] = code(rng, c, e_c)
        _cancel_c(rng, batch, (a, b, c), instruction.k if lanes == 1 else 1)
    if instruction.scale is not None:
        blocks = 1 if lanes == 1 else instruction.k // instruction.scale_size
        batch |= _scales(rng, instruction.scale, count, blocks, room(instruction, d, low, high))
    return Batch(**batch)


def window(instruction: Instruction, a: formats.Format, b: formats.Format, d: formats.Format) -> tuple[int, int]:
    """Lowest and highest exponent of a product such that sums are finite, and normal unless they cancel."""
    reach = 0 if instruction.scale is None else 2 * SCALES
    low = max(a.min_exponent + b.min_exponent, d.min_exponent + 3) + reach
    high = min(a.max_exponent + b.max_exponent, d.max_exponent - 4 - instruction.k.bit_length()) - reach
    return (low, high) if low <= high else (high, high)


def room(instruction: Instruction, d: formats.Format, low: int, high: int) -> tuple[int, int]:
    """Lowest and highest exponent of both scales together with which sums of such products stay normal."""
    reach = 2 * d.fraction_bits + 8
    lowest, highest = d.min_exponent + 3 - low, d.max_exponent - 4 - instruction.k.bit_length() - high
    return max(lowest, -reach), min(highest, reach)


def _scales(rng: np.random.Generator, name: str, count: int, blocks: int, room: tuple[int, int]) -> dict[str, Bits]:
    """Scales of 1, near 1, and with the room given: the same in all scale blocks, or each with its own."""
    kind = rng.integers(0, 4, (count, 1))
    near = rng.integers(-SCALES, SCALES + 1, (count, blocks))
    far = np.where(kind == 3, rng.integers(room[0], room[1] + 1, (count, blocks)), 0)
    far = far + np.where(kind == 2, rng.integers(room[0], room[1] + 1, (count, 1)), 0)
    total = np.where(kind == 1, near + rng.integers(-SCALES, SCALES + 1, (count, blocks)), far)
    return {role: np.where(kind == 0, unit(name), each) for role, each in scales_of(rng, name, total, room).items()}


def scales_of(rng: np.random.Generator, name: str, total: Ints, room: tuple[int, int]) -> dict[str, Bits]:
    """Scales whose exponents add up to ``total``, as far as their format and the room given allow."""
    fmt = formats.get(name)
    low, high = max(fmt.min_exponent, room[0]), min(fmt.max_exponent - 1, room[1])
    first = np.clip(total - total // 2, low, high)
    second = np.clip(total - first, low, high)
    return {role: code(rng, fmt, e) for role, e in (("scale_a", first), ("scale_b", second))}


def _spread(rng: np.random.Generator, shape: tuple[int, int], precision: int, room: int) -> Ints:
    """How far below the anchor each product lies: nearby, near one place of the result, or anywhere."""
    kind = rng.integers(0, 4, shape)
    near = rng.integers(0, 4, shape)
    place = precision + rng.integers(-3, 6, shape)
    anywhere = rng.integers(0, max(2, min(room, 2 * precision + 8)), shape)
    return np.where(kind == 0, near, np.where(kind == 1, place, anywhere)).astype(np.int64)


def split(rng: np.random.Generator, total: Ints, a: formats.Format, b: formats.Format) -> tuple[Ints, Ints]:
    """Exponents of a and b, each inside its format, that add up to ``total``."""
    lowest = np.maximum(a.min_exponent, total - b.max_exponent)
    highest = np.minimum(a.max_exponent - 1, total - b.min_exponent)
    highest = np.maximum(highest, lowest)
    e_a = rng.integers(lowest, highest + 1)
    return e_a, total - e_a


def code(rng: np.random.Generator, fmt: formats.Format, exponent: Ints) -> Bits:
    """Codes of random sign with this exponent; fractions random, sparse, full or zero."""
    field = np.clip(exponent + fmt.bias, 1 if fmt.subnormal else 0, fmt.max_exponent + fmt.bias)
    limit = 1 << fmt.fraction_bits
    size = exponent.shape
    kind = rng.integers(0, 4, size)
    random = rng.integers(0, limit, size)
    sparse = (1 << rng.integers(0, max(fmt.fraction_bits, 1), size)) & (limit - 1)
    fraction = np.where(kind == 0, 0, np.where(kind == 1, sparse, np.where(kind == 2, limit - 1, random)))
    fraction = np.where(field == fmt.max_exponent + fmt.bias, np.minimum(fraction, fmt.max_fraction), fraction)
    found = (field.astype(np.uint64) << np.uint64(fmt.fraction_bits)) | fraction.astype(np.uint64)
    found <<= np.uint64(fmt.padding)
    negative = rng.integers(0, 2, size).astype(bool) & fmt.signed
    return np.where(negative, found | np.uint64(fmt.sign_mask), found).astype(fmt.dtype)


def powers(fmt: formats.Format, codes: Bits) -> Bits:
    """Powers of two of these signs and exponents."""
    fraction = fmt.dtype.type(((1 << fmt.fraction_bits) - 1) << fmt.padding)
    found: Bits = codes & ~fraction
    return found


def _cancel_pairs(rng: np.random.Generator, a: Bits, b: Bits, fmt: formats.Format) -> None:
    """In a third of the vectors make one lane the negative of another, in place."""
    count, k = a.shape
    if k < 2 or not fmt.sign_mask:
        return
    rows = np.flatnonzero(rng.integers(0, 3, count) == 0)
    first = rng.integers(0, k, rows.size)
    second = (first + rng.integers(1, k, rows.size)) % k
    a[rows, second] = a[rows, first]
    b[rows, second] = b[rows, first] ^ fmt.dtype.type(fmt.sign_mask)


def _cancel_c(rng: np.random.Generator, batch: dict[str, Bits], each: tuple[formats.Format, ...], most: int) -> None:
    """In a third of the vectors make c the negative of one product, or of up to ``most``, rounded to c's format."""
    a, b, c = each
    count, k = batch["a"].shape
    rows = np.flatnonzero(rng.integers(0, 3, count) == 0)
    lane = rng.integers(0, k, rows.size)
    x, y = formats.decode(a, batch["a"][rows, lane]), formats.decode(b, batch["b"][rows, lane])
    significand = x.significand.astype(object) * y.significand.astype(object) * rng.integers(1, most + 1, rows.size)
    negative = ~(x.negative ^ y.negative)
    found = formats.encode(c, negative, significand, x.exponent + y.exponent, "RZ", "largest")
    normal = formats.decode(c, found).kind == formats.NORMAL
    batch["c"][rows[normal]] = found[normal]


def unit(name: str) -> Any:
    fmt = formats.get(name)
    return fmt.dtype.type(fmt.one)
