"""Vectors for telling hypotheses apart: the search's own, unlike the validation's generators.

``safe_vectors`` are finite, normal and far from every range limit, so that only
the structure, the precision and the roundings can show.  ``hard_vectors`` are
the named families, for everything else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, safe_vectors, split, unit
from mmaprobe.generators import families_for, generate
from mmaprobe.generators.families import CIRCUIT_FAMILIES
from mmaprobe.generators.random_bits import with_random_bits
from mmaprobe.operands.batch import Batch, Bits, join


def hard_vectors(instruction: Instruction, families: tuple[str, ...], seed: int, count: int) -> Batch:
    """``count`` vectors in all, the same number from each named family that fits the instruction."""
    fitting = [name for name in families if name in families_for(instruction)] or list(families_for(instruction))
    each = -(-count // len(fitting))
    return join([generate(instruction, name, seed, 0, each) for name in fitting])


def rule_families(instruction: Instruction) -> tuple[str, ...]:
    """The families that fit and are about the rules of a datapath, which hypotheses differ in, not about circuits."""
    return tuple(name for name in families_for(instruction) if name not in CIRCUIT_FAMILIES)


def nan_operands(instruction: Instruction, vectors: Batch) -> NDArray[np.bool_]:
    """Which vectors have a NaN among their operands, scales included."""
    found = np.zeros(vectors.size, bool)
    for name, fmt in instruction.formats().items():
        value = getattr(vectors, name, None)
        if value is not None:
            found |= formats.is_nan(fmt, value).reshape(vectors.size, -1).any(axis=1)
    return found


def plain(instruction: Instruction, vectors: Batch, answers: Bits) -> NDArray[np.bool_]:
    """Which vectors have normal answers, only normal operands, and products far from the ends of the result's range."""
    d = formats.get(instruction.d)
    found: NDArray[np.bool_] = formats.decode(d, answers).kind == formats.NORMAL
    exponents: dict[str, Ints] = {}
    for name, fmt in instruction.formats().items():
        value = getattr(vectors, name, None)
        if value is not None:
            decoded = formats.decode(fmt, value)
            found &= (decoded.kind == formats.NORMAL).reshape(vectors.size, -1).all(axis=1)
            exponents[name] = (decoded.exponent + fmt.fraction_bits).reshape(vectors.size, -1)
    terms = exponents["a"] + exponents["b"]
    if instruction.scale is not None:
        scales = exponents["scale_a"] + exponents["scale_b"]
        terms = terms + np.repeat(scales, instruction.scale_size, axis=1)
    for each in (terms, *([exponents["c"]] if "c" in exponents else [])):
        high = d.max_exponent - 4 - instruction.k.bit_length()
        found &= (each >= d.min_exponent + 3).all(axis=1) & (each <= high).all(axis=1)
    return found


def mixed_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Every family that fits the instruction and is about rules and, for floats, the search's own kinds: 7/4 of
    ``count`` vectors."""
    pool = hard_vectors(instruction, rule_families(instruction), seed, count)
    if not formats.get(instruction.d).is_float:
        return pool
    own = (safe_vectors, special_vectors, edge_vectors)
    return join([pool, *(make(instruction, seed, count // 4) for make in own)])


OWN_KINDS = ("plain", "special operands", "edges")
"""What ``mixed_vectors`` adds to the generators' families, in words."""


