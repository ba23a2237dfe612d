"""Observations and hypotheses without regard to the sign of a zero and the code of a NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.derivation.observations import Observations
from mmaprobe.derivation.survivors import Indices, Living
from mmaprobe.models.grid import Grid
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath

Which = Callable[[Batch], NDArray[np.int64]]


def blind(name: str, d: Bits) -> Bits:
    """The codes of a format with +0 for every zero and one code for every NaN."""
    fmt = formats.get(name)
    kind = formats.decode(fmt, d).kind
    found: Bits = np.where(kind == formats.ZERO, 0, np.where(kind == formats.NAN, fmt.nan_code or 0, d)).astype(d.dtype)
    return found


class Blind:
    """A grid whose answers are blind."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.valid: Indices = grid.valid
        self.words = grid.words

    def datapath(self, index: int) -> Datapath:
        return self.grid.datapath(index)

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        return blind(self.grid.base.d, self.grid.evaluate(indices, vectors))


class View(Observations):
    """Some vectors of what was observed (``which`` of them), asked on behalf of it; ``sees``: not blind."""

    def __init__(self, of: Observations, which: Which, sees: bool = False) -> None:
        super().__init__(of.device, of.instruction, of.allowance)
        self.of, self.which, self.sees = of, which, sees

    def seen(self, d: Bits) -> Bits:
        """Answers as this view shows them."""
        return d if self.sees else blind(self.instruction.d, d)

    def chosen(self) -> tuple[Batch, Bits]:
        """The vectors of this view, and the answers."""
        vectors, answers = self.of.everything()
        chosen = self.which(vectors)
        return take(vectors, chosen), self.seen(answers[chosen])

    def peek(self, vectors: Batch) -> Bits:
        """Ask, on behalf of what this is a view of, which remembers the answers as they are."""
        return self.seen(self.of.ask(vectors))

    def remember(self, vectors: Batch, answers: Bits) -> None:
        """Nothing: what was asked is remembered already."""

    def living(self, hypotheses: Living) -> Living:
        return hypotheses.agreeing(*self.chosen())

    def mismatches(self, datapath: Datapath) -> int:
        vectors, answers = self.chosen()
        return int((self.seen(self.allowance.evaluate([datapath], vectors)[0]) != answers).sum())

    def all(self, *grids: Grid) -> Living:
        """All combinations of these grids, as this view shows their answers."""
        return Living.of(grids if self.sees else [Blind(grid) for grid in grids], self.allowance)
