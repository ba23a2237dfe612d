"""Vectors aimed at pairs: a datapath and the neighbours of it that nothing has told apart yet.

Every number that one of them holds (fraction bits, zero exponents, cut-offs, the
ends of its formats) is a *place*.  Each vector has an anchor, mostly at such a
place, and a few terms at such distances below it that the last kept bit, a tie, a
flush or an overflow of one of the datapaths decides; the other lanes are zeros of
either sign, equal to one of these terms, or tiny.  The search's own pools are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.codes import ABSENT, ANY, FULL, HALF, NEXT, ONE, codes_of
from mmaprobe.derivation.rewrite import encodes
from mmaprobe.parameters.datapath import Datapath, Fused, walk

Ints = NDArray[np.int64]

SHAPES = ("ladder", "cancel", "graze", "zero", "top", "low", "order", "carry", "labels", "specials")


@dataclass(frozen=True)
class Places:
    """What the datapaths hold: distances below a term, and absolute exponents."""

    reach: tuple[int, ...]
    zeros: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]


def places_of(datapaths: Sequence[Datapath]) -> Places:
    """The places of all these datapaths together, each once."""
    reach: set[int] = set()
    zeros: set[int] = set()
    lows: set[int] = set()
    highs: set[int] = set()
    for path in datapaths:
        names = {path.d, *([path.c] if path.c else []), *(to.format for to in encodes(path))}
        for fmt in (formats.get(name) for name in names):
            if fmt.is_float:
                reach |= {fmt.fraction_bits, fmt.fraction_bits + 1}
                lows |= {fmt.min_exponent, fmt.min_exponent - fmt.fraction_bits}
                highs.add(fmt.max_exponent)
        highs |= {n for n in (path.product.overflow_exponent,) if n is not None}
        reach |= {to.first[0] for to in encodes(path) if to.first}
        for node in (node for node in walk(path.tree) if isinstance(node, Fused)):
            cuts = (node.fraction_bits, *(n for term in node.terms for n in (term.fraction_bits, term.cutoff)))
            reach |= {n for n in cuts if n is not None}
            zeros |= {n for n in (node.zero_exponent, *(term.zero_exponent for term in node.terms)) if n is not None}
    return Places(*(tuple(sorted(each)) for each in (reach, zeros, lows, highs)))


def can_attack(instruction: Instruction) -> bool:
    """Whether there are such vectors for an instruction: floats, dense."""
    return all(fmt.is_float for fmt in instruction.formats().values()) and not instruction.chunk


def attack_vectors(
    instruction: Instruction, datapath: Datapath, rivals: Sequence[Datapath], seed: int, count: int
) -> Batch:
    """About ``count`` vectors (floats only) that may tell ``rivals`` from ``datapath``, of each shape as many."""
    rng = np.random.default_rng([seed, 0xA77AC])
    places = places_of([datapath, *rivals])
    each = -(-count // len(SHAPES))
    made = [_Maker(instruction, places, rng, each).make(shape) for shape in SHAPES]
    return Batch(**{name: np.concatenate([getattr(b, name) for b in made]) for name, _ in made[0].items()})


class _Maker:
    """``count`` vectors of one shape: for every term (lanes, then c) an exponent, a sign and a kind of fraction."""

    def __init__(self, instruction: Instruction, places: Places, rng: np.random.Generator, count: int) -> None:
        self.instruction, self.places, self.rng, self.count = instruction, places, rng, count
        self.a, self.b, self.d = (formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
        self.c = formats.get(instruction.c) if instruction.c else None
        self.terms = instruction.k + (self.c is not None)
        shape = (count, self.terms)
        self.exponent = np.full(shape, ABSENT, np.int64)
        self.negative = self._flags(shape)
        self.kind = rng.integers(0, 5, shape)
        self.scales, self.shift = self._scales()

    def make(self, shape: str) -> Batch:
        """The vectors of one shape."""
        places = self._four()
        getattr(self, f"_{shape}")(places)
        batch = self._encoded()
        return self._specials_into(batch, places) if shape == "specials" else batch

    # -- shapes: places holds four different terms of every vector

    def _ladder(self, places: list[Ints]) -> None:
        """An anchor, a term that makes a tie of it, and others at the last kept bits below."""
        anchor = self._anchor()
        precision = self._pick(self.places.reach)
        self._fill(anchor - self._pick(self.places.reach) + self._jitter(-3, 3))
        self._put(places[2], anchor - self._pick(self.places.reach) + self._jitter(-3, 3))
        tie = self._flags() | self._flags()
        self._put(places[1], np.where(tie, anchor - precision + self._jitter(-2, 1), ABSENT), kind=ONE)
        self._put(places[0], anchor, kind=self._choose(ONE, NEXT, FULL, ANY))

    def _cancel(self, places: list[Ints]) -> None:
        """Two terms that cancel, or nearly, and what is left below."""
        anchor = self._anchor()
        self._fill(anchor - self._pick(self.places.reach) + self._jitter(-4, 4))
        self._put(places[2], anchor - self._pick(self.places.reach) + self._jitter(-3, 3))
        kind, sign = self._choose(ONE, FULL, HALF, ANY, ANY), self._flags()
        self._put(places[0], anchor, sign, kind)
        near = np.where(self.rng.integers(0, 4, self.count) == 0, self._jitter(-1, 1), 0)
        self._put(places[1], anchor + near, ~sign, kind)

    def _graze(self, places: list[Ints]) -> None:
        """Sums a hair below or above the lowest normal of one of the formats."""
        low = self._pick(self.places.lows) + self._jitter(0, 1)
        reach = self._pick(self.places.reach)
        below = np.where(self._flags(), low - reach + self._jitter(-3, 2), low - self._jitter(0, 3))
        sign = self._flags()
        self._fill(low - reach - self._jitter(-3, 4))
        more = low - self._pick(self.places.reach) - self._jitter(-3, 4)
        self._put(places[2], np.where(self._flags(), more, ABSENT))
        self._put(places[1], below, np.where(self._flags(), ~sign, sign))
        self._put(places[0], low, sign, self._choose(ONE, ONE, FULL, NEXT, ANY))

    def _zero(self, places: list[Ints]) -> None:
        """Zeros that set the alignment: terms at the result's last place, and one at a zero's last kept bit."""
        last = self.d.min_exponent - self.d.fraction_bits
        zero = self._pick(self.places.zeros or self.places.lows)
        tiny = zero - self._pick(self.places.reach) + self._jitter(-3, 2)
        self._fill(tiny - self._jitter(0, 3))
        self._put(places[2], tiny, kind=self._choose(ONE, ONE, FULL, ANY))
        sign = self._flags()
        self._put(places[1], np.where(self._flags(), last + self._jitter(-1, 1), ABSENT), sign, ONE)
        first = np.where(self.rng.integers(0, 4, self.count) > 0, last + self._jitter(-2, 0), ABSENT)
        self._put(places[0], first, np.where(self._flags(), sign, ~sign), ONE)

    def _top(self, places: list[Ints]) -> None:
        """Terms at the largest of the formats: their sums overflow or just do not."""
        top = self._pick((*self.places.highs, self._highest())) + self._jitter(-2, 0)
        sign = self._flags()
        self._fill(top - self._pick(self.places.reach) + self._jitter(-3, 2))
        gap = np.where(self._flags(), self._pick(self.places.reach) + self._jitter(-1, 3), self._jitter(0, 2))
        self._put(places[2], top - self._jitter(0, 2))
        self._put(places[1], top - gap, np.where(self._flags(), sign, ~sign))
        self._put(places[0], top, sign, self._choose(FULL, FULL, ONE, ANY))

    def _low(self, places: list[Ints]) -> None:
        """Products and c at the low ends of their formats, beside zeros of either sign."""
        lowest = self.a.min_exponent + self.b.min_exponent
        depth = self.a.fraction_bits + self.b.fraction_bits
        for place in places:
            where = np.where(self._flags(), lowest - self._jitter(0, depth), lowest + self._jitter(0, 4))
            low = np.where(self._flags(), self._pick(self.places.lows) + self._jitter(-3, 2), where)
            self._put(place, np.where(self.rng.integers(0, 3, self.count) == 0, ABSENT, low))
        same = self._flags()[:, None] & self._flags((self.count, 1))
        self.negative = np.where(same, self.negative[:, :1], self.negative)

    def _order(self, places: list[Ints]) -> None:
        """A large term and its opposite anywhere, every other lane within reach below them."""
        anchor = self._anchor()
        self.exponent[:] = anchor[:, None] - self.rng.integers(0, max(self.places.reach) + 4, self.exponent.shape)
        kind, sign = self._choose(ONE, FULL, ANY), self._flags()
        self._put(places[0], anchor, sign, kind)
        self._put(places[1], anchor, ~sign, kind)

    def _carry(self, places: list[Ints]) -> None:
        """All ones, a last place that carries them over, half of the next, and a term at the last kept bits below."""
        anchor, sign = self._anchor(), self._flags()
        bits = self._pick([reach for reach in self.places.reach if reach > 1] or [1])
        self._fill(anchor - self._pick(self.places.reach) - self._jitter(0, 3))
        self._put(places[3], anchor - self._pick(self.places.reach) + self._jitter(-3, 3), kind=self._choose(ONE, ANY))
        self._put(places[2], anchor - bits + self._jitter(-1, 1), sign, ONE)
        self._put(places[1], anchor - bits + self._jitter(-1, 0), sign, ONE)
        self._put(places[0], anchor, sign, FULL)

    def _labels(self, places: list[Ints]) -> None:
        """Two terms that cancel, of a subnormal operand, and a last kept bit below what their labels say."""
        depth = self._jitter(1, max(self.a.fraction_bits, 1))
        label = np.where(self._flags(), self.a.min_exponent + self.b.max_exponent,
                         self.b.min_exponent + self.a.max_exponent)  # fmt: skip
        sign = self._flags()
        self._fill(label - self._pick(self.places.reach) - self._jitter(0, 3))
        self._put(places[2], label - self._pick(self.places.reach) + self._jitter(-3, 1))
        self._put(places[1], label - depth, sign, ONE)
        self._put(places[0], label - depth, ~sign, ONE)

    def _specials(self, places: list[Ints]) -> None:
        """Plain terms; special operands come on top."""
        self._order(places)

    # -- parts

    def _flags(self, shape: tuple[int, ...] | None = None) -> NDArray[np.bool_]:
        return self.rng.integers(0, 2, shape or self.count).astype(bool)

    def _jitter(self, low: int, high: int) -> Ints:
        return self.rng.integers(low, high + 1, self.count)

    def _pick(self, values: Sequence[int]) -> Ints:
        return np.asarray(values, np.int64)[self.rng.integers(0, len(values), self.count)]

    def _choose(self, *kinds: int) -> Ints:
        return self._pick(kinds)

    def _four(self) -> list[Ints]:
        """Four terms of every vector, different where there are so many; c is among them half the time."""
        order = np.argsort(self.rng.random((self.count, self.terms)), axis=1)
        if self.c is not None:
            swap = np.flatnonzero(self._flags())
            at = self.rng.integers(0, min(4, self.terms), swap.size)
            here = np.argmax(order[swap] == self.terms - 1, axis=1)
            order[swap, here], order[swap, at] = order[swap, at], self.terms - 1
        return [order[:, min(i, self.terms - 1)] for i in range(4)]

    def _highest(self) -> int:
        return self.a.max_exponent + self.b.max_exponent

    def _anchor(self) -> Ints:
        """An exponent that products and the result can have; a third of them at the ends."""
        low = max(self.a.min_exponent + self.b.min_exponent, self.d.min_exponent)
        high = min(self._highest(), self.d.max_exponent - self.instruction.k.bit_length())
        if self.c is not None:
            low = min(low, max(self.c.min_exponent, self.d.min_exponent))
        anywhere = self.rng.integers(low, max(low, high) + 1, self.count)
        middle = np.clip(self._jitter(-4, 8), low, max(low, high))
        return np.where(self.rng.integers(0, 3, self.count) == 0, anywhere, middle)

    def _fill(self, exponent: Ints) -> None:
        """All terms: zeros; in half of the vectors a term in four, or every term, at these exponents."""
        some = self.rng.integers(0, 4, self.exponent.shape) == 0
        mode = self.rng.integers(0, 4, (self.count, 1))
        self.exponent = np.where((mode == 3) | ((mode == 2) & some), exponent[:, None], ABSENT)

    def _put(self, place: Ints, exponent: Ints, negative: Any = None, kind: Any = None) -> None:
        rows = np.arange(self.count)
        self.exponent[rows, place] = exponent
        if negative is not None:
            self.negative[rows, place] = negative
        if kind is not None:
            self.kind[rows, place] = kind

    def _scales(self) -> tuple[dict[str, Bits], Ints]:
        """Block scales, one value a vector, and how far they move the products' exponents: not at all, or to an end."""
        shift = np.zeros(self.count, np.int64)
        if self.instruction.scale is None:
            return {}, shift
        fmt, found = formats.get(self.instruction.scale), {}
        groups = self.instruction.k // self.instruction.scale_size
        ends = (fmt.min_exponent // 2, fmt.max_exponent // 2, fmt.min_exponent)
        target = self._pick((*self.places.zeros, *self.places.lows, *self.places.highs)) + self._jitter(-8, 8)
        target -= np.where(self._flags(), self._pick(self.places.reach), 0)
        for role in ("scale_a", "scale_b"):
            step = np.where(self._flags(), target // 2, self._pick([0, 0, *ends]))
            step = np.clip(step, fmt.min_exponent, fmt.max_exponent)
            shift += step
            code = (step + fmt.bias) << fmt.fraction_bits
            found[role] = np.repeat(code.astype(fmt.dtype)[:, None], groups, axis=1)
        return found, shift

    def _encoded(self) -> Batch:
        """The terms as operand codes; a product's exponent is shared by a and b as their formats allow."""
        k = self.instruction.k
        target = np.where(self.exponent[:, :k] == ABSENT, ABSENT, self.exponent[:, :k] - self.shift[:, None])
        low_a, low_b = (
            fmt.min_exponent - fmt.fraction_bits * (self._flags((self.count, 1))) for fmt in (self.a, self.b)
        )
        most = np.minimum(self.a.max_exponent, target - low_b)
        least = np.maximum(low_a, target - self.b.max_exponent)
        spread = np.minimum(least, most) + (self.rng.random(target.shape) * (abs(most - least) + 1)).astype(np.int64)
        e_a = np.clip(spread, self.a.min_exponent - self.a.fraction_bits, self.a.max_exponent)
        plain, same = self._flags((self.count, k)), self._flags((self.count, 1))
        kind = self.kind[:, :k]
        absent = target == ABSENT
        minus_b = self._flags((self.count, k)) & absent
        operands = {
            "a": codes_of(self.rng, self.a, np.where(absent & plain, ABSENT, e_a), self.negative[:, :k],
                        np.where(plain | same, kind, ONE)),
            "b": codes_of(self.rng, self.b, np.where(absent, ABSENT, target - e_a), minus_b,
                        np.where(plain & ~same, ONE, kind)),
        }  # fmt: skip
        if self.c is not None:
            operands["c"] = codes_of(self.rng, self.c, self.exponent[:, k], self.negative[:, k], self.kind[:, k])
        return Batch(**operands, **self.scales)

    def _specials_into(self, batch: Batch, places: list[Ints]) -> Batch:
        """One to four special operands: two NaNs of different payloads, an infinity, or a zero that meets one."""
        operands = {name: value.copy() for name, value in batch.items()}
        rows = np.arange(self.count)
        for number, place in enumerate(places):
            use = rows[self._flags() | (number == 0)]
            for name, fmt in (("a", self.a), ("b", self.b)):
                mine = use[(place[use] < self.instruction.k) & self._flags(use.shape)]
                operands[name][mine, place[mine]] = self._special(fmt, mine.size)
            if self.c is not None:
                mine = use[place[use] == self.instruction.k]
                operands["c"][mine] = self._special(self.c, mine.size)
        return Batch(**operands)

    def _special(self, fmt: formats.Format, count: int) -> Bits:
        """Random codes with all exponent bits set, or zeros, of both signs."""
        ones = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
        fraction = self.rng.integers(0, 1 << fmt.fraction_bits, count)
        fraction[self.rng.integers(0, 3, count) == 0] = 0
        code = np.where(self.rng.integers(0, 5, count) == 0, 0, ones | fraction) << fmt.padding
        signs = np.where(self._flags((count,)), fmt.sign_mask, 0)
        found: Bits = (code.astype(np.uint64) | signs.astype(np.uint64)).astype(fmt.dtype)
        return found
