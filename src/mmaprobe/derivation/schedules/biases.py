"""Biases of sums of integers that become D of few bits: zero point, scale and bias from all sums at which D steps up.

Where D is sum times scale, D reaches a number d at the least sum that is at least x d' - bias: x is one over the scale,
d' is d less the zero point, and less a half where it is rounded to the nearest.  So for each zero point the steps leave
an interval of biases, of whose whole numbers exact arithmetic keeps those that give every answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.schedules.rescaling import KINDS, MOST_COLUMNS, Rescaling, ScaleSearch, given, plainest, spelt
from mmaprobe.parameters.integer_sums import Rescale, ends, scale_word
from mmaprobe.probing.gemm.integer_values import Whole

ROUNDS = 40
"""Calls by which the sums are found at which D steps up, at most."""
ROWS = 1024
"""Sums that are dialled in such a call, at most."""
FEWEST = 3
"""Steps by which scale and bias are told at least."""
HALVINGS = 48
"""Times that an interval of scales is cut when its ends are looked for."""
PARTS = 8
"""Parts of an interval of scales at whose ends biases are looked at."""
SLACK = 2.0**-15
"""How far a product of f32 and its sum may be from the exact ones, in numbers of D."""
TRIED = 12
"""Zero points that are tried for one kind of arithmetic at most."""
BETWEEN = 33
"""Numbers of f32 that are tried between the ends of a bias: what f32 rounds of sum and bias is seen."""
PLAIN_BITS = 12
"""Bits of a bias of f32 that are written, where so many are enough."""

Floats = NDArray[np.float64]


class Steps(NamedTuple):
    """Of one column numbers of D, the least sum that gives each of them, or more, and where the answers are that say
    so."""

    numbers: Whole
    sums: Whole
    at: Whole


class Windows(NamedTuple):
    """For every zero point whether all columns leave a scale; the ends of biases, by column, scale and zero point."""

    good: NDArray[np.bool_]
    lows: Floats
    highs: Floats

    @property
    def low(self) -> Floats:
        """The smallest biases at any scale, by column and zero point."""
        found: Floats = self.lows.min(1)
        return found

    @property
    def high(self) -> Floats:
        """The largest ones."""
        found: Floats = self.highs.max(1)
        return found

    def at_middle(self, place: int) -> list[tuple[float, float]]:
        """The ends of every column at the middle scale, of one zero point."""
        return [*zip(self.lows[:, PARTS // 2, place].tolist(), self.highs[:, PARTS // 2, place].tolist(), strict=True)]


class Found(NamedTuple):
    """Of a kind of arithmetic the zero point, and of each column its bias and its interval of scales."""

    kind: Rescaling
    like: Rescale
    biases: list[int]
    intervals: list[tuple[int, int]]


def with_biases(asked: ScaleSearch, rule: Rescale | None, d: str) -> tuple[Rescale, tuple[str, ...]] | None:
    """A rule that was found without biases, if it gives every step of D, with none; else one with biases, or None."""
    if not len(asked.sums) or len(asked.columns()) > MOST_COLUMNS:
        return None
    search = BiasSearch(asked, d)
    steps = search.steps(asked.columns())
    if rule is not None and all(
        (given(each, asked.sums, d) == asked.told[:, column]).all()
        for column, each in zip(asked.columns(), _alone(rule), strict=True)
    ):
        return rule, ("0",)
    return None if steps is None else search.find()


def _alone(rule: Rescale) -> list[Rescale]:
    """The rule of each column."""
    return [replace(rule, scale=(word,)) for word in rule.scale]


class BiasSearch:
    """Zero point, scales and biases, of a search for scales that found no rule without biases."""

    def __init__(self, asked: ScaleSearch, d: str) -> None:
        self._asked, self._ends = asked, ends(d)
        self._zeros = np.arange(self._ends[0], self._ends[1] + 1)
        self._spans = dict[str, list[tuple[int, list[tuple[int, int]]]]]()

    def find(self) -> tuple[Rescale, tuple[str, ...]] | None:
        """The rule, and the biases of integers, one or one for each column; None where none gives every answer."""
        columns = self._asked.columns()
        steps = self.steps(columns)
        if steps is None or min(len(each.numbers) for each in steps) < FEWEST:
            return None
        bounds = self._bounds(steps)
        if bounds is None:
            return None
        tries = [self._of_integers(kind, steps, columns, bounds) for kind in KINDS]
        found = min(filter(None, tries), key=lambda each: spelt(each.kind, each.intervals), default=None)
        if found is not None:
            return _rule(found), tuple(str(each) for each in _short(found.biases))
        made = self._of_f32(steps, columns, bounds)
        return None if made is None else (made, ("0",))

    def steps(self, columns: Sequence[int]) -> list[Steps] | None:
        """The steps of every column; None where D falls, or they are not found."""
        asked = self._asked
        for _ in range(ROUNDS):
            order = np.argsort(asked.sums)
            found, wanted = list[Steps](), list[Whole]()
            for column in columns:
                sums, told = asked.sums[order], asked.told[order, column]
                if (np.diff(told) < 0).any():
                    return None
                numbers = np.arange(told[0] + 1, told[-1] + 1)
                at = np.searchsorted(told, numbers)
                found.append(Steps(numbers, sums[at], order[np.unique([0, *at - 1, *at, len(order) - 1])]))
                if len(numbers):
                    wanted.append(_between(numbers, sums[at - 1], sums[at]))
            new = np.unique(np.concatenate(wanted)) if wanted else np.zeros(0, np.int64)
            if not len(new):
                return found
            before = len(asked.sums)
            asked.ask(new[np.linspace(0, len(new) - 1, min(len(new), ROWS)).astype(int)].tolist())
            if len(asked.sums) == before:
                return None
        return None

    def _bounds(self, steps: Sequence[Steps]) -> tuple[int | None, int | None] | None:
        """Where D is clamped: numbers beside which more steps would have come; None where columns differ."""
        said = set[tuple[int | None, int | None]]()
        for numbers, sums, _ in steps:
            wide = 3 * (int(sums[-1] - sums[0]) // (len(sums) - 1) + 1)
            low = int(numbers[0]) - 1 if sums[0] - self._asked.sums.min() > wide else self._ends[0]
            high = int(numbers[-1]) if self._asked.sums.max() - sums[-1] > wide else self._ends[1]
            said.add((None if low == self._ends[0] else low, None if high == self._ends[1] else high))
        return said.pop() if len(said) == 1 else None

    def _of_integers(
        self, kind: Rescaling, steps: Sequence[Steps], columns: Sequence[int], bounds: tuple[int | None, int | None]
    ) -> Found | None:
        """The zero point with the smallest biases that gives every answer by one kind of arithmetic."""
        rounding = kind.rounding if kind.rounding in ("down", "zero") else "even"
        if rounding not in self._spans:
            self._spans[rounding] = _spans(rounding, steps, self._zeros)
        for zero, spans in self._spans[rounding][:TRIED]:
            like = Rescale(("0x1p+0",), zero=str(zero), lowest=bounds[0], highest=bounds[1])
            found = self._exact(kind, like, [*zip(columns, steps, spans, strict=True)])
            if found is not None:
                return found
        return None

    def _exact(
        self, kind: Rescaling, like: Rescale, columns: Sequence[tuple[int, Steps, tuple[int, int]]]
    ) -> Found | None:
        """Of each column a bias, with scales that give every answer, and the same as other columns where it can be."""
        biases, intervals, common = list[int](), list[tuple[int, int]](), (0, 1 << 62)
        for column, steps, (low, high) in columns:
            options = [
                (bias, self._asked.interval(kind, column, like, bias, steps.at)) for bias in range(low, high + 1)
            ]
            living = [(bias, span) for bias, span in options if span is not None]
            if not living:
                return None
            bias, span = max(living, key=lambda each: (_overlap(each[1], common) > 0, -abs(each[0])))
            biases.append(bias)
            intervals.append(span)
            common = max(common[0], span[0]), min(common[1], span[1])
        return Found(kind, like, biases, [common] if common[0] <= common[1] else intervals)

    def _of_f32(
        self, steps: Sequence[Steps], columns: Sequence[int], bounds: tuple[int | None, int | None]
    ) -> Rescale | None:
        """The same with biases that are added in f32 before the product, of the zero point that makes them small."""
        zero = int(np.clip(np.median(self._asked.told[self._asked.sums == 0][0]), *self._ends))
        for kind in (each for each in KINDS if each.by == "f32"):
            windows = _windows(kind.rounding, steps, np.array([zero]))
            if not windows.good[0]:
                continue
            like = Rescale(
                ("0x1p+0",), zero=str(zero), lowest=bounds[0], highest=bounds[1], bias=("0x1p+0",), bias_added="before"
            )
            words, intervals = list[str](), list[tuple[int, int]]()
            for column, each, window in zip(columns, steps, windows.at_middle(0), strict=True):
                for word in _words_between(*window):
                    span = self._asked.interval(kind, column, replace(like, bias=(word,)), 0, each.at)
                    if span is not None:
                        words.append(word)
                        intervals.append(span)
                        break
                else:
                    break
            if len(intervals) == len(columns):
                common = max(low for low, _ in intervals), min(high for _, high in intervals)
                made = _rule(Found(kind, like, [0], [common] if common[0] <= common[1] else intervals))
                return replace(made, bias=tuple(_short(words)))
        return None


def _between(numbers: Whole, low: Whole, high: Whole) -> Whole:
    """Sums between those that are known to be below and above steps: where a line through all leads to, and halfway."""
    wide = np.flatnonzero(high - low > 1)
    if len(numbers) < FEWEST:
        return (low + high >> 1)[wide]
    slope, start = np.polyfit(numbers, (low + high) / 2, 1, w=1 / (high - low))
    guess = np.ceil(slope * numbers + start).astype(np.int64)[wide]
    near = [np.clip(guess + step, low[wide] + 1, high[wide] - 1) for step in (-2, -1, 0, 1)]
    return np.concatenate([*near, (low + high >> 1)[wide]])


def _shifted_numbers(rounding: str, numbers: Whole, zeros: Whole) -> Floats:
    """For every zero point and number the exact product from which on D is that number."""
    own: Floats = numbers[None].astype(np.float64) - zeros[:, None]
    if rounding == "zero":
        return own - (own <= 0)
    return own if rounding == "down" else own - 0.5


def _spans(rounding: str, steps: Sequence[Steps], zeros: Whole) -> list[tuple[int, list[tuple[int, int]]]]:
    """Zero points, those with the smallest biases first, and of each column the whole biases that its steps leave."""
    found = _windows(rounding, steps, zeros)
    low, high = np.ceil(found.low).astype(np.int64), np.floor(found.high).astype(np.int64)
    size = np.maximum(low, -high).max(0)
    places = np.flatnonzero(found.good & (low <= high).all(0))
    return [
        (int(zeros[i]), list(zip(low[:, i].tolist(), high[:, i].tolist(), strict=True)))
        for i in places[np.argsort(size[places], kind="stable")]
    ]


def _windows(rounding: str, steps: Sequence[Steps], zeros: Whole) -> Windows:
    """The biases that the steps of all columns leave for every zero point: at the scales that all of them leave, or,
    where these have none in common, at each one's own."""
    plain = rounding != "zero"  # then another zero point moves all numbers alike, and leaves the same scales
    own = [_shifted_numbers(rounding, each.numbers, zeros[:1] if plain else zeros) for each in steps]
    ranges = [_scales(x, each.sums) for x, each in zip(own, steps, strict=True)]
    least = np.max([low for low, _ in ranges], axis=0)
    most = np.min([high for _, high in ranges], axis=0)
    away = zeros - zeros[0] if plain else np.zeros(1, np.int64)
    lows, highs = list[list[Floats]](), list[list[Floats]]()
    for x, each, (first, last) in zip(own, steps, ranges, strict=True):
        low, high = np.where(least <= most, least, first), np.where(least <= most, most, last)
        scales = [low + (high - low) * part / PARTS for part in range(PARTS + 1)]
        sides = [(scale, *_left(scale, x, each.sums)) for scale in scales]
        lows.append([below - scale * away for scale, below, _ in sides])
        highs.append([above - scale * away for scale, _, above in sides])
    good = np.logical_and.reduce([first <= last for first, last in ranges])
    return Windows(np.broadcast_to(good, zeros.shape), np.array(lows), np.array(highs))


