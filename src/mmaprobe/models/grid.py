"""Many datapaths at once: every combination of some changes to one datapath, evaluated without making each a record.

The changes of one axis are made to the base datapath alone; what they alter in
its program is patched into the program of a combination.  So the cost of a
combination is that of copying some words, and only the survivors of a search
become datapaths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import run_programs
from mmaprobe.models.program import Program, plain_program
from mmaprobe.models.program_rows import COLUMNS, OPCODES, SUM
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath

Change = Callable[[Datapath], Datapath]
Known = dict[Change, Program | None]
Indices = NDArray[np.int64]

CHUNK = 1024
"""Combinations whose programs are made at a time."""
_WIDTH = COLUMNS["header"].index("width")
_CODE, _END = COLUMNS["header"].index("code"), COLUMNS["header"].index("code_end")
_ANCHORED, _GRID, _COUNT = (1 + COLUMNS["SUM"].index(name) for name in ("anchored", "grid", "count"))
_ANCHOR = 1 << 40
"""What lifts an anchored grid above every other, whose numbers are exponents."""


@dataclass(frozen=True)
class Numbers(Sequence[Change]):
    """One change a number (or None): what a number alters in a program is that number and a constant."""

    make: Callable[[int | None], Change]
    values: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.make(self.values[index])


class Grid:
    """All combinations of one change of each axis, made to ``base`` one after the other.

    The changes of different axes must touch different fields, and none may add
    or remove an operation (ValueError).  A combination has a flat index; those
    whose exact values the engine cannot hold are left out of ``valid``, and
    UsageError says that it cannot hold the base.  ``known`` remembers the programs of
    changes between grids of one base.
    """

    def __init__(self, base: Datapath, axes: Sequence[Sequence[Change]], known: Known | None = None) -> None:
        known = {} if known is None else known
        words = plain_program(base)
        if words is None:
            raise UsageError("the engine cannot hold the base datapath of a grid")
        self.base, self.known = base, known
        self.axes = [axis if isinstance(axis, Numbers) else tuple(axis) for axis in axes]
        self.shape = tuple(map(len, self.axes))
        self.words = _lift(words)
        self.sums = np.array(list(_sums(words)), np.int64)
        self.free = np.concatenate([[_WIDTH], self.sums + _GRID])
        fits, self.patches = [], []
        for axis in self.axes:
            table = self._line(axis) if isinstance(axis, Numbers) else None
            if table is None:
                programs = [self._program(change) for change in axis]
                fits.append(np.array([each is not None for each in programs]))
                table = self._table([self.words if each is None else each for each in programs])
            else:
                fits.append(np.ones(len(axis), bool))
            places = np.flatnonzero((table != self.words).any(axis=0))
            self.patches.append((places, table[:, places]))
        self._check()
        self.valid: Indices = np.flatnonzero(reduce(np.logical_and.outer, fits, np.array(True)).reshape(-1))

    def moved(self, base: Datapath) -> Grid:
        """The same changes to a datapath that differs from the base only in fields that no axis touches."""
        words = plain_program(base)
        found = copy(self)
        lifted = None if words is None else _lift(words)
        for places, _ in self.patches:
            if lifted is None or len(lifted) != len(self.words) or (lifted[places] != self.words[places]).any():
                raise ValueError("the other base differs in fields that an axis touches")
        found.base, found.words = base, self.words if lifted is None else lifted
        return found

    def _program(self, change: Change) -> Program | None:
        if change not in self.known:
            words = plain_program(change(self.base))
            self.known[change] = None if words is None else _lift(words)
        return self.known[change]

    def _table(self, programs: list[Program]) -> Program:
        if any(len(each) != len(self.words) for each in programs):
            raise ValueError("a change of a grid adds or removes an operation")
        return np.array(programs)

    def _line(self, axis: Numbers) -> Program | None:
        """The programs of numbers by those of the least, the middle and the largest; None where they are no line."""
        numbers = sorted(value for value in axis.values if value is not None)
        if len(numbers) < 4:
            return None
        ends = numbers[0], numbers[len(numbers) // 2], numbers[-1]
        programs = [self._program(axis.make(value)) for value in ends]
        uncut = self._program(axis.make(None)) if None in axis.values else self.words
        if uncut is None or any(each is None for each in programs):
            return None
        least, middle, most, free = self._table([each for each in (*programs, uncut) if each is not None])
        grows = most != least
        line = np.where(grows, most - ends[2], most)
        strict = np.ones(len(line), bool)
        strict[self.free] = False
        for value, words in zip(ends, (least, middle, most), strict=True):
            if (words != line + grows * value)[strict].any():
                return None
        rows = [free if value is None else line + grows * value for value in axis.values]
        for row, number in zip(rows, axis.values, strict=True):
            if number is not None:
                row[_WIDTH] = middle[_WIDTH] if number <= ends[1] else most[_WIDTH]
        return np.array(rows)

    def _check(self) -> None:
        """Axes share no place but those of which the largest value is right."""
        places = np.concatenate([places for places, _ in self.patches] or [np.empty(0, np.int64)])
        used, counts = np.unique(places[~np.isin(places, self.free)], return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"axes of a grid change the same words {used[counts > 1]}")

    def datapath(self, index: int) -> Datapath:
        """The combination as a record."""
        path = self.base
        for axis, place in zip(self.axes, np.unravel_index(index, self.shape), strict=True):
            path = axis[int(place)](path)
        return path

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        """d (len(indices), n) of these combinations."""
        out = np.empty((len(indices), vectors.size), formats.get(self.base.d).dtype)
        for start in range(0, len(indices), CHUNK):
            part = slice(start, start + CHUNK)
            run_programs(list(self._programs(indices[part])), self.base.c is not None, vectors, out[part])
        return out

    def _programs(self, indices: Indices) -> Program:
        """The programs of combinations, one a row."""
        rows = np.repeat(self.words[None], len(indices), axis=0)
        places = np.unravel_index(indices, self.shape) if self.shape else ()
        for (columns, values), place in zip(self.patches, places, strict=True):
            chosen = values[place]
            shared = np.isin(columns, self.free)
            rows[:, columns[~shared]] = chosen[:, ~shared]
            for column, value in zip(columns[shared], chosen[:, shared].T, strict=True):
                np.maximum(rows[:, column], value, out=rows[:, column])
        grids = rows[:, self.sums + _GRID]
        anchored = grids >= _ANCHOR // 2
        rows[:, self.sums + _GRID] = np.where(anchored, grids - _ANCHOR, grids)
        rows[:, self.sums + _ANCHORED] = anchored
        return rows


def _lift(words: Program) -> Program:
    """The program with every anchored grid far above the others, so that the largest of two is the right one."""
    words = words.copy()
    for at in _sums(words):
        words[at + _GRID] += _ANCHOR * words[at + _ANCHORED]
        words[at + _ANCHORED] = 0
    return words


def _sums(words: Program) -> Iterator[int]:
    """Where the sums of a program begin."""
    at = int(words[_CODE])
    while at < words[_END]:
        opcode = int(words[at])
        if opcode == SUM:
            yield at
        at += 1 + len(COLUMNS[OPCODES[opcode]])
        if opcode == SUM:
            at += int(words[at - 1]) * len(COLUMNS["term"])
