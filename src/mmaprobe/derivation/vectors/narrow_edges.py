"""Sums at an edge of a narrow result, where one unit of a wide sum inside decides.

Of a sum that is wider than the result little shows: what it cuts, and how it rounds, is far below the result's last
place.  It shows where the rest of the sum is a value of the result, or a tie between two, and a term much smaller takes
it off that edge, or is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.plain import Ints, code, powers, split, unit, window
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits

Mask = NDArray[np.bool_]
WIDE = formats.get("f32").fraction_bits
"""Fraction bits that a sum inside may well have where its result has fewer."""
NEAR = -2, 6
"""Most small terms lie between these many places below the last place of such a sum."""
BELOW = 10
"""The others lie so many places below it at most."""
FROM_C = 0.7
"""The share of vectors whose large term is c, which every step meets: all where beside a small c nothing is at an
edge."""
SHORTEST = 2
"""Bits of each factor, at least, of which a remainder of two products is one bit."""
TOGETHER = 4
"""Terms that are to meet: two that make the edge, two small ones."""


def hides_sums(instruction: Instruction) -> bool:
    """Whether a float result of several products and c has fewer places than a sum inside may well have."""
    a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    factors = min(a.fraction_bits, b.fraction_bits) > SHORTEST
    return d.is_float and d.fraction_bits < WIDE and factors and instruction.k > 1 and instruction.c is not None


def narrow_edges(instruction: Instruction, seed: int, count: int) -> Batch:
    """A large term, c or a product, of no more digits than the result; half of its last place beside it in half of the
    vectors, in others two products that cancel, or nothing; and one or two small products at any depth below, or two of
    which so little is left where none is so small; in half of the vectors, where there is room, one of them makes a tie
    of the wide sum, too.  All are lanes side by side in most vectors, so that they meet in one step; the others are as
    small as plain products are, and cancel where that is not small.  All operands are normal."""
    rng = np.random.default_rng([seed, 0xED6E])
    made = _Edges.of(rng, instruction, count)
    of_c = formats.get(instruction.c or "")
    c = made.c(of_c)
    batch = dict(zip("ab", made.products((c & of_c.dtype.type(of_c.sign_mask)) != 0), strict=True)) | {"c": c}
    if instruction.scale is not None:
        blocks = (count, instruction.k // instruction.scale_size)
        batch |= {role: np.full(blocks, unit(instruction.scale)) for role in ("scale_a", "scale_b")}
    return Batch(**batch)


@dataclass(frozen=True)
class _Edges:
    """What each vector is made of: ``places`` are its lanes in order, those of small terms first; ``top`` the exponent
    of the large term, c where ``in_c``, a power of two where ``even``, with half of a last place where ``tie``;
    ``least`` the exponent of the small ones, one of which is half a last place of a wide sum where ``both``."""

    rng: np.random.Generator
    a: Format
    b: Format
    d: Format
    low: int
    high: int
    places: Ints
    top: Ints
    least: Ints
    in_c: Mask
    even: Mask
    tie: Mask
    both: Mask

    @classmethod
    def of(cls, rng: np.random.Generator, instruction: Instruction, count: int) -> _Edges:
        a, b, d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
        low, high = window(instruction, a, b, d)
        near = WIDE + rng.integers(NEAR[0], NEAR[1] + 1, count)
        anywhere = rng.integers(d.fraction_bits + 2, WIDE + BELOW + 1, count)
        depth = np.where(rng.integers(0, 3, count) > 0, near, anywhere)
        top = rng.integers(np.minimum(low + depth, high), high + 1)
        even, tie = rng.integers(0, 2, (2, count)).astype(bool)
        places, in_c = _places(rng, count, instruction.k), rng.random(count) < (1.0 if _is_short(low, high) else FROM_C)
        both = (top - WIDE > low) & (rng.integers(0, 2, count) == 0)
        depth = np.where(both, np.maximum(depth, WIDE + rng.integers(2, NEAR[1] + 1, count)), depth)
        return cls(rng, a, b, d, low, high, places, top, top - depth, in_c, even, tie, both)

    def c(self, fmt: Format) -> Bits:
        """The large term, half of its last place where the lanes are too few, or as small as a plain product."""
        few = self.places.shape[1] < TOGETHER
        exponent = np.where(self.in_c, self.top, np.where(self.tie & few, self._half, self.low))
        lowest = max(fmt.min_exponent, self.d.min_exponent + 3)
        found = code(self.rng, fmt, np.clip(exponent, lowest, max(lowest, self.high)))
        return np.where(self.even | ~self.in_c, powers(fmt, found), found)

    @property
    def _half(self) -> Ints:
        """The exponent of half a last place of the large term."""
        return self.top - self.d.fraction_bits - 1

    def products(self, below: Mask) -> tuple[Bits, Bits]:
        """The operands of all products; ``below``: where c is negative."""
        rng, (count, k) = self.rng, self.places.shape
        small, other, half, large = (self.places[:, min(i, k - 1)] for i in range(TOGETHER))
        every, halves = np.arange(count), self.in_c & (k >= TOGETHER)
        if k < TOGETHER:
            half = large = other
        beside = np.where(halves, self._half - 1, self._half)
        some = rng.integers(self.low, np.maximum(beside, self.low) + 1)
        beside = np.where(self.tie, beside, np.where(halves, some, self.low))
        exponents = self.low + rng.integers(0, 3, (count, k))
        plain, rest = np.zeros((count, k), bool), np.ones((count, k), bool)
        for some, lane, exponent, whole in (
            (every, small, self.least, False),
            (every[rng.integers(0, 2, count) > 0], other, self.least + rng.integers(-1, 2, count), False),
            (every[self.both], other, self.top - WIDE - 1, True),
            (every[self.tie | halves], half, beside, True),
            (every[~self.in_c], large, self.top, True),
        ):
            at = some, lane[some]
            exponents[at], plain[at], rest[at] = exponent[some], whole, False
        e_a, e_b = split(rng, np.clip(exponents, self.low, self.high), self.a, self.b)
        x, y = code(rng, self.a, e_a), code(rng, self.b, e_b)
        digits = (np.arange(k) == large[:, None]) & ~(self.even | self.in_c)[:, None]
        x, y = np.where(plain & ~digits, powers(self.a, x), x), np.where(plain, powers(self.b, y), y)
        if _is_short(self.low, self.high):
            self._cancel(x, y, rest)
        _repeat(x, y, every[halves], half, large)
        self._turn(x, every[halves & ~self.tie], large)
        above = np.where(self.in_c, below, self._negative(x, y, every, large))
        wrong = self.both & ~self.tie & (above == self._negative(x, y, every, other))
        self._turn(x, every[wrong], other)
        apart = (self.least < self.low) & ((k > SHORTEST) | ~self.tie & self.in_c)
        self._leave(x, y, every[apart], small, other)
        return x, y

    def _turn(self, x: Bits, rows: Ints, lane: Ints) -> None:
        """Give the products in this lane of these vectors the other sign, in place."""
        x[rows, lane[rows]] ^= self.a.dtype.type(self.a.sign_mask)

    def _negative(self, x: Bits, y: Bits, rows: Ints, lane: Ints) -> Mask:
        """Whether the product in this lane of these vectors is negative."""
        signs = [codes[rows, lane] & fmt.dtype.type(fmt.sign_mask) for codes, fmt in ((x, self.a), (y, self.b))]
        found: Mask = (signs[0] != 0) ^ (signs[1] != 0)
        return found

    def _cancel(self, x: Bits, y: Bits, rest: Mask) -> None:
        """Of the ``rest`` of the lanes make two side by side cancel, in place."""
        for lane in range(1, rest.shape[1], 2):
            rows = np.flatnonzero(rest[:, lane - 1] & rest[:, lane])
            x[rows, lane], y[rows, lane] = x[rows, lane - 1] ^ self.a.dtype.type(self.a.sign_mask), y[rows, lane - 1]

    def _leave(self, x: Bits, y: Bits, rows: Ints, one: Ints, other: Ints) -> None:
        """Make the lane at ``one`` (1 + u)(1 + v), and the ``other`` -(1 + u + v), of the lowest exponent; u and v are
        powers of two such that uv is as small as it should be.  In place."""
        a, b = self.a, self.b
        most = min(a.fraction_bits, b.fraction_bits)
        bits = np.clip(self.low - self.least[rows], 2 * SHORTEST, 2 * most)
        of_u = np.clip(self.rng.integers(SHORTEST, most + 1, len(rows)), bits - most, bits - SHORTEST)
        u, v = (np.int64(1) << (a.fraction_bits - each) for each in (of_u, bits - of_u))
        _repeat(x, y, rows, one, other)
        self._turn(x, rows, other)
        for codes, fmt, lane, fraction in (
            (x, a, one, u), (y, b, one, np.int64(1) << (b.fraction_bits - bits + of_u)),
            (x, a, other, u + v), (y, b, other, np.zeros_like(u)),
        ):  # fmt: skip
            at = rows, lane[rows]
            codes[at] = powers(fmt, codes[at]) | (fraction << fmt.padding).astype(fmt.dtype)


def _is_short(low: int, high: int) -> bool:
    """Whether the smallest plain products are not lost below the largest ones."""
    return high - low < WIDE + BELOW


def _repeat(x: Bits, y: Bits, rows: Ints, one: Ints, other: Ints) -> None:
    """Make the ``other`` lane of these vectors as the ``one`` is, in place."""
    for codes in (x, y):
        codes[rows, other[rows]] = codes[rows, one[rows]]


def _places(rng: np.random.Generator, count: int, k: int) -> Ints:
    """The lanes of each vector in some order, the first ones side by side in most: those of a part of four, or of some
    power of two, and then the others."""
    order = rng.random((count, k))
    size = np.where(rng.integers(0, 3, count) > 0, TOGETHER, 1 << rng.integers(1, max(k.bit_length(), 2), count))
    start = (rng.random(count) * k).astype(np.int64) // size * size
    inside = (np.arange(k) >= start[:, None]) & (np.arange(k) < (start + size)[:, None])
    return np.argsort(order - inside * (rng.integers(0, 4, (count, 1)) > 0), axis=1)