def special_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Safe vectors with one to four special operands each: NaNs of distinct payloads, invalid products, infinities.

    Few specials a vector, so that every pair of operands meets alone and it
    shows which of two NaNs, or of a NaN and an invalid operation, comes out.
    """
    rng = np.random.default_rng([seed, 0x5BEC])
    vectors = safe_vectors(instruction, seed, count)
    operands = {name: value.copy() for name, value in vectors.items()}
    k = instruction.k
    for _ in range(4):
        rows = np.flatnonzero(rng.integers(0, 4, count) < 2 + (_ == 0) * 2)
        lane = rng.integers(0, k + (instruction.c is not None), rows.size)
        kind = rng.integers(0, 6, rows.size)
        for name in ("a", "b"):
            fmt = formats.get(getattr(instruction, name))
            mine = (lane < k) & ((kind < 4) == (rng.integers(0, 2, rows.size) == (name == "a")))
            place = rows[mine], lane[mine]
            operands[name][place] = _special(rng, fmt, kind[mine])
        invalid = (lane < k) & (kind == 5)
        for name, factor in (
            (("a", _infinity), ("b", _zero)) if rng.integers(0, 2) else (("b", _infinity), ("a", _zero))
        ):
            operands[name][rows[invalid], lane[invalid]] = factor(formats.get(getattr(instruction, name)))
        if instruction.c is not None:
            mine = lane == k
            operands["c"][rows[mine]] = _special(rng, formats.get(instruction.c), kind[mine])
    return Batch(**operands)


def edge_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Two terms at an end of the result's range, the other lanes zero.

    Three quarters lie a hair below (and above) the lowest normal, where tininess
    before and after rounding differ: one term is the lowest normal, the other,
    of opposite sign, about half a last place of it.  The rest are two terms of
    one sign near the largest, whose sum overflows or just does not.
    """
    rng = np.random.default_rng([seed, 0xED6E])
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    k, has_c = instruction.k, instruction.c is not None
    places = k + has_c
    first = rng.integers(0, places, count)
    second = (first + rng.integers(1, max(places, 2), count)) % places
    high = d.min_exponent + (rng.integers(0, 4, count) == 0)
    low = high - 1 - d.fraction_bits + rng.integers(-3, 2, count)
    negative = rng.integers(0, 2, count).astype(bool)
    top = rng.integers(0, 4, count) == 0
    high = np.where(top, d.max_exponent - (rng.integers(0, 3, count) == 0), high)
    low = np.where(top, high - rng.integers(0, 3, count), low)
    operands = {name: np.zeros((count, k), fmt.dtype) for name, fmt in (("a", a), ("b", b))}
    if instruction.c is not None:
        operands["c"] = np.zeros(count, formats.get(instruction.c).dtype)
    for place, exponent, sign, plain in ((second, low, negative ^ ~top, False), (first, high, negative, True)):
        e_a, e_b = split(rng, exponent, a, b)
        rows = np.flatnonzero(place < k)
        for name, fmt, e, s in (("a", a, e_a, sign), ("b", b, e_b, np.zeros(count, bool))):
            operands[name][rows, place[rows]] = _signed(code(rng, fmt, e), fmt, s, plain)[rows]
        if instruction.c is not None:
            c = formats.get(instruction.c)
            mine = place == k
            operands["c"][mine] = _signed(code(rng, c, exponent), c, sign, plain)[mine]
    for role in ("scale_a", "scale_b"):
        if instruction.scale is not None:
            operands[role] = np.full((count, k // instruction.scale_size), unit(instruction.scale))
    return with_random_bits(instruction, Batch(**operands), seed)


def cancelled_vectors(instruction: Instruction, seed: int, count: int) -> Batch:
    """Products that cancel exactly, one pair of lanes or more, and all that is left: C, subnormal in three of four
    vectors and else the lowest normal, or without C, of an odd number of lanes, a small product.

    The products that cancel have any exponents, half of them close to the lowest result.  The other lanes are zero.
    """
    rng = np.random.default_rng([seed, 0xCA2CE1])
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    k, rows = instruction.k, np.arange(count)
    operands = {name: np.zeros((count, k), fmt.dtype) for name, fmt in (("a", a), ("b", b))}
    order = np.argsort(rng.random((count, k)), axis=1)
    lowest, top = a.min_exponent + b.min_exponent, min(a.max_exponent + b.max_exponent, d.max_exponent) - 2
    for first in range(0, k - 1, 2):
        live = rows[(rng.random(count) < 0.3) | (first == 0)]
        near = np.clip(d.min_exponent + rng.integers(-4, 20, len(live)), lowest, max(top, lowest))
        anywhere = rng.integers(lowest, max(top, lowest) + 1, len(live))
        e_a, e_b = split(rng, np.where(rng.integers(0, 2, len(live)) == 0, near, anywhere), a, b)
        x, y = code(rng, a, e_a), code(rng, b, e_b)
        for lane, sign in ((order[live, first], a.dtype.type(0)), (order[live, first + 1], a.dtype.type(a.sign_mask))):
            operands["a"][live, lane], operands["b"][live, lane] = x ^ sign, y
    if instruction.c is not None:
        c = formats.get(instruction.c)
        normal = 1 << c.fraction_bits
        small = np.where(rng.integers(0, 4, count) > 0, rng.integers(min(1, normal - 1), normal, count), normal)
        negative = np.where(rng.integers(0, 2, count) == 0, np.uint64(0), np.uint64(c.sign_mask))
        operands["c"] = (small.astype(np.uint64) << np.uint64(c.padding) | negative).astype(c.dtype)
    elif k % 2:
        e_a, e_b = split(rng, np.clip(d.min_exponent + rng.integers(-8, 3, count), lowest, max(top, lowest)), a, b)
        operands["a"][rows, order[:, -1]], operands["b"][rows, order[:, -1]] = code(rng, a, e_a), code(rng, b, e_b)
    for role in ("scale_a", "scale_b"):
        if instruction.scale is not None:
            operands[role] = np.full((count, k // instruction.scale_size), unit(instruction.scale))
    return with_random_bits(instruction, Batch(**operands), seed)


def _signed(code: Bits, fmt: formats.Format, negative: NDArray[np.bool_], plain: bool) -> Bits:
    """The codes with this sign; ``plain`` clears the fraction."""
    size = code & fmt.dtype.type(fmt.code_limit - 1 - fmt.sign_mask)
    if plain:
        size = (
            size >> fmt.dtype.type(fmt.fraction_bits + fmt.padding) << fmt.dtype.type(fmt.fraction_bits + fmt.padding)
        )
    found: Bits = np.where(negative, size | fmt.dtype.type(fmt.sign_mask), size).astype(fmt.dtype)
    return found


def _infinity(fmt: formats.Format) -> int:
    return fmt.infinity_code if fmt.infinity_code is not None else fmt.largest


def _zero(fmt: formats.Format) -> int:
    return 0


def _special(rng: np.random.Generator, fmt: formats.Format, kind: Ints) -> Bits:
    """Quiet NaN (0, 1), signalling NaN (2), infinity (3, 4) or zero (5), of random sign and payload."""
    size = kind.shape
    infinity, nan = _infinity(fmt), fmt.nan_code if fmt.nan_code is not None else fmt.largest
    payload = np.zeros(size, np.uint64)
    if fmt.nan == "ieee" and fmt.fraction_bits > 1:
        payload = rng.integers(1, 1 << (fmt.fraction_bits - 1), size).astype(np.uint64) << np.uint64(fmt.padding)
    signalling = np.where(fmt.quiet_bit != 0, np.uint64(infinity) | payload, np.uint64(nan))
    code = np.where(kind <= 1, np.uint64(nan) | payload, np.where(kind == 2, signalling, np.uint64(infinity)))
    code = np.where(kind == 5, np.uint64(0), code)
    signs = np.where(rng.integers(0, 2, size).astype(bool), np.uint64(fmt.sign_mask), np.uint64(0))
    found: Bits = (code | signs).astype(fmt.dtype)
    return found
