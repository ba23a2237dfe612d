"""Hypotheses that are left: grids and lists of datapaths, of which only the survivors are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.budget import COMBINATION, Allowance, cost, price
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath

Indices = NDArray[np.int64]
FIRST = 4
"""So many vectors meet all hypotheses, twice as many the survivors, and so on."""


class Space(Protocol):
    """Numbered datapaths (a ``Grid``, or a list)."""

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

    parts: tuple[tuple[Space, Indices], ...]
    allowance: Allowance

    @classmethod
    def of(cls, spaces: Sequence[Space], allowance: Allowance) -> Living:
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
        lanes = vectors.size * vectors.a.shape[1]
        for space, indices in self.parts:
            if space.words is None:
                self.allowance.spend(cost([space.datapath(int(i)) for i in indices], vectors))
            else:
                self.allowance.spend(len(indices) * (COMBINATION + lanes * price(space.words)))
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

    def sample(self, rng: np.random.Generator, count: int) -> Living:
        """At most ``count`` of them, drawn at random, the first among them."""
        if len(self) <= count:
            return self
        mask = np.zeros(len(self), bool)
        mask[rng.choice(len(self), count - 1, replace=False)] = True
        mask[0] = True
        return self.kept(mask)

    def agreeing(self, vectors: Batch, answers: Bits, forgiven: int = 0) -> Living:
        """Those that get all but ``forgiven`` of the answers right; most are dropped after a few vectors."""
        left, start, size = self, 0, FIRST
        misses = np.zeros(len(self), np.int64)
        while start < len(answers) and len(left):
            part = np.arange(start, min(start + size, len(answers)))
            misses = misses + (left.evaluate(take(vectors, part)) != answers[part]).sum(axis=1)
            good = misses <= forgiven
            left, misses = left.kept(good), misses[good]
            start, size = start + size, 2 * size
        return left

    def closest(self, vectors: Batch, answers: Bits, count: int) -> tuple[Living, NDArray[np.int64]]:
        """The ``count`` with the fewest wrong answers, fewest first within a space, and how many those are."""
        left, start, size = self, 0, 2 * FIRST
        misses = np.zeros(len(self), np.int64)
        while start < len(answers) and len(left):
            part = np.arange(start, min(start + size, len(answers)))
            misses = misses + (left.evaluate(take(vectors, part)) != answers[part]).sum(axis=1)
            room = max(count, len(left) // 4)
            if len(left) > room:
                good = misses <= np.partition(misses, room - 1)[room - 1]
                left, misses = left.kept(good), misses[good]
            start, size = start + size, 2 * size
        good = misses <= np.partition(misses, min(count, len(left)) - 1)[min(count, len(left)) - 1]
        return left.kept(good), misses[good]


def several(datapaths: Sequence[Datapath], allowance: Allowance) -> Living:
    """Datapaths as living hypotheses."""
    return Living.of([Listed(datapaths)], allowance)
