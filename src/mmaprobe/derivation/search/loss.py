"""How far a hypothesis is from the answers: graded, so that a search downhill sees when it comes nearer.

The loss of one answer is log2(1 + distance in places of the answers seen), and 1/2 more where it is wrong: a wrong
rounding costs little, a wrong precision more, a wrong structure most.  Of integers every wrong answer costs the same,
and of recorded sums in sums: these cancel, and a wrong rounding inside one costs as much as a wrong structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import LOOK, RECORD, Allowance
from mmaprobe.derivation.survivors import Indices, Living, Losses
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.models.combinations import Axis, Combinations, NumberAxis, Programs
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath

Found = tuple[Datapath, float]
Reach = tuple[int, ...] | None
"""How far about the best of the level before each axis is looked at."""
FIRST = 16
"""Vectors that meet all hypotheses before the first are dropped, a multiple of what the engine takes at a time; tuned
by ``tests/recovery``."""
KEPT = 6
"""One in so many of the hypotheses stays each time, and all that have no loss; tuned by ``tests/recovery``."""
FEWEST = 4
"""Hypotheses that stay each time, at least; tuned by ``tests/recovery``."""
LEAST = 0.5
"""Loss of a wrong answer, beside what its distance adds; tuned by ``tests/recovery``."""
MOST = 14.0
"""Loss that the distance of one answer adds, at most: a few far answers do not outweigh all others; tuned by
``tests/recovery``."""


@dataclass(frozen=True)
class Graded:
    """Answers, and what counts as one place of them (a power of two of the last); ``shown``: how answers are looked
    at before they are compared; ``counted``: every wrong answer costs the same."""

    vectors: Batch
    answers: Bits
    fmt: Format
    unit: int
    allowance: Allowance
    shown: Callable[[Bits], Bits] | None = None
    counted: bool = False

    @classmethod
    def of(
        cls,
        instruction: Instruction,
        seen: Sequence[tuple[Batch, Bits]],
        allowance: Allowance,
        every: bool = False,
        shown: Callable[[Bits], Bits] | None = None,
    ) -> Graded:
        """Of everything seen what is normal, or ``every`` answer, in an order in which every part shows the same
        mixture."""
        fmt = formats.get(instruction.d)
        answers = np.concatenate([each for _, each in seen])
        normal = formats.decode(fmt, answers).kind == formats.NORMAL
        chosen = np.random.default_rng(len(answers)).permutation(np.flatnonzero(normal | every))
        vectors = take(join([each for each, _ in seen]), chosen)
        return cls(vectors, answers[chosen], fmt, unused(fmt, answers[normal]), allowance, shown)

    def loss(self, table: Bits, part: Indices) -> Losses:
        """The losses of rows of answers to the vectors ``part``."""
        true, table = self.answers[part], table if self.shown is None else self.shown(table)
        if self.counted or not self.fmt.is_float:
            return np.asarray(LEAST * (table != true).sum(axis=1))
        apart = np.abs(_ordinals(self.fmt, table) - self._places[part]) / 2.0**self.unit
        found: Losses = np.where(table != true, np.minimum(np.log2(1 + apart), MOST) + LEAST, 0.0).sum(axis=1)
        return found

    @cached_property
    def _places(self) -> Losses:
        """The answers as numbers in the order of their values."""
        return _ordinals(self.fmt, self.answers)

    def first(self, count: int) -> Graded:
        """The first of these answers."""
        return replace(self, vectors=self.vectors.slice(0, min(count, len(self.answers))), answers=self.answers[:count])

    def wrong_first(self, datapath: Datapath) -> Graded:
        """The same answers, in turn one that the datapath gets wrong and one that it gets right."""
        try:
            table = self.allowance.evaluate([datapath], self.vectors)[0]
        except UsageError:
            return self
        wrong = (table if self.shown is None else self.shown(table)) != self.answers
        rank = np.empty(len(wrong))
        rank[wrong], rank[~wrong] = np.arange(wrong.sum()), np.arange((~wrong).sum()) + 0.5
        order = np.argsort(rank, kind="stable")
        return replace(self, vectors=take(self.vectors, order), answers=self.answers[order])

    def total(self, datapath: Datapath) -> float:
        """The loss of one datapath; infinite where the engine cannot hold it."""
        if not len(self.answers):
            return 0.0
        try:
            table = self.allowance.evaluate([datapath], self.vectors)
        except UsageError:
            return float("inf")
        return float(self.loss(table, np.arange(len(self.answers)))[0])

    def nearest(
        self, base: Datapath, axes: Sequence[Axis], known: Programs | None = None, bound: float = inf
    ) -> Found | None:
        """The combination with the least loss, below ``bound``; None where there is none.

        Numbers are looked at from coarse to fine.  ``known`` remembers the programs of edits of this base.
        """
        known = {} if known is None else known
        before = len(known)
        every = combined(base, axes, known)
        words = 0 if every is None or every.words is None else len(every.words)
        each, word = RECORD
        self.allowance.spend(LOOK + (each + word * words) * (len(known) - before))
        if every is None or not len(every.valid):
            return None
        valid = np.zeros(int(np.prod(every.shape)), bool)
        valid[every.valid] = True
        if len(every.shape) == 1 and every.shape[0] > LONG:
            valid &= self._where_answers_change(every, valid)
        best: tuple[int, float] | None = None
        for indices in _levels(every):
            at = None if best is None else tuple(int(i) for i in np.unravel_index(best[0], every.shape))
            chosen = indices(at)
            chosen = chosen[valid[chosen]]
            found = self._least(Living(((every, chosen),), self.allowance), bound if indices.last else inf)
            if found is None:
                return None
            best = found
        assert best is not None
        return every.datapath(best[0]), best[1]

    def _where_answers_change(self, every: Combinations, valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of many exponents to look at: every ``SPARSE``-th, and all between two that the first answers tell
        apart, since what a larger one changes a yet larger one does not change back."""
        few = np.flatnonzero(valid)[::SPARSE]
        found = np.zeros(len(valid), bool)
        found[few] = True
        vectors = self.vectors.slice(0, min(2 * FIRST, self.vectors.size))
        table = Living(((every, few),), self.allowance).evaluate(vectors)
        for low, high, apart in zip(few, few[1:], (table[1:] != table[:-1]).any(axis=1), strict=False):
            found[low:high] |= apart
        found[few[-1] :] = True
        return found

    def _least(self, living: Living, bound: float) -> tuple[int, float] | None:
        keep = _nearer if bound == inf else lambda losses: _nearer(losses) & (losses < bound)
        left, losses = living.thinned(self.vectors, self.loss, keep, FIRST)
        if not len(left):
            return None
        at = int(losses.argmin())
        return int(np.concatenate([indices for _, indices in left.parts])[at]), float(losses[at])

    def least(self, hypotheses: Living) -> Found | None:
        """The hypothesis with the least loss, the first of several; None where there is none."""
        return next(iter(self.foremost(hypotheses)), None)

    def foremost(self, hypotheses: Living) -> list[Found]:
        """Those hypotheses that are left of all with their losses, the least first."""
        left, losses = hypotheses.thinned(self.vectors, self.loss, _nearer, FIRST)
        return sorted(zip(left, losses.tolist(), strict=True), key=_loss)


