"""Terms of vectors aimed at rivals: for each lane, and c, an exponent, a sign, a kind of fraction; their codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.vectors.terms import ABSENT, ANY, FULL, HALF, KINDS, NEXT, ONE, codes_of
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath, Fused, walk
from mmaprobe.parameters.rewrite import encodes

Ints = NDArray[np.int64]
CHOICES = 4
"""Choices of lanes of a vector, of which one is taken."""
FEWER = 4
"""Of so many such vectors of few lanes (``FEW_LANES``), which have few choices, one is taken, which is nearest."""
FEW_LANES = 8
"""Lanes, at most: of more the choices of lanes are many."""
FACTORS = 64
"""Odd numbers of which one is a factor of a product whose last bits are given, that whose other factor is smallest."""
NEWTON = 5
"""Steps from an odd number, which is its own inverse modulo eight, to its inverse modulo two to the 64."""
BETWEEN = 0.5**0.5
"""Of numbers from a half to one those below are nearer to a half."""


@dataclass(frozen=True)
class TermPlaces:
    """What the datapaths hold: distances below a term, and absolute exponents; the format that all of them round
    products to; fraction bits of what sums are rounded to before a last conversion; distances in sums that are terms of
    others, and in those others."""

    reach: tuple[int, ...]
    zeros: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    product: formats.Format | None = None
    shown: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()
    outer: tuple[int, ...] = ()


def places_of(datapaths: Sequence[Datapath]) -> TermPlaces:
    """The places of all these datapaths together, each once."""
    reach: set[int] = set()
    zeros: set[int] = set()
    lows: set[int] = set()
    highs: set[int] = set()
    shown: set[int] = set()
    sums: list[Fused] = []
    for path in datapaths:
        every = encodes(path)
        for fmt in map(formats.get, {path.d, path.c or path.d, *(to.format for to in every)}):
            if fmt.is_float:
                reach |= {fmt.fraction_bits, fmt.fraction_bits + 1}
                lows |= {fmt.min_exponent, fmt.min_exponent - fmt.fraction_bits}
                highs.add(fmt.max_exponent)
        highs |= {n for n in (path.product.overflow_exponent,) if n is not None}
        reach |= {to.first[0] for to in every if to.first}
        if path.result is not None:
            every.remove(path.result)
        shown |= {to.first[0] if to.first else formats.get(to.format).fraction_bits for to in every}
        sums += [node for node in walk(path.tree) if isinstance(node, Fused)]
    for term in (term for node in sums for term in node.terms):
        reach |= {n for n in (term.fraction_bits, term.cutoff) if n is not None}
        zeros |= {n for n in (term.zero_exponent,) if n is not None}
    nested = [(node, term.of) for node in sums for term in node.terms if isinstance(term.of, Fused)]
    outer, inner = _cuts(node for node, _ in nested), _cuts(of for _, of in nested)
    products = {path.product.to.format if path.product.to else "" for path in datapaths}
    product = formats.get(products.pop()) if len(products) == 1 and "" not in products else None
    return TermPlaces(
        _sorted(reach), _sorted(zeros), _sorted(lows), _sorted(highs), product, _sorted(shown), inner, outer
    )


def _cuts(sums: Iterable[Fused]) -> tuple[int, ...]:
    """The fraction bits of all terms of these sums."""
    return _sorted({term.fraction_bits for node in sums for term in node.terms if term.fraction_bits is not None})


def _sorted(values: set[int]) -> tuple[int, ...]:
    return tuple(sorted(values))


class Terms:
    """``count`` vectors of one shape: for every term (lanes, then c) an exponent, a sign and a kind of fraction."""

    def __init__(
        self,
        instruction: Instruction,
        places: TermPlaces,
        rng: np.random.Generator,
        count: int,
        steps: Sequence[Sequence[int]],
    ) -> None:
        self.instruction, self.places, self.rng, self.count, self.steps = instruction, places, rng, count, steps
        self.a, self.b, self.d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
        self.c = formats.get(instruction.c) if instruction.c else None
        self.terms = instruction.k + (self.c is not None)
        shape = (count, self.terms)
        self.exponent = np.full(shape, ABSENT, np.int64)
        one_sign = np.repeat(self.flags((count, 1)), self.terms, axis=1)
        self.negative = np.where(self.flags((count, 1)), one_sign, self.flags(shape))
        self.kind = rng.integers(0, KINDS, shape)
        self.scales, self.shift = self._scales()

    # -- parts

    def flags(self, shape: tuple[int, ...] | None = None) -> NDArray[np.bool_]:
        return self.rng.integers(0, 2, shape or self.count).astype(bool)

    def jitter(self, low: int, high: int) -> Ints:
        return self.rng.integers(low, high + 1, self.count)

    def pick(self, values: Sequence[int]) -> Ints:
        return np.asarray(values, np.int64)[self.rng.integers(0, len(values), self.count)]

    def choose(self, *kinds: int) -> Ints:
        return self.pick(kinds)

    def c_first(self, places: list[Ints], when: NDArray[np.bool_]) -> None:
        """Make c the first of the places of some vectors."""
        if self.c is None:
            return
        for place in places[1:]:
            place[:] = np.where(when & (place == self.instruction.k), places[0], place)
        places[0] = np.where(when, self.instruction.k, places[0])

    def four(self) -> list[Ints]:
        """Four terms of every vector, different where there are so many, of one step half the time, often of the first,
        where c is; c is among them half the time."""
        first = self.rng.random((self.count, self.terms))
        step = self.rng.integers(0, len(self.steps), self.count) * (self.rng.integers(0, 3, self.count) > 0)
        together = np.zeros((len(self.steps), self.terms))
        for number, lanes in enumerate(self.steps):
            together[number, list(lanes)] = 1
        order = np.argsort(first - together[step] * self.flags((self.count, 1)), axis=1)
        if self.c is not None:
            swap = np.flatnonzero(self.flags())
            at = self.rng.integers(0, min(4, self.terms), swap.size)
            here = np.argmax(order[swap] == self.terms - 1, axis=1)
            order[swap, here], order[swap, at] = order[swap, at], self.terms - 1
        return [order[:, min(i, self.terms - 1)].copy() for i in range(4)]

    def apart(self) -> list[Ints]:
        """Three terms of one step of every vector, as far as it has so many, mostly of the first step and c among them,
        mostly the third; and a product of a step after it."""
        last = len(self.steps) - 1
        step = np.where(self.jitter(0, 3) > 0, 0, self.rng.integers(0, max(last, 1), self.count))
        after = step + 1 + (self.rng.random(self.count) * (last - step)).astype(np.int64)
        lanes = np.array([np.resize(each, len(self.steps[0])) for each in self.steps], np.int64)
        picked = np.argsort(self.rng.random((self.count, lanes.shape[1])), axis=1)[:, np.arange(3) % lanes.shape[1]]
        found = lanes[step[:, None], picked]
        if self.c is not None:
            of_c = np.flatnonzero((step == 0) & (self.jitter(0, 3) > 0))
            found[of_c, self.pick((0, 1, 2, 2, 2, 2))[of_c]] = self.instruction.k
        others = lanes[np.minimum(after, last), self.rng.integers(0, lanes.shape[1], self.count)]
        return [*found.T, others]

    def apart_of_blocks(self, place: Ints, other: Ints) -> None:
        """Move the place, where it is a lane, to a scale block that is not that of the other; if there are several."""
        k, size = self.instruction.k, self.instruction.scale_size
        if self.instruction.scale is None or k <= size:
            return
        blocks = k // size
        block = (other // size + 1 + self.rng.integers(0, blocks - 1, self.count)) % blocks
        lane = block * size + self.rng.integers(0, size, self.count)
        place[:] = np.where(place < k, lane, place)

    def hidden(self) -> Ints:
        """Distances at which a cut lies below what sums show, as far as there are any."""
        last = max(self.places.shown)
        return self.pick([bits for bits in self.places.reach if bits > last + 1] or self.places.reach)

    def highest(self) -> int:
        return self.a.max_exponent + self.b.max_exponent

    def anchor(self) -> Ints:
        """An exponent that products and the result can have; a third of them at the ends."""
        low = max(self.a.min_exponent + self.b.min_exponent, self.d.min_exponent)
        high = min(self.highest(), self.d.max_exponent - self.instruction.k.bit_length())
        if self.places.product is not None:
            of = self.places.product
            low, high = max(low, of.min_exponent - of.fraction_bits), min(high, of.max_exponent)
        if self.c is not None:
            low = min(low, max(self.c.min_exponent, self.d.min_exponent))
        anywhere = self.rng.integers(low, max(low, high) + 1, self.count)
        middle = np.clip(self.jitter(-4, 8), low, max(low, high))
        return np.where(self.rng.integers(0, 3, self.count) == 0, anywhere, middle)

    def fill(self, exponent: Ints) -> None:
        """All terms: zeros; in half of the vectors a term in four, or every term, at these exponents."""
        some = self.rng.integers(0, 4, self.exponent.shape) == 0
        mode = self.rng.integers(0, 4, (self.count, 1))
        self.exponent = np.where((mode == 3) | ((mode == 2) & some), exponent[:, None], ABSENT)

    def put(self, place: Ints, exponent: Ints, negative: Any = None, kind: Any = None) -> None:
        rows = np.arange(self.count)
        self.exponent[rows, place] = exponent
        if negative is not None:
            self.negative[rows, place] = negative
        if kind is not None:
            self.kind[rows, place] = kind

    def _scales(self) -> tuple[dict[str, Bits], Ints]:
        """Block scales, one value a vector, and how far they move the products' exponents: not at all, or to an end."""
        self.scales, self.shift = {}, np.zeros((self.count, 1), np.int64)
        if self.instruction.scale is None:
            return self.scales, self.shift
        fmt = formats.get(self.instruction.scale)
        lowest = fmt.min_exponent - fmt.fraction_bits * fmt.subnormal
        ends = (fmt.min_exponent // 2, fmt.max_exponent // 2, fmt.min_exponent, lowest)
        target = self.pick((*self.places.zeros, *self.places.lows, *self.places.highs)) + self.jitter(-8, 8)
        target -= np.where(self.flags(), self.pick(self.places.reach), 0)
        halves = [np.where(self.flags(), target // 2, self.pick([0, 0, *ends])) for _ in range(2)]
        self._scale_by(*(half[:, None] for half in halves))
        return self.scales, self.shift

    def rescale(self, target: Ints) -> None:
        """Scales, if there are any, whose product is about two to the ``target`` (vectors, or vectors and blocks)."""
        if self.instruction.scale is not None:
            target = target if target.ndim == 2 else target[:, None]
            self._scale_by(target // 2, target - target // 2)

    def scaled_ends(self) -> tuple[int, int]:
        """The lowest bit and the largest exponent of a product with its scales."""
        of = [self.a, self.b, *([formats.get(self.instruction.scale)] * 2 if self.instruction.scale else [])]
        return sum(fmt.min_exponent - fmt.fraction_bits for fmt in of), sum(fmt.max_exponent for fmt in of)

    def _scale_by(self, of_a: Ints, of_b: Ints) -> None:
        assert self.instruction.scale is not None
        fmt, size = formats.get(self.instruction.scale), self.instruction.scale_size
        blocks = self.instruction.k // size
        self.shift = np.zeros((self.count, blocks * size), np.int64)
        for role, step in (("scale_a", of_a), ("scale_b", of_b)):
            lowest = fmt.min_exponent - fmt.fraction_bits * fmt.subnormal
            step = np.broadcast_to(np.clip(step, lowest, fmt.max_exponent), (self.count, blocks))
            self.shift += np.repeat(step, size, axis=1)
            tiny = np.int64(1) << np.clip(step - lowest, 0, fmt.fraction_bits)
            normal = (step + fmt.bias) << fmt.fraction_bits | self._digits(fmt)
            self.scales[role] = np.where(step < fmt.min_exponent, tiny, normal).astype(fmt.dtype)

    def _digits(self, fmt: formats.Format) -> Ints:
        """A fraction of scales, of all blocks the same: none, or any."""
        some = self.rng.integers(0, 3, (self.count, 1)) == 0
        return np.where(some, self.rng.integers(0, fmt.max_fraction + 1, (self.count, 1)), 0)

    def _reach(self) -> None:
        """Block by block other scales where a product of the block would not reach its exponent by those there are;
        the largest first."""
        if self.instruction.scale is None:
            return
        blocks = (self.count, -1, self.instruction.scale_size)
        wanted, shift = self.exponent[:, : self.instruction.k].reshape(blocks), self.shift.reshape(blocks)[:, :, 0]
        least = np.where(wanted == ABSENT, np.iinfo(np.int64).max // 2, wanted).min(axis=2)
        most = np.where(wanted == ABSENT, np.iinfo(np.int64).min // 2, wanted).max(axis=2)
        lowest = sum(fmt.min_exponent - fmt.fraction_bits for fmt in (self.a, self.b))
        target = np.maximum(np.minimum(shift, least - lowest), most - self.highest())
        other = (target != shift).any(axis=1)
        before, held = self.shift, self.scales
        self.scales = {}
        self.rescale(target)
        self.shift = np.where(other[:, None], self.shift, before)
        self.scales = {role: np.where(other[:, None], codes, held[role]) for role, codes in self.scales.items()}

    def encoded(self) -> Batch:
        """The terms as operand codes; a product's exponent is shared by a and b as their formats allow, its sign is
        that of a, or both of them have the other one."""
        self._reach()
        k = self.instruction.k
        absent = self.exponent[:, :k] == ABSENT
        target = np.where(absent, 0, self.exponent[:, :k] - self.shift)
        low_a, low_b = (
            fmt.min_exponent - fmt.fraction_bits * (self.flags((self.count, 1))) for fmt in (self.a, self.b)
        )
        most = np.minimum(self.a.max_exponent, target - low_b)
        least = np.maximum(low_a, target - self.b.max_exponent)
        spread = np.minimum(least, most) + (self.rng.random(target.shape) * (abs(most - least) + 1)).astype(np.int64)
        places = (self.rng.random(target.shape) * (self.b.fraction_bits + 1)).astype(np.int64)
        at_end = self.rng.integers(0, 4, (self.count, 1)) == 0  # b at the low end of its range, or its subnormals
        spread = np.where(at_end, np.maximum(most - places, np.minimum(least, most)), spread)
        e_a = np.clip(spread, self.a.min_exponent - self.a.fraction_bits, self.a.max_exponent)
        plain, same = self.flags((self.count, k)), self.flags((self.count, 1))
        kind, factor = self.kind[:, :k], self.rng.integers(0, 3, (self.count, 1))
        in_a, in_b = absent & (factor != 1), absent & (factor != 0)
        of_zero = self.rng.integers(0, 4, (self.count, 1)) == 0  # the factor whose sign a zero takes
        of_b, both = (
            (in_a & ~in_b) ^ (absent & of_zero),
            ~absent & self.flags((self.count, k)) & self.flags((self.count, 1)),
        )
        operands = {
            "a": codes_of(self.rng, self.a, np.where(in_a, ABSENT, e_a), self.negative[:, :k] & ~of_b ^ both,
                        np.where(plain | same, kind, ONE), self.places.reach),
            "b": codes_of(self.rng, self.b, np.where(in_b, ABSENT, target - e_a), self.negative[:, :k] & of_b ^ both,
                        np.where(plain & ~same, ONE, kind), self.places.reach),
        }  # fmt: skip
        if self.c is not None:
            of_c = self.exponent[:, k], self.negative[:, k], self.kind[:, k]
            operands["c"] = codes_of(self.rng, self.c, *of_c, self.places.reach)
        return Batch(**operands, **self.scales)

    def specials_into(self, batch: Batch, places: list[Ints]) -> Batch:
        """One to four special operands: two NaNs of different payloads, an infinity, or a zero that meets one."""
        operands = {name: value.copy() for name, value in batch.items()}
        rows = np.arange(self.count)
        for number, place in enumerate(places):
            use = rows[self.flags() | (number == 0)]
            for name, fmt in (("a", self.a), ("b", self.b)):
                mine = use[(place[use] < self.instruction.k) & self.flags(use.shape)]
                operands[name][mine, place[mine]] = self._special(fmt, mine.size)
            if self.c is not None:
                mine = use[place[use] == self.instruction.k]
                operands["c"][mine] = self._special(self.c, mine.size)
        return Batch(**operands)

    def _special(self, fmt: formats.Format, count: int) -> Bits:
        """Random codes with all exponent bits set, or zeros, of both signs."""
        ones = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
        fraction = self.rng.integers(0, 1 << fmt.fraction_bits, count)
        if fmt.infinity_code is None:  # hardly a code is a NaN
            fraction[self.flags((count,))] = (1 << fmt.fraction_bits) - 1
        fraction[self.rng.integers(0, 3, count) == 0] = 0
        code = np.where(self.rng.integers(0, 5, count) == 0, 0, ones | fraction) << fmt.padding
        signs = np.where(self.flags((count,)), np.uint64(fmt.sign_mask), np.uint64(0))
        found: Bits = (code.astype(np.uint64) | signs).astype(fmt.dtype)
        return found

    def ties_into(self, batch: Batch, place: Ints) -> Batch:
        """The lane at ``place`` a product of odd factors, so long that its last bit is half of a last place."""
        operands = {name: value.copy() for name, value in batch.items()}
        rows = np.flatnonzero(place < self.instruction.k)
        of, both = self.places.product, self.a.fraction_bits + self.b.fraction_bits
        most = both if of is None else min(both, of.fraction_bits)
        precision = self.pick([reach for reach in self.places.reach if 1 < reach <= most] or [2])[rows] + 2
        in_a = np.clip((precision * self.rng.random(rows.size)).astype(np.int64), 1, self.a.fraction_bits + 1)
        for name, fmt, bits in (("a", self.a, in_a), ("b", self.b, precision - in_a + self.jitter(0, 1)[rows])):
            bits = np.clip(bits, 1, fmt.fraction_bits + 1)
            odd = (self.rng.integers(0, 1 << 62, rows.size) % (1 << (bits - 1))) | 1
            fraction = np.where(bits > 1, odd << (fmt.fraction_bits + 1 - bits), 0)
            _refracted(operands[name], fmt, rows, place[rows], fraction)
        return Batch(**operands)

    def conjugates_into(self, batch: Batch, other: Ints, place: Ints) -> Batch:
        """The lane at ``place`` (1 + e)(2 - 2e), or (1 + e)(1.5 - 1.5e) where the term at ``other`` is 1.5; e a power
        of two about half as many bits down as a cut."""
        operands = {name: value.copy() for name, value in batch.items()}
        rows = np.flatnonzero(place < self.instruction.k)
        three = self.kind[rows, other[rows]] == HALF
        a, b = np.int64(self.a.fraction_bits), np.int64(self.b.fraction_bits)
        down = ((self.pick(self.places.reach) + self.jitter(0, 3)) // 2)[rows]
        down = np.clip(down, 1, np.maximum(np.minimum(a, b - three), 1))
        above = np.where(three, (1 << b >> 1) - (3 << b >> down + 1), (1 << b) - (1 << b >> down - 1))
        for name, fmt, fraction in (("a", self.a, 1 << a >> down), ("b", self.b, above)):
            _refracted(operands[name], fmt, rows, place[rows], np.maximum(fraction, 0) & ((1 << fmt.fraction_bits) - 1))
        return Batch(**operands)

    def remainders_into(self, batch: Batch, one: Ints, other: Ints) -> Batch:
        """The lane at ``one`` (1 + u)(1 + v), u and v the last places of a and b, and the ``other`` 1 + u + v: what is
        left of the two is uv."""
        operands = {name: value.copy() for name, value in batch.items()}
        k, a, b = self.instruction.k, self.a, self.b
        rows = np.flatnonzero((one < k) & (other < k) & (one != other))
        wide, narrow = ("a", "b") if a.fraction_bits >= b.fraction_bits else ("b", "a")
        of = {"a": a, "b": b}
        both = 1 + (1 << of[wide].fraction_bits - of[narrow].fraction_bits) if of[narrow].fraction_bits else 0
        for name, fmt in of.items():
            last = np.full(rows.size, min(1, fmt.fraction_bits), np.int64)
            rest = np.full(rows.size, both if name == wide else 0, np.int64) & ((1 << fmt.fraction_bits) - 1)
            _refracted(operands[name], fmt, rows, one[rows], last)
            _refracted(operands[name], fmt, rows, other[rows], rest)
        return Batch(**operands)

    def halves_into(self, batch: Batch) -> Batch:
        """Where one lane alone has a product: odd times half of the result's lowest last place, and its own last bit
        more or less, about a bit below what is kept below a zero."""
        operands = {name: value.copy() for name, value in batch.items()}
        live = self.exponent[:, : self.instruction.k] != ABSENT
        rows = np.flatnonzero(live.sum(axis=1) == 1)
        lanes, shape = live[rows].argmax(axis=1), (FACTORS, rows.size)
        half = self.d.min_exponent - self.d.fraction_bits - 1
        last = self.pick(self.places.zeros or self.places.lows) - self.pick(self.places.reach) - self.jitter(-1, 2)
        down = np.clip(half - last, 1, self.a.fraction_bits + self.b.fraction_bits)[rows]
        bits = self.rng.integers(0, self.a.fraction_bits + 1, shape)
        some = self.rng.integers(0, 2 << self.a.fraction_bits, shape) >> bits | 1
        of_a, of_b = _that_end_in((1 << down) + np.where(self.flags()[rows], 1, -1), down, some)
        low = self.a.min_exponent - self.a.fraction_bits
        room = half - down - low - self.b.min_exponent + self.b.fraction_bits
        e_a = low + (self.rng.random(rows.size) * np.maximum(room + 1, 1)).astype(np.int64)
        for name, fmt, significand, exponent in (("a", self.a, of_a, e_a), ("b", self.b, of_b, half - down - e_a)):
            negative = self.negative[rows, lanes] & (name == "a")
            operands[name][rows, lanes] = formats.encode(fmt, negative, significand, exponent, overflow="largest")
        return Batch(**operands)

    @staticmethod
    def spare(instruction: Instruction) -> int:
        """So many times as many vectors are made as ``sums_into`` takes."""
        return FEWER if instruction.k <= FEW_LANES else 1

    def sums_into(self, batch: Batch) -> Batch:
        """Of some choices of lanes, all else zero, the one whose sum is nearest to a power of two and mostly none; c of
        that size, or so much larger that the sum is about half of a last kept bit or a whole one."""
        if self.c is None:
            return batch
        a, b = (formats.decode(fmt, codes) for fmt, codes in ((self.a, batch.a), (self.b, batch.b)))
        size = np.ldexp((a.significand * b.significand).astype(float), a.exponent + b.exponent)
        value = np.where(self.exponent[:, :-1] == ABSENT, 0.0, np.where(a.negative ^ b.negative, -size, size))
        live = self.rng.random((CHOICES, *value.shape)) < self.rng.choice([0.3, 0.7, 1.0], (CHOICES, self.count, 1))
        sums = abs((value * live).sum(axis=2))
        fraction, exponent = np.frexp(sums)
        down = fraction < BETWEEN
        off = np.where(sums > 0, abs(np.log2(np.where(sums > 0, fraction, 1)) + down), 2.0)
        off += (off == 0) & (self.jitter(0, 3) > 0)
        best, rows = off.argmin(axis=0), np.arange(self.count)
        above = np.where(self.flags(), self.d.fraction_bits, self.pick((-1, *self.places.reach))) + 1
        e_c = exponent[best, rows] - down[best, rows] + above + (self.jitter(0, 3) == 0) * self.jitter(-1, 1)
        e_c = np.clip(e_c, self.c.min_exponent - self.c.fraction_bits, self.c.max_exponent)
        kind = self.choose(ONE, ONE, NEXT, FULL, ANY)
        c = codes_of(self.rng, self.c, e_c, self.flags(), kind, self.places.reach)
        made = replace(batch, a=np.where(live[best, rows], batch.a, 0).astype(self.a.dtype), c=c)
        return take(made, np.argsort(off[best, rows], kind="stable")[: self.count // self.spare(self.instruction)])


def _that_end_in(ends: Ints, down: Ints, some: Ints) -> tuple[Ints, Ints]:
    """Of each column of ``some``, odd numbers, the one x, and its y, the smallest of all, whose product is ``ends``
    modulo two to the ``down`` + 1."""
    inverse = some.copy()
    for _ in range(NEWTON):
        inverse *= 2 - some * inverse
    other = (ends * inverse) & ((2 << down) - 1)
    best, column = other.argmin(axis=0), np.arange(other.shape[1])
    return some[best, column], other[best, column]


def _refracted(codes: Bits, fmt: formats.Format, rows: Ints, lanes: Ints, fraction: Ints) -> None:
    """Give the codes of these rows and lanes other fractions."""
    mask = np.uint64(fmt.code_limit - 1 - (((1 << fmt.fraction_bits) - 1) << fmt.padding))
    code = codes[rows, lanes].astype(np.uint64) & mask
    codes[rows, lanes] = (code | fraction.astype(np.uint64) << np.uint64(fmt.padding)).astype(fmt.dtype)
