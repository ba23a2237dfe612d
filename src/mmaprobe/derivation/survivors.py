"""Hypotheses that are left: combinations and lists of datapaths, of which only the survivors are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.budget import CALLED, COMBINATION, Allowance, work
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath

Indices = NDArray[np.int64]
Losses = NDArray[np.float64]
Loss = Callable[[Bits, Indices], Losses]
"""Of rows of answers to some of the vectors, by number, the loss of each row."""
Keep = Callable[[Losses], NDArray[np.bool_]]
"""Which are kept, from their losses so far."""
FIRST = 8
"""Vectors that meet all hypotheses where one wrong answer tells: few are left for the others."""


class Hypotheses(Protocol):
    """Numbered datapaths (``Combinations``, or a list)."""

    @property
    def valid(self) -> Indices:
        """The numbers that stand for a datapath."""

    def datapath(self, index: int) -> Datapath:
        """The datapath of a number."""

    @property
    def words(self) -> NDArray[np.int64] | None:
        """The program that all of them share the shape of; None where each has its own."""

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        """d (len(indices), n) of these datapaths."""


class Listed:
    """Datapaths given one by one."""

    words = None

    def __init__(self, datapaths: Sequence[Datapath]) -> None:
        self.datapaths = tuple(datapaths)
        self.valid: Indices = np.arange(len(self.datapaths))

    def datapath(self, index: int) -> Datapath:
        return self.datapaths[index]

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        return evaluate_many([self.datapaths[i] for i in indices], vectors)


@dataclass(frozen=True)
class Living:
    """Living hypotheses, the simplest first: parts of spaces; ``allowance`` pays for their evaluation."""

    parts: tuple[tuple[Hypotheses, Indices], ...]
    allowance: Allowance

    @classmethod
    def of(cls, spaces: Sequence[Hypotheses], allowance: Allowance) -> Living:
        """All of these spaces."""
        return cls(tuple((space, space.valid) for space in spaces if len(space.valid)), allowance)

    def __len__(self) -> int:
        return sum(len(indices) for _, indices in self.parts)

    def __iter__(self) -> Iterator[Datapath]:
        for space, indices in self.parts:
            for index in indices:
                yield space.datapath(int(index))

    def first(self, count: int) -> list[Datapath]:
        """The first so many as datapaths."""
        return [path for path, _ in zip(self, range(count), strict=False)]

    def evaluate(self, vectors: Batch) -> Bits:
        """d (hypotheses, n)."""
        for space, indices in self.parts:
            if space.words is None:
                self.allowance.spend_on_programs([space.datapath(int(i)) for i in indices], vectors)
            else:
                lanes = work(space.words, vectors.a.shape[1], vectors.size)
                each, word = COMBINATION
                self.allowance.spend(CALLED + int(len(indices) * (each + word * len(space.words) + lanes)))
        return np.concatenate([space.evaluate(indices, vectors) for space, indices in self.parts])

    def kept(self, mask: NDArray[np.bool_]) -> Living:
        """Those for which the mask is set."""
        parts, at = [], 0
        for space, indices in self.parts:
            left = indices[mask[at : at + len(indices)]]
            at += len(indices)
            if left.size:
                parts.append((space, left))
        return Living(tuple(parts), self.allowance)

    def spread(self, most: int) -> Living:
        """At most so many of them, as far apart as may be."""
        return self.kept(np.arange(len(self)) % (len(self) // most + 1) == 0)

    def sample(self, rng: np.random.Generator, count: int) -> Living:
        """At most ``count`` of them, drawn at random, the first among them."""
        if len(self) <= count:
            return self
        mask = np.zeros(len(self), bool)
        mask[rng.choice(len(self), count - 1, replace=False)] = True
        mask[0] = True
        return self.kept(mask)

    def thinned(self, vectors: Batch, loss: Loss, keep: Keep, first: int = FIRST) -> tuple[Living, Losses]:
        """What ``keep`` leaves, and the losses: ``first`` vectors meet all, twice as many those that are left, and so
        on, so that most are dropped after few."""
        left, losses, start, size = self, np.zeros(len(self)), 0, first
        while start < vectors.size and len(left):
            part = np.arange(start, min(start + size, vectors.size))
            losses = losses + loss(left.evaluate(take(vectors, part)), part)
            good = keep(losses)
            left, losses = left.kept(good), losses[good]
            start, size = start + size, 2 * size
        return left, losses

    def agreeing(self, vectors: Batch, answers: Bits, forgiven: int = 0) -> Living:
        """Those that get all but ``forgiven`` of the answers right."""

        def wrong(table: Bits, part: Indices) -> Losses:
            return np.asarray((table != answers[part]).sum(axis=1), np.float64)

        return self.thinned(vectors, wrong, lambda losses: losses <= forgiven)[0]


def several(datapaths: Sequence[Datapath], allowance: Allowance) -> Living:
    """Datapaths as living hypotheses."""
    return Living.of([Listed(datapaths)], allowance)
