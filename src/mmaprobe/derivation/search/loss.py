"""How far a hypothesis is from the answers: graded, so that a search downhill sees when it comes nearer.

The loss of one answer is log2(1 + distance in places of the answers seen), 1/4 at least where it is wrong: a wrong
rounding costs little, a wrong precision more, a wrong structure most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import COMBINATION, RECORD, Allowance, price
from mmaprobe.derivation.session import OutsideError
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.models.grid import Change, Grid, Known
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath

Loss = NDArray[np.float64]
Axis = Sequence[Change]
Found = tuple[Datapath, float]
FIRST, KEPT = 16, 6
"""So many vectors meet a whole grid; one in so many of its datapaths meets twice as many more, and so on."""
LEAST = 0.25
PROGRAM = 1000
"""To make a program costs as much as so many evaluations."""


@dataclass
class Budget:
    """How many times a datapath may still be evaluated on a vector, or what costs as much; ``allowance`` pays."""

    left: int
    allowance: Allowance

    def spend(self, count: int) -> None:
        """OutsideError when that is too often."""
        self.left -= count
        if self.left < 0:
            raise OutsideError("nothing fits within the evaluations allowed", None)


@dataclass(frozen=True)
class Graded:
    """Normal answers, and what counts as one place of them (a power of two of the last)."""

    vectors: Batch
    answers: Bits
    fmt: Format
    unit: int
    budget: Budget

    @classmethod
    def of(cls, instruction: Instruction, seen: Sequence[tuple[Batch, Bits]], budget: Budget) -> Graded:
        """Of everything seen what is normal, in an order in which every part of it shows the same mixture."""
        fmt = formats.get(instruction.d)
        answers = np.concatenate([each for _, each in seen])
        normal = np.flatnonzero(formats.decode(fmt, answers).kind == formats.NORMAL)
        chosen = np.random.default_rng(len(answers)).permutation(normal)
        answers = answers[chosen]
        return cls(take(join([each for each, _ in seen]), chosen), answers, fmt, unused(fmt, answers), budget)

    def loss(self, table: Bits, part: NDArray[np.int64]) -> Loss:
        """The losses of rows of answers to the vectors ``part``."""
        true = self.answers[part]
        apart = np.abs(_ordinals(self.fmt, table) - _ordinals(self.fmt, true)) / 2.0**self.unit
        found: Loss = np.where(table != true, np.maximum(np.log2(1 + apart), LEAST), 0.0).sum(axis=1)
        return found

    def total(self, datapath: Datapath) -> float:
        """The loss of one datapath; infinite where the engine cannot hold it."""
        if not len(self.answers):
            return 0.0
        self.budget.spend(len(self.answers))
        try:
            table = self.budget.allowance.evaluate([datapath], self.vectors)
        except UsageError:
            return float("inf")
        return float(self.loss(table, np.arange(len(self.answers)))[0])

    def nearest(self, base: Datapath, axes: Sequence[Axis], known: Known | None = None) -> Found | None:
        """The combination with the least loss, most being dropped after a few vectors; None where there is none.

        ``known`` remembers the programs of changes to this base.
        """
        known = {} if known is None else known
        before = len(known)
        grid = grid_of(base, axes, known)
        self.budget.spend(PROGRAM * (len(known) - before))
        self.budget.allowance.spend(RECORD * (len(known) - before))
        if grid is None:
            return None
        left, losses, start, size = grid.valid, np.zeros(len(grid.valid)), 0, FIRST
        while start < len(self.answers) and left.size:
            part = np.arange(start, min(start + size, len(self.answers)))
            self.budget.spend(len(left) * len(part))
            self.budget.allowance.spend(len(left) * (COMBINATION + len(part) * base.k * price(grid.words)))
            losses = losses + self.loss(grid.evaluate(left, take(self.vectors, part)), part)
            start, size = start + size, 2 * size
            room = max(4, len(left) // KEPT)
            if len(left) > room and start < len(self.answers):
                kept = np.sort(np.argpartition(losses, room - 1)[:room])
                left, losses = left[kept], losses[kept]
        if not left.size:
            return None
        best = int(losses.argmin())
        return grid.datapath(int(left[best])), float(losses[best])


def grid_of(base: Datapath, axes: Sequence[Axis], known: Known | None = None) -> Grid | None:
    """The grid; None where the engine cannot hold its base, or changes add operations to it."""
    try:
        return Grid(base, axes, known)
    except (UsageError, ValueError):
        return None


def unused(fmt: Format, answers: Bits) -> int:
    """How many of the last places of the format no answer uses."""
    used = int(np.bitwise_or.reduce(answers)) if len(answers) else 0
    return min((used & -used).bit_length() - 1, fmt.fraction_bits + fmt.padding) if used else 0


def _ordinals(fmt: Format, codes: Bits) -> Loss:
    """The codes as numbers in the order of their values, in floating point."""
    sign = codes.dtype.type(fmt.sign_mask)
    found: Loss = (codes & ~sign).astype(np.float64)
    return np.where(codes & sign, -found, found)
