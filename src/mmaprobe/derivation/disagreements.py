"""Where a datapath and a device differ, in words: the kinds of vectors that hold all of it, or most of it.

A kind is one fact about operands and answer, or up to three of them together, of those listed here; the one that says
most about which vectors are wrong (in bits, over all vectors answered) comes first, the next over what it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.records import Witness
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.showing import of_which

Mask = NDArray[np.bool_]
Reals = NDArray[np.longdouble]
Test = Callable[["AnsweredVectors"], Any]
KINDS = 4
"""Kinds of disagreement that are named."""
FACTS = 3
"""Facts that make one kind, at most."""
MORE = 1.02
"""By how much a further fact must raise what a kind says."""
TELLS = 0.05
"""Share of what there is to say about which vectors are wrong that the first fact of a kind says, at least."""
BITS = 12.0
"""Bits that it says, at least: of some hundred facts one says half of that by chance."""
SHARE = 0.05
"""Share of the wrong vectors below which no kind is named for them."""
COMMON = 0.9
"""Share of the wrong vectors in which an operand's code in a lane is a fact of its own."""
CANCELS = 16
"""How many times smaller than its largest term a sum that cancels is, at least."""


@dataclass(frozen=True)
class Disagreement:
    """Vectors of one kind: of ``vectors`` with these ``facts`` the datapath gets ``wrong`` wrong, of ``among`` that it
    gets wrong at all; ``witness`` is the smallest one found, with the device's answer."""

    facts: tuple[str, ...]
    wrong: int
    vectors: int
    among: int
    witness: Witness

    def __str__(self) -> str:
        if not self.facts:
            return f"in {self.wrong} of {self.among} wrong vectors without a word for what they have in common"
        where = f"{'only ' if self.wrong == self.among else ''}where {' and '.join(self.facts)}"
        return (
            f"{where}: {of_which(self.wrong, self.vectors, 'such vector', 'are')} wrong, of {self.among} wrong in all"
        )


@dataclass(frozen=True)
class Kind:
    """Facts that hold together; ``mask`` says of which of the vectors that it was found with."""

    facts: tuple[Fact, ...]
    mask: Mask

    def holds(self, seen: AnsweredVectors) -> Mask:
        """Which other vectors are of this kind."""
        found = np.ones(seen.vectors.size, bool)
        for fact in self.facts:
            found &= fact.holds(seen)
        return found


def kinds(instruction: Instruction, vectors: Batch, answers: Bits, wrong: Mask) -> list[Kind]:
    """The kinds of the wrong vectors; those of no kind come last."""
    seen = AnsweredVectors(instruction, vectors, answers)
    known = {fact: fact.holds(seen) for fact in _facts(instruction, vectors, wrong)}
    left, found = wrong.copy(), list[Kind]()
    while len(found) < KINDS and left.sum() > SHARE * wrong.sum():
        kind = _kind(known, left, left | ~wrong)
        if not kind.facts:
            break
        found.append(kind)
        left &= ~kind.mask
    if left.any() and (left.sum() > SHARE * wrong.sum() or not found):
        found.append(Kind((), left))
    return found


def _kind(known: dict[Fact, Mask], wrong: Mask, among: Mask) -> Kind:
    """The facts, together, that say most about which vectors are wrong."""
    kind, said = Kind((), among), max(BITS, TELLS * _entropy(wrong.sum(), among.sum()))
    while len(kind.facts) < FACTS:
        left = {fact: kind.mask & mask for fact, mask in known.items() if fact not in kind.facts}
        scores = {fact: _information(mask, wrong, among) for fact, mask in left.items()}
        best = max(scores, key=lambda fact: scores[fact])
        if scores[best] <= MORE * said:
            break
        kind, said = Kind((*kind.facts, best), left[best]), scores[best]
    return kind


def _information(mask: Mask, wrong: Mask, among: Mask) -> float:
    """Bits by which a fact that the wrong vectors have more often than others tells them apart, summed over all."""
    total, bad = among.sum(), wrong.sum()
    inside = (mask & among).sum()
    hit = (mask & wrong).sum()
    if not inside or hit * total <= bad * inside:
        return 0.0
    before = _entropy(bad, total)
    return float(before - _entropy(hit, inside) - _entropy(bad - hit, total - inside))


