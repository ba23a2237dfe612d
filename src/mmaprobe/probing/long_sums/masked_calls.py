"""Calls of a dot product of many lanes: +M on one leaf, -M on another, units on some, zero on the rest.

Every call is one vector, and is counted.  M = 2**high and the unit 2**low lie as
far apart as the formats, and what the device lets through, allow.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_tiles
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.experiments.window import ENOUGH
from mmaprobe.probing.session.exact_values import UnrepresentableError, code_of, power, split

Terms = Mapping[int, Fraction]

TRIES = 3
"""Random choices of leaves on which something is tried that must hold of all."""
ITEMS = 1 << 20
"""Elements of a and of b that one batch of calls holds."""


class OverBudgetError(Exception):
    """The next calls would go over the budget."""


class NoTreeError(Exception):
    """An answer that no tree of rounded additions gives; the text says which."""


@dataclass(frozen=True)
class Ask:
    """The mask experiment: +M on ``pivot``, -M on each of ``others`` in turn, a unit on every leaf of ``units``."""

    pivot: int
    others: Sequence[int]
    units: Sequence[int]


class MaskedCalls:
    """One dot product of a device, asked vector by vector at row and column ``at`` of its tile.

    ``count`` says how many units one call can count; ``window`` = high - low.
    UsageError for integer results (their sums are exact, no order shows).
    """

    def __init__(
        self, device: Device, instruction: Instruction, budget: int, seed: int, at: tuple[int, int] = (0, 0)
    ) -> None:
        if not instruction.formats()["d"].is_float:
            raise UsageError(
                f"{instruction.id}: integers are added exactly, and no order shows; where sums saturate is found "
                "with: mmaprobe derive DEVICE, of whole matrix products mmaprobe gemm identify DEVICE"
            )
        if instruction.chunk or instruction.scale:
            raise UsageError(f"{instruction.id}: a tree is read from dense floating-point sums without block scales")
        if not (0 <= at[0] < instruction.m and 0 <= at[1] < instruction.n) or instruction.blocks > 1:
            raise UsageError(
                f"{instruction.id}: no element {at[0]}, {at[1]} in {instruction.m} x {instruction.n} results"
            )
        self.device, self.instruction, self.budget, self.at = device, instruction, budget, at
        self.formats = instruction.formats()
        self.plain = instruction.modifier.get("operands") == "1"
        self.leaves = instruction.k + (instruction.c is not None)
        self.random = random.Random(seed)
        self.calls = self.low = self.high = self.count = 0
        self._counts: dict[int, int] = {}

    def prepare(self) -> None:
        """Find the unit, M and how many units can be counted; NoTreeError where plain sums come out wrong."""
        self.low = self._lowest_unit()
        self.high = self._highest_anchor()
        self.count = self._countable()
        self._counts = {self.code(Fraction(n) * power(self.low)): n for n in range(self.count + 1)}
        self._counts[self.code(Fraction(0)) | self.formats["d"].sign_mask] = 0

    @property
    def window(self) -> int:
        return self.high - self.low

    def code(self, value: Fraction) -> int:
        """The code of a result."""
        found = code_of(self.formats["d"], value)
        if found is None:
            raise UnrepresentableError(f"{self.instruction.d} cannot hold {value}")
        return found

    def survivors(self, asks: Sequence[Ask]) -> list[list[int]]:
        """For each ask and each of its ``others``: how many of its units come through; M replaces a unit."""
        top, unit = power(self.high), power(self.low)
        cases = [(dict.fromkeys(ask.units, unit) | {ask.pivot: top}, [{j: -top} for j in ask.others]) for ask in asks]
        answers = iter(self.answers(cases))
        return [[self._count(ask, j, next(answers)) for j in ask.others] for ask in asks]

    def _count(self, ask: Ask, j: int, answer: int) -> int:
        count = self._counts.get(answer)
        if count is None or count > len(ask.units):
            masks = f"+2^{self.high} on leaf {ask.pivot}, -2^{self.high} on leaf {j}"
            units = f"2^{self.low} on {len(ask.units)} leaves"
            raise NoTreeError(f"{masks}, {units}: the answer {answer:#x} is no count of them")
        return count

    def answers(self, cases: Sequence[tuple[Terms, Sequence[Terms]]]) -> list[int]:
        """Result codes of vectors: the first of a case (leaf to value, zero elsewhere) with each of its changes."""
        vectors = [(base, change) for base, changes in cases for change in changes]
        if self.calls + len(vectors) > self.budget:
            raise OverBudgetError
        per = max(1, ITEMS // (self.instruction.k * max(self.instruction.m, self.instruction.n)))
        return [d for start in range(0, len(vectors), per) for d in self._answers(vectors[start : start + per])]

    def _answers(self, vectors: Sequence[tuple[Terms, Terms]]) -> list[int]:
        lanes = self.instruction.k
        a, b, c = self._blank(len(vectors))
        last: Terms | None = None
        for index, (base, change) in enumerate(vectors):
            if base is last:
                a[index], b[index], c[index] = a[index - 1], b[index - 1], c[index - 1]
                for leaf in vectors[index - 1][1]:
                    self._set(a, b, c, index, [leaf], base.get(leaf, Fraction(0)))
            else:
                by_value: dict[Fraction, list[int]] = {}
                for leaf, value in base.items():
                    by_value.setdefault(value, []).append(leaf)
                for value, leaves in by_value.items():
                    self._set(a, b, c, index, leaves, value)
            last = base
            for leaf, value in change.items():
                self._set(a, b, c, index, [leaf], value)
        return [int(code) for code in self.run(a, b, c if lanes < self.leaves else None)]

    def _set(self, a: Bits, b: Bits, c: Bits, index: int, leaves: list[int], value: Fraction) -> None:
        if self.instruction.k in leaves:
            c[index] = self._c_code(value)
            leaves = [leaf for leaf in leaves if leaf != self.instruction.k]
        if leaves:
            a[index, leaves], b[index, leaves] = self.pair(value)

    def _blank(self, count: int) -> tuple[Bits, Bits, Bits]:
        zero_a, zero_b = self.pair(Fraction(0))
        shape = (count, self.instruction.k)
        a, b = np.full(shape, zero_a, self.formats["a"].dtype), np.full(shape, zero_b, self.formats["b"].dtype)
        return a, b, np.zeros(count, self.formats["c" if self.instruction.c else "d"].dtype)

    def run(self, a: Bits, b: Bits, c: Bits | None) -> Bits:
        """d of vectors given as codes; OverBudgetError, and no call, where they are too many."""
        if self.calls + len(a) > self.budget:
            raise OverBudgetError
        self.calls += len(a)
        (row, column), shapes = self.at, self.instruction.shapes(len(a))
        tiles = {name: np.zeros(shape, self.formats[name].dtype) for name, shape in shapes.items()}
        if self.plain:
            tiles["b"][:] = self.pair(Fraction(1))[1]
        tiles["a"][:, row, :], tiles["b"][:, :, column] = a, b
        if c is not None:
            tiles["c"][:, row, column] = c
        return run_tiles(self.device, self.instruction, Batch(**tiles))[:, row, column]

    def pair(self, value: Fraction) -> tuple[int, int]:
        """Operands whose product is ``value``; b is 1 where the function takes one array."""
        if self.plain:
            codes = code_of(self.formats["a"], value), code_of(self.formats["b"], Fraction(1))
            found = None if codes[0] is None or codes[1] is None else (codes[0], codes[1])
        else:
            found = split(self.formats["a"], self.formats["b"], value) or self._square(value)
        if found is None:
            raise UnrepresentableError(f"no {self.instruction.a} x {self.instruction.b} product is {value}")
        return found

    def _square(self, value: Fraction) -> tuple[int, int] | None:
        root = Fraction(isqrt(max(value.numerator, 0)), isqrt(value.denominator))
        a, b = (code_of(self.formats[name], root) for name in ("a", "b"))
        return (a, b) if root * root == value and a is not None and b is not None else None

    def _c_code(self, value: Fraction) -> int:
        found = code_of(self.formats["c"], value)
        if found is None:
            raise UnrepresentableError(f"{self.instruction.c} cannot hold {value}")
        return found

    def _range(self) -> tuple[int, int, int]:
        """Largest exponent, smallest normal one, smallest one, of what every leaf and D can hold."""
        a, b, d = self.formats["a"], self.formats["b"], self.formats["d"]
        held = [f for f in (d, self.formats.get("c")) if f is not None]
        products = (0, 0, 0) if self.plain else (b.max_exponent, b.min_exponent, b.min_exponent - b.fraction_bits)
        high = min([a.max_exponent + products[0], d.max_exponent - 1, *(f.max_exponent - 1 for f in held)])
        normal = max([a.min_exponent + products[1], *(f.min_exponent for f in held)])
        low = max([a.min_exponent - a.fraction_bits + products[2], *(f.min_exponent - f.fraction_bits for f in held)])
        return high, normal, low

    def _lowest_unit(self) -> int:
        """The smallest power of two worth using that comes through alone: normal where that is far enough below M."""
        high, normal, low = self._range()
        far = high - normal >= ENOUGH + self.leaves.bit_length()
        leaves = self._some()
        for exponent in (normal,) if far else (low, normal):
            answers = self.answers([({}, [{leaf: power(exponent)} for leaf in leaves])])
            if set(answers) == {self.code(power(exponent))}:
                return exponent
        raise NoTreeError(f"2^{normal} on one leaf and zero on the others does not come out as itself")

    def _highest_anchor(self) -> int:
        """The largest M = 2**m, in steps of 8, of which M - M is zero everywhere it was tried."""
        high, _, _ = self._range()
        zeros = {self.code(Fraction(0)), self.code(Fraction(0)) | self.formats["d"].sign_mask}
        leaves = self._some()
        pairs = [(i, j) for i in leaves for j in leaves if i != j]
        for exponent in range(high, self.low + 8, -8):
            changes = [{i: power(exponent), j: -power(exponent)} for i, j in pairs]
            if set(self.answers([({}, changes)])) <= zeros:
                return exponent
        raise NoTreeError("a value and its negative, zero on the other leaves, do not cancel")

    def _countable(self) -> int:
        """The most units, 2**n - 1, that come out exactly wherever they lie (all leaves where they can be counted)."""
        bits = min(self.leaves.bit_length(), self.formats["d"].fraction_bits + 1)
        for n in range(bits, 0, -1):
            count = min((1 << n) - 1, self.leaves)
            terms = [
                dict.fromkeys(self.random.sample(range(self.leaves), count), power(self.low)) for _ in range(TRIES)
            ]
            if set(self.answers([({}, terms)])) == {self.code(Fraction(count) * power(self.low))}:
                return count
        raise NoTreeError(f"2^{self.low} on one leaf does not come out as itself")

    def _some(self) -> list[int]:
        ends = [0, self.leaves - 1]
        return sorted({*ends, *self.random.sample(range(self.leaves), min(TRIES, self.leaves))})