SPARSE = 12
"""One of so many exponents is looked at before those between two of them; tuned by ``tests/recovery``."""
WHOLE = 1500
"""More combinations than this are looked at from coarse to fine; tuned by ``tests/recovery``."""
LONG = 100
"""An axis of more numbers than this is of exponents."""
SOME = 500
"""More combinations than this of such an axis with others are looked at from coarse to fine; tuned by
``tests/recovery``."""
COARSE = 16
"""Numbers of a long axis that are looked at first, about, evenly spread; tuned by ``tests/recovery``."""
FINE = 20
"""An axis of more numbers than this is long; tuned by ``tests/recovery``."""
STRIDE = 6
"""So many times finer is each look than the one before; tuned by ``tests/recovery``."""


class _Level:
    """The combinations of one level: every ``stride``-th number about the best of the level before."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], reach: Reach, last: bool) -> None:
        self.shape, self.strides, self.reach, self.last = shape, strides, reach, last

    def __call__(self, best: tuple[int, ...] | None) -> Indices:
        lines = []
        for i, (count, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            if best is None or self.reach is None or self.reach[i] == 0:
                line = np.unique(np.r_[0:count:stride, count - 1])
            else:
                low, high = max(int(best[i]) - self.reach[i], 0), min(int(best[i]) + self.reach[i], count - 1)
                line = np.unique(np.r_[0, low : high + 1 : stride, best[i]])
            lines.append(line)
        mesh = np.meshgrid(*lines, indexing="ij")
        return np.asarray(np.ravel_multi_index(tuple(each.reshape(-1) for each in mesh), self.shape), np.int64)


def _levels(every: Combinations) -> list[_Level]:
    with_exponents = len(every.shape) > 1 and max(every.shape) > LONG
    few = int(np.prod(every.shape)) <= (SOME if with_exponents else WHOLE)
    long = [not few and isinstance(axis, NumberAxis) and axis.smooth and len(axis) > FINE for axis in every.axes]
    strides = [len(axis) // COARSE if each else 1 for axis, each in zip(every.axes, long, strict=True)]
    found: list[_Level] = []
    reach: Reach = None
    while True:
        last = max(strides, default=1) == 1
        found.append(_Level(every.shape, tuple(strides), reach, last))
        if last:
            return found
        reach = tuple(0 if s == 1 and (reach is None or reach[i] == 0) else s for i, s in enumerate(strides))
        strides = [max(1, s // STRIDE) if s > 1 else 1 for s in strides]


def _loss(found: Found) -> float:
    return found[1]


def _nearer(losses: Losses) -> NDArray[np.bool_]:
    """Those without loss, and a part of the others, the first of equal ones."""
    kept: NDArray[np.bool_] = losses == 0
    kept[np.argsort(losses, kind="stable")[: max(FEWEST, len(losses) // KEPT)]] = True
    return kept


def combined(base: Datapath, axes: Sequence[Axis], known: Programs | None = None) -> Combinations | None:
    """The combinations; None where the engine cannot hold the base, or an edit adds operations to it."""
    try:
        return Combinations(base, axes, known)
    except (UsageError, ValueError):
        return None


def unused(fmt: Format, answers: Bits) -> int:
    """How many of the last places of the format no answer uses."""
    used = int(np.bitwise_or.reduce(answers)) if len(answers) else 0
    return min((used & -used).bit_length() - 1, fmt.fraction_bits + fmt.padding) if used else 0


def _ordinals(fmt: Format, codes: Bits) -> Losses:
    """The codes as numbers in the order of their values, in floating point."""
    sign = codes.dtype.type(fmt.sign_mask)
    found: Losses = (codes & ~sign).astype(np.float64)
    return np.where(codes & sign, -found, found)