def _left(x: Floats, own: Floats, sums: Whole) -> tuple[Floats, Floats]:
    """The biases that steps leave at scales of one over x, with what f32 may round."""
    at, slack = x[:, None] * own - sums, x * SLACK
    return at.max(1) - slack, at.min(1) + 1 + slack


def _scales(own: Floats, sums: Whole) -> tuple[Floats, Floats]:
    """The smallest and the largest of what is one over a scale that the steps leave, by halving: what is left of biases
    at a scale is a concave function of it.  The first above the second: there is none."""
    along, rise = np.maximum(own[:, -1] - own[:, 0], 1.0), float(sums[-1] - sums[0])
    first, last = np.maximum((rise - 2) / along, 1e-9), (rise + 2) / along

    def room(x: Floats) -> Floats:
        low, high = _left(x, own, sums)
        return high - low

    low, high = first, last
    for _ in range(HALVINGS):
        third = (high - low) / 3
        rising = room(low + third) < room(high - third)
        low, high = np.where(rising, low + third, low), np.where(rising, high, high - third)
    best, sides = (low + high) / 2, list[Floats]()
    for end in (first, last):
        inside, outside = best, end
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            fits = room(middle) >= 0
            inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
        sides.append(inside)
    none = room(best) < 0
    return np.where(none, 1.0, sides[0]), np.where(none, 0.0, sides[1])


def _words_between(low: float, high: float) -> list[str]:
    """Numbers of f32 from the middle of an interval outwards: one of few bits, where it has one, first."""
    middle = (low + high) / 2
    fraction, exponent = np.frexp(middle)
    few = float(np.ldexp(np.rint(np.ldexp(fraction, PLAIN_BITS)), exponent - PLAIN_BITS))
    spread = np.linspace(low, high, BETWEEN)
    found = [few] * (low < few < high) + sorted(spread.tolist(), key=lambda each: abs(each - middle))
    return [scale_word(each) for each in found]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> int:
    return min(one[1], other[1]) - max(one[0], other[0]) + 1


def _short(values: list[Any]) -> list[Any]:
    """One where all are the same."""
    return values[:1] if len(set(values)) == 1 else values


def _rule(found: Found) -> Rescale:
    """The rule with the plainest scales."""
    rules = [found.kind.at(plainest(*each), found.like) for each in found.intervals]
    return replace(rules[0], scale=tuple(word for rule in rules for word in rule.scale))
