"""How sums of integers become a D of few bits: scale, rounding, zero point and clamp, by sums that are dialled.

A rescaling is a rising function of the sum, so that the sums at which D steps up are all of it.  Of every kind of
arithmetic an interval of scales is kept that gives what was answered; the next sums are those at which its ends, or two
kinds, give another D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from mmaprobe.formats import integer_range, whole_numbers
from mmaprobe.models.gemm_integers import rescaled
from mmaprobe.parameters.integer_sums import NO_BIAS, Rescale, ends, scale_number, scale_word
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.integer_values import GENTLE, Whole, Zeros, dialled

ROUNDS = 60
"""Calls by which scales are narrowed at most."""
ROWS = 64
"""Sums that are dialled in a call."""
PLATEAU = 4
"""A D that is the same at the smallest sum and at so much smaller a one is clamped there."""
MOST_COLUMNS = 32
"""Columns of different scales that are looked at, at most."""


@dataclass(frozen=True)
class Rescaling:
    """One way to rescale, but for its scale."""

    by: Literal["f32", "fixed"]
    rounding: Literal["even", "away", "up", "down", "zero"]
    zero_added: Literal["after", "before"]

    @property
    def ordinals(self) -> tuple[int, int]:
        """The first and the last number of a scale: codes of positive f32; or shift, most first, and multiplier."""
        return (1, 0x7F7FFFFF) if self.by == "f32" else (0, (32 << 30) - 1)

    def at(self, ordinal: int, like: Rescale) -> Rescale:
        """The rescaling with scale of this number, and the zero point and the clamp of another."""
        more: dict[str, Any] = {"by": self.by, "rounding": self.rounding, "zero_added": self.zero_added}
        if self.by == "f32":
            word, shift = scale_word(float(np.uint32(ordinal).view(np.float32))), 0
        else:
            word, shift = str((1 << 30) + ordinal % (1 << 30)), 31 - (ordinal >> 30)
        return replace(like, scale=(word,), shift=shift, **more)


KINDS = (
    *(Rescaling("f32", each, "after") for each in ("even", "away", "up", "down", "zero")),
    *(Rescaling("f32", each, "before") for each in ("even", "away", "up", "down", "zero")),
    Rescaling("fixed", "away", "after"), Rescaling("fixed", "up", "after"),
)  # fmt: skip
"""Every way to rescale, the plainest first."""


def given(rule: Rescale, sums: Whole, d: str) -> Whole:
    """D of sums by a rule of one scale."""
    word = rule.scale[0]
    scale: Any = np.int64(int(word)) if rule.by == "fixed" else np.float32(scale_number(word) or 0)
    bias: Any = None if rule.bias == NO_BIAS else np.float32(scale_number(rule.bias[0]) or 0)
    return rescaled(rule, sums, scale, bias, np.int64(int(rule.zero)), d)  # type: ignore[arg-type]


def steps_of(rule: Rescale, d: str, reach: tuple[int, int]) -> Whole:
    """For every number of D but the smallest the least sum of a range that gives it or more; one above, where none."""
    numbers = np.arange(ends(d)[0] + 1, ends(d)[1] + 1)
    low, high = np.full(numbers.shape, reach[0]), np.full(numbers.shape, reach[1] + 1)
    while (low < high).any():
        middle = (low + high) >> 1
        enough = given(rule, middle, d) >= numbers
        low, high = np.where(enough | (low == high), low, middle + 1), np.where(enough, middle, high)
    return low


def reached(calls: ProductCalls, k: int, zeros: Zeros) -> tuple[int, int]:
    """The smallest and the largest sum that K products reach."""
    of_b = int(zeros[1].min()), int(zeros[1].max())
    sides = [
        [each - zero for each in integer_range(fmt) for zero in own]
        for fmt, own in ((calls.a, (zeros[0],)), (calls.b, of_b))
    ]
    every = [x * y for x in sides[0] for y in sides[1]]
    return min(0, *every) * k, max(0, *every) * k


def dialled_reach(calls: ProductCalls, k: int, zeros: Zeros) -> tuple[int, int]:
    """The smallest and the largest sum that is dialled of K products."""
    largest = max(abs(each - zero) for each in integer_range(calls.b) for zero in zeros[1].tolist())
    low, high = (side * min(GENTLE, largest) // largest // 2 for side in reached(calls, k, zeros))
    return low, high


class ScaleSearch:
    """The rescaling of each column of one product."""

    def __init__(self, calls: ProductCalls, n: int, k: int, zeros: Zeros) -> None:
        self._calls, self._shape, self._zeros, self._d = calls, (n, k), zeros, calls.d.name
        self.reach = dialled_reach(calls, k, zeros)
        self.asked = list[tuple[Any, Any, Any]]()
        self.sums, self.told = np.zeros(0, np.int64), np.zeros((0, n), np.int64)
        self._kinds = list(KINDS)
        self._like = Rescale(("0x1p+0",))

    def ask(self, sums: Sequence[int]) -> None:
        """D of these sums, those of them that are reached and new."""
        new = np.setdiff1d(np.array(sums, np.int64), self.sums)
        if not len(new):
            return
        a, b, good = dialled(self._calls, new, self._shape, self._zeros)
        d = self._calls.ask(a, b)
        self.asked.append((a, b, d))
        self.sums = np.r_[self.sums, new[good]]
        self.told = np.vstack([self.told, whole_numbers(self._calls.d, d)[good]])

    def find(self) -> tuple[Rescale | None, str]:
        """The rule, with a scale for each column where they differ; or none, and why."""
        self.ask(self._first())
        if 0 not in self.sums or len(self.sums) < 3:
            return None, "no sums could be dialled"
        why = self._anchor()
        if why:
            return None, why
        columns = self.columns()
        if len(columns) > MOST_COLUMNS:
            return None, f"more than {MOST_COLUMNS} columns have scales of their own"
        for _ in range(ROUNDS):
            found = {kind: self._intervals(kind, columns) for kind in self._kinds}
            living = {kind: each for kind, each in found.items() if each is not None}
            self._kinds = list(living)
            if not living:
                return None, "no arithmetic that was tried rescales the sums as D is"
            wanted = list(self._telling(living, columns))
            before = len(self.sums)
            if wanted:
                self.ask([wanted[i] for i in np.linspace(0, len(wanted) - 1, min(ROWS, len(wanted))).astype(int)])
            if not wanted or len(self.sums) == before:
                return self._made(living, columns)
        return None, f"scales were not told apart by {ROUNDS} calls"

    def _first(self) -> list[int]:
        """0, and sums of all sizes."""
        low, high = self.reach
        found = {0, *(side // 2**i for side in (low // 8, high // 8) for i in range(24)), -1 if low else 0, 1}
        return sorted(each for each in found if low <= each <= high)

    def _anchor(self) -> str:
        """Zero point and clamp; the reason, where D does not rise with the sum."""
        order = np.argsort(self.sums)
        sums, told = self.sums[order], self.told[order]
        if (np.diff(told, axis=0) < 0).any():
            return "D does not rise with the sum"
        if (told == told[0]).all():
            return f"D is the same for sums from {sums[0]:,} to {sums[-1]:,}"
        zero = int(told[sums == 0][0, 0])
        low, high = ends(self._d)
        bounds: dict[str, int | None] = {"lowest": None, "highest": None}
        for name, first, end in (("lowest", 0, low), ("highest", -1, high)):
            inner = np.flatnonzero(abs(sums) * PLATEAU <= abs(sums[first]))
            inner = inner[np.sign(sums[inner]) == np.sign(sums[first])]
            edge = told[first]
            flat = len(inner) and (told[inner[0 if first == 0 else -1]] == edge).all() and (edge == edge[0]).all()
            other = told[-1 if first == 0 else 0]
            if flat and edge[0] != end and (abs(other - zero) > 1).all():
                bounds[name] = int(edge[0])
        self._like = replace(self._like, zero=str(zero), **bounds)  # type: ignore[arg-type]
        return ""

    def columns(self) -> list[int]:
        """One column of all, where they answer alike, else every one."""
        same = (self.told == self.told[:, :1]).all()
        return [0] if same else list(range(self.told.shape[1]))

    def _intervals(self, kind: Rescaling, columns: Sequence[int]) -> list[tuple[int, int]] | None:
        """Of each column the numbers of the smallest and the largest scale that give what was told; None: a kind fails
        one."""
        found = []
        for column in columns:
            each = self.interval(kind, column, self._like, 0)
            if each is None:
                return None
            found.append(each)
        return found

    def interval(
        self, kind: Rescaling, column: int, like: Rescale, bias: int, at: Whole | slice = slice(None)
    ) -> tuple[int, int] | None:
        """The same of one column, of the answers at these places, whose sums have a bias beside the one of another
        rule, which may be in f32."""
        sums, told = self.sums[at] + bias, self.told[at, column]
        side = np.sign(sums.astype(np.float32) + np.float32(scale_number(like.bias[0]) or 0))

        def above(rule: Rescale, enough: bool) -> bool:
            over = side * (given(rule, sums, self._d) - told)
            return bool((over >= 0).all() if enough else (over > 0).any())

        low, high = (
            least_of(kind, lambda rule: above(rule, True), like),
            least_of(kind, lambda rule: above(rule, False), like),
        )
        return (low, high - 1) if low < high else None

    def _telling(self, living: dict[Rescaling, list[tuple[int, int]]], columns: Sequence[int]) -> Iterator[int]:
        """Sums at which the ends of an interval differ; where none do, at which two kinds do."""
        any_wide = False
        for kind, intervals in living.items():
            for low, high in intervals:
                first, last = (steps_of(kind.at(each, self._like), self._d, self.reach) for each in (low, high))
                differ = np.flatnonzero(first != last)
                for i in differ[:: max(1, len(differ) // 8)]:
                    any_wide = True
                    yield int(first[i] + last[i]) // 2
        if any_wide:
            return
        for one, two in combinations(living, 2):
            for place in range(len(columns)):
                steps = [
                    steps_of(kind.at(living[kind][place][0], self._like), self._d, self.reach) for kind in (one, two)
                ]
                differ = np.flatnonzero(steps[0] != steps[1])
                yield from (int(min(steps[0][i], steps[1][i])) for i in differ[:: max(1, len(differ) // 4)])

    def _made(
        self, living: dict[Rescaling, list[tuple[int, int]]], columns: Sequence[int]
    ) -> tuple[Rescale | None, str]:
        kind, intervals = min(living.items(), key=lambda each: spelt(*each))
        rules = [kind.at(plainest(low, high), self._like) for low, high in intervals]
        if len({rule.shift for rule in rules}) > 1:
            return None, "columns have shifts of their own"
        made = replace(rules[0], scale=tuple(word for rule in rules for word in rule.scale))
        return made, ""


def spelt(kind: Rescaling, intervals: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """How much it takes to write the scales of a kind: of kinds that are alike the plainest number is meant."""
    if kind.by == "fixed":
        return 32 * len(intervals), 0
    numbers = [plainest(low, high) for low, high in intervals]
    return sum(24 - min((each & -each).bit_length() - 1, 23) for each in numbers), KINDS.index(kind)


def least_of(kind: Rescaling, holds: Any, like: Rescale) -> int:
    """The number of the first scale of which something holds that holds of all larger ones; one above, where none."""
    low, high = kind.ordinals
    high += 1
    while low < high:
        middle = (low + high) // 2
        if holds(kind.at(middle, like)):
            high = middle
        else:
            low = middle + 1
    return low


def plainest(low: int, high: int) -> int:
    """Of the whole numbers from low to high the one that the highest power of two divides."""
    unit = 1 << max(high, 1).bit_length()
    while True:
        found = -(-low // unit) * unit
        if found <= high:
            return found
        unit >>= 1