def _entropy(some: np.int64, total: np.int64) -> float:
    """Bits that it takes to say which of ``total`` are the ``some``."""
    shares = np.array([some, total - some], float)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares / total)).sum())


# --- facts


class AnsweredVectors:
    """Vectors and their answers as numbers."""

    def __init__(self, instruction: Instruction, vectors: Batch, answers: Bits) -> None:
        self.instruction, self.vectors, self.answers = instruction, vectors, answers

    @cached_property
    def result(self) -> formats.Decoded:
        return formats.decode(self.instruction.formats()["d"], self.answers)

    def has(self, name: str, kind: int) -> Mask:
        """Whether an operand has a code of this class."""
        return np.asarray((self._kinds[name] == kind).any(axis=1))

    def came_to(self, kind: int) -> Mask:
        """Whether the answer is of this class."""
        return np.asarray(self.result.kind == kind)

    def lives(self, lane: int) -> Mask:
        """Whether a lane's product is not zero."""
        return np.asarray(self.products[:, lane] != 0)

    def is_negative(self, lane: int) -> Mask:
        """Whether a lane's product is less than zero."""
        return np.asarray(self.products[:, lane] < 0)

    def leads(self, lane: int) -> Mask:
        """Whether a lane's product is the largest of several."""
        return np.asarray((self.live > 1) & (np.abs(self.products[:, lane]) == self.largest))

    def draws(self, bits: int) -> Mask:
        """Whether one of these random bits is set."""
        assert self.vectors.random is not None
        return np.asarray(self.vectors.random.astype(np.int64) & bits != 0)

    def is_code(self, name: str, lane: int, code: int) -> Mask:
        """Whether an operand has this code in a lane."""
        return np.asarray(getattr(self.vectors, name)[:, lane] == code)

    @cached_property
    def _kinds(self) -> dict[str, NDArray[np.uint8]]:
        made, size = self.instruction.formats(), self.vectors.size
        return {
            n: formats.decode(made[n], codes).kind.reshape(size, -1) for n, codes in self.vectors.items() if n in made
        }

    @cached_property
    def products(self) -> Reals:
        """(n, K), as exact as the widest float."""
        with np.errstate(all="ignore"):
            products = self._values("a") * self._values("b")
            for name in ("scale_a", "scale_b"):
                if getattr(self.vectors, name) is not None:
                    scale = self._values(name)
                    products = products * np.repeat(scale, products.shape[1] // scale.shape[1], axis=1)
        return products

    @cached_property
    def c(self) -> Reals:
        """(n,)."""
        return np.zeros(self.vectors.size, np.longdouble) if self.vectors.c is None else self._values("c")

    def _values(self, name: str) -> Reals:
        value = formats.decode(self.instruction.formats()[name], getattr(self.vectors, name))
        number = np.ldexp(value.significand.astype(np.longdouble), value.exponent.astype(np.int32))
        number = np.where(value.kind == formats.INFINITE, np.longdouble("inf"), number)
        number = np.where(value.kind == formats.NAN, np.longdouble("nan"), number)
        return np.asarray(np.where(value.negative, -number, number))

    @cached_property
    def cancels(self) -> Mask:
        """Whether the terms are finite and their sum is ``CANCELS`` times smaller than the largest."""
        every = np.concatenate([self.products, self.c[:, None]], axis=1)
        with np.errstate(all="ignore"):
            small = np.abs(every.sum(axis=1)) * CANCELS < np.abs(every).max(axis=1)
        return np.asarray(np.isfinite(every).all(axis=1) & small)

    @cached_property
    def live(self) -> NDArray[np.int64]:
        """How many products are not zero."""
        return np.asarray((self.products != 0).sum(axis=1), np.int64)

    @cached_property
    def largest(self) -> Reals:
        """The size of the largest product."""
        return np.asarray(np.abs(self.products).max(axis=1))


@dataclass(frozen=True, eq=False)
class Fact:
    """What may be said of a vector and its answer."""

    name: str
    test: Test

    def holds(self, seen: AnsweredVectors) -> Mask:
        """Of which vectors it is so."""
        return np.asarray(self.test(seen), bool)

    def not_so(self, name: str) -> Fact:
        """The opposite, in these words."""
        return Fact(name, lambda seen: ~self.holds(seen))


CLASSES = {
    formats.NAN: "a NaN",
    formats.INFINITE: "an infinity",
    formats.SUBNORMAL: "a subnormal",
    formats.ZERO: "a zero",
}


def _facts(made: Instruction, vectors: Batch, wrong: Mask) -> list[Fact]:
    drawn = _random_bits() if made.random else ()
    return [*_operands(made), *drawn, *_results(), *_sums(), *_lanes(made.k), *_codes(vectors, wrong)]


def _operands(made: Instruction) -> Iterator[Fact]:
    for name in ("a", "b", "c", "scale_a", "scale_b"):
        for kind, word in CLASSES.items() if name in made.formats() else ():
            if name == "c":
                yield (fact := Fact(f"c is {word}", partial(AnsweredVectors.has, name=name, kind=kind)))
                yield fact.not_so(f"c is not {word}")
            elif kind != formats.ZERO:
                yield (fact := Fact(f"{name} has {word}", partial(AnsweredVectors.has, name=name, kind=kind)))
                yield fact.not_so(f"{name} is without {word}")


def _random_bits() -> Iterator[Fact]:
    yield (some := Fact("a random bit is set", partial(AnsweredVectors.draws, bits=-1)))
    yield some.not_so("no random bit is set")
    yield (odd := Fact("the lowest random bit is set", partial(AnsweredVectors.draws, bits=1)))
    yield odd.not_so("the lowest random bit is not set")


def _results() -> Iterator[Fact]:
    for kind, word in CLASSES.items():
        yield (fact := Fact(f"the result is {word}", partial(AnsweredVectors.came_to, kind=kind)))
        yield fact.not_so(f"the result is not {word}")
    yield (fact := Fact("the result is negative", lambda seen: seen.result.negative))
    yield fact.not_so("the result is not negative")


def _sums() -> Iterator[Fact]:
    yield (fact := Fact("the terms cancel", lambda seen: seen.cancels))
    yield fact.not_so("the terms do not cancel")
    yield (negative := Fact("a product is negative", lambda seen: (seen.products < 0).any(axis=1)))
    yield (positive := Fact("a product is positive", lambda seen: (seen.products > 0).any(axis=1)))
    yield Fact("products have both signs", lambda seen: negative.holds(seen) & positive.holds(seen))
    yield negative.not_so("no product is negative")
    yield positive.not_so("no product is positive")
    yield Fact("all products are zero", lambda seen: seen.live == 0)
    yield Fact("one product is not zero", lambda seen: seen.live == 1)
    yield Fact("several products are not zero", lambda seen: seen.live > 1)
    yield Fact("c is larger than every product", lambda seen: np.abs(seen.c) > seen.largest)
    yield Fact("a product is larger than c", lambda seen: np.abs(seen.c) < seen.largest)


def _lanes(count: int) -> Iterator[Fact]:
    for lane in range(count):
        yield Fact(f"the product in lane {lane} is not zero", partial(AnsweredVectors.lives, lane=lane))
        yield Fact(f"the product in lane {lane} is negative", partial(AnsweredVectors.is_negative, lane=lane))
        yield Fact(f"lane {lane} has the largest product", partial(AnsweredVectors.leads, lane=lane))


def _codes(vectors: Batch, wrong: Mask) -> Iterator[Fact]:
    """An operand's code in a lane that nearly all wrong vectors have."""
    for name in ("a", "b"):
        codes = getattr(vectors, name)
        for lane in range(codes.shape[1]):
            values, counts = np.unique(codes[wrong, lane], return_counts=True)
            if counts.max(initial=0) >= COMMON * wrong.sum():
                code = int(values[counts.argmax()])
                yield Fact(
                    f"{name} in lane {lane} is {code:#x}",
                    partial(AnsweredVectors.is_code, name=name, lane=lane, code=code),
                )
