"""Many datapaths at once: every combination of some edits of one datapath, evaluated without making each a record.

The edits of one axis are made to the base datapath alone; what they alter in its program is patched into the program
of a combination.  So the cost of a combination is that of copying some words, and only the survivors of a search
become datapaths.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import Patched
from mmaprobe.models.program import Plain, Program, Rules, plain_program
from mmaprobe.models.program_rows import COLUMNS
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode

Edit = Callable[[Datapath], Datapath]
"""A datapath with something set."""
Axis = Sequence[Edit]
"""Edits of which one is made at a time."""
Programs = dict[Edit | None, Plain | None]
"""The programs of edits of one datapath, and its own."""
Indices = NDArray[np.int64]
Patch = tuple[NDArray[np.bool_], tuple[Indices, Program]]
"""Of each edit of an axis whether the engine holds it; the places that they alter, and to what."""

_WIDTH = COLUMNS["header"].index("width")
_ANCHORED, _GRID = (1 + COLUMNS["SUM"].index(name) for name in ("anchored", "grid"))
_ANCHOR = 1 << 40
"""What lifts an anchored grid above every other, whose numbers are exponents."""


@dataclass(frozen=True)
class NumberAxis(Sequence[Edit]):
    """One edit a number (or None): what a number alters in a program is that number and a constant; ``smooth``: a
    number near the right one is nearer than others."""

    make: Callable[[int | None], Edit]
    values: tuple[int | None, ...]
    smooth: bool = True

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.make(self.values[index])


@dataclass(frozen=True)
class ValueAxis(Sequence[Edit]):
    """One edit a value: each sets these fields of the same Encodes, or the roundings of the same terms.

    The words of a program that a field says are those of its Encode or term; how wide the program's sums are, an
    Encode's first cut alone can say.
    """

    edits: tuple[Edit, ...]
    values: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.edits)

    def __getitem__(self, index: Any) -> Any:
        return self.edits[index]

    def alike(self) -> list[list[int]]:
        """The numbers of the values that ask for equally wide sums."""
        found: dict[object, list[int]] = {}
        for i, value in enumerate(self.values):
            first = value.get("first")
            found.setdefault(first and first[0], []).append(i)
        return list(found.values())


class Combinations:
    """All combinations of one edit of each axis, made to ``base`` one after the other.

    The edits of different axes must touch different fields, and none may add
    or remove an operation (ValueError).  A combination has a flat index; those
    whose exact values the engine cannot hold are left out of ``valid``, and
    UsageError says that it cannot hold the base.  ``known`` remembers the programs of
    edits for other combinations of one base.
    """

    def __init__(self, base: Datapath, axes: Sequence[Axis], known: Programs | None = None) -> None:
        self.base, self.known = base, {} if known is None else known
        found = self._plain(None)
        if found is None:
            raise UsageError("the engine cannot hold the base datapath of combinations")
        self.plain, self.words, self.sums = found, found.words, found.sums
        self.axes = [axis if isinstance(axis, (NumberAxis, ValueAxis)) else tuple(axis) for axis in axes]
        self.shape = tuple(map(len, self.axes))
        self.free = np.zeros(len(self.words), bool)
        self.free[_WIDTH] = self.free[self.sums + _GRID] = True
        fits, self.patches = [], []
        for axis in self.axes:
            good, patch = self._derived(axis) or self._each(axis)
            fits.append(good)
            self.patches.append(patch)
        self._check()
        self.valid: Indices = np.flatnonzero(reduce(np.logical_and.outer, fits, np.array(True)).reshape(-1))

    def moved(self, base: Datapath) -> Combinations:
        """The same edits of a datapath that differs from the base only in fields that no axis touches."""
        made, found = _lifted(base), copy(self)
        lifted = None if made is None else made.words
        for places, _ in self.patches:
            if lifted is None or len(lifted) != len(self.words) or (lifted[places] != self.words[places]).any():
                raise ValueError("the other base differs in fields that an axis touches")
        found.base, found.words = base, self.words if lifted is None else lifted
        return found

    def _plain(self, edit: Edit | None) -> Plain | None:
        """The program of an edit, or of the base."""
        if edit not in self.known:
            self.known[edit] = _lifted(self.base if edit is None else edit(self.base))
        return self.known[edit]

    def _program(self, edit: Edit) -> Program | None:
        made = self._plain(edit)
        return None if made is None else made.words

    def _each(self, axis: Axis) -> Patch:
        programs = [self._program(edit) for edit in axis]
        table = self._table([self.words if each is None else each for each in programs])
        places = np.flatnonzero((table != self.words).any(axis=0))
        return np.array([each is not None for each in programs]), (places, table[:, places])

    def _table(self, programs: list[Program]) -> Program:
        if any(len(each) != len(self.words) for each in programs):
            raise ValueError("an edit adds or removes an operation")
        return np.array(programs)

    def _derived(self, axis: Axis) -> Patch | None:
        """An axis from the programs of a few of its edits; None where that is no way."""
        if isinstance(axis, NumberAxis):
            return self._line(axis)
        return self._by_values(axis) if isinstance(axis, ValueAxis) else None

    def _by_values(self, axis: ValueAxis) -> Patch | None:
        """One program for each width of the sums, and two at least: what differs between two is what the fields say."""
        alike = axis.alike()
        probes = [group[0] for group in alike] if len(alike) > 1 else alike[0][:2]
        made = [self._plain(axis.edits[i]) for i in probes]
        some = [each for each in made if each is not None and len(each.words) == len(self.words)]
        if len(some) < max(2, len(probes)) or len(axis) < 4 or len(some[0].ruled) != len(some[1].ruled):
            return None
        said = [i for i, (x, y) in enumerate(zip(some[0].ruled, some[1].ruled, strict=True)) if x.by != y.by]
        for i, each in zip(probes, some, strict=True):
            if not self._sets(each, said, axis.values[i]):
                return None
        columns, rows = self._said(axis, said)
        differs = np.any([each.words != self.words for each in some], axis=0)
        differs[columns] = False
        others = np.flatnonzero(differs)
        values = np.empty((len(axis), len(others)), np.int64)
        for group, each in zip(alike, some, strict=False):
            values[group] = each.words[others]
        places, rows = np.concatenate([others, columns]), np.hstack([values, rows])
        differs = (rows != self.words[places]).any(axis=0)
        return np.ones(len(axis), bool), (places[differs], rows[:, differs])

    def _said(self, axis: ValueAxis, said: list[int]) -> tuple[Indices, Program]:
        """The words that Encodes and terms say, and what they are for each value of their fields."""
        places: dict[tuple[Any, Any], list[Indices]] = {}
        for i in said:
            at, words_of, by = self.plain.ruled[i]
            places.setdefault((words_of, by), []).append(at)
        columns, rows = [np.empty(0, np.int64)], [np.empty((len(axis), 0), np.int64)]
        for (words_of, by), found in places.items():
            each = np.array([words_of(_with(by, value)) for value in axis.values], np.int64)
            begin = np.concatenate(found)
            columns.append(np.add.outer(begin, np.arange(each.shape[1])).reshape(-1))
            rows.append(np.tile(each, len(begin)))
        return np.concatenate(columns), np.hstack(rows)

    def _sets(self, made: Plain, said: list[int], value: Mapping[str, Any]) -> bool:
        """Whether the base with these fields of its Encodes and terms is what an edit made."""
        expected = [each.by for each in self.plain.ruled]
        for i in said:
            expected[i] = _with(expected[i], value)
        pairs = zip(made.ruled, self.plain.ruled, strict=True)
        return expected == [each.by for each in made.ruled] and all(np.array_equal(x.at, y.at) for x, y in pairs)

    def _line(self, axis: NumberAxis) -> Patch | None:
        """An axis of numbers by the least, the middle and the largest that the engine holds; None where they are no
        line."""
        numbers = self._held(axis)
        if len(numbers) < 4:
            return None
        ends = numbers[0], numbers[len(numbers) // 2], numbers[-1]
        programs = [self._program(axis.make(value)) for value in ends]
        uncut = self._program(axis.make(None)) if None in axis.values else None
        if any(each is None for each in programs):
            return None
        free = self.words if uncut is None else uncut
        least, middle, most, free = self._table([*(each for each in programs if each is not None), free])
        grows = most != least
        line = np.where(grows, most - ends[2], most)
        for value, words in zip(ends, (least, middle, most), strict=True):
            if (words != line + grows * value)[~self.free].any():
                return None
        differs = grows | (line != self.words) | (free != self.words)
        differs[_WIDTH] = True
        places = np.flatnonzero(differs)
        counts = np.array([0 if value is None else value for value in axis.values])
        rows = line[places] + np.outer(counts, grows[places])
        rows[:, places == _WIDTH] = np.where(counts <= ends[1], middle[_WIDTH], most[_WIDTH])[:, None]
        cut = np.array([value is not None for value in axis.values])
        rows[~cut] = free[places]
        held = (counts >= ends[0]) & (counts <= ends[2])
        return np.where(cut, held, uncut is not None), (places, rows)

    def _held(self, axis: NumberAxis) -> list[int]:
        """The numbers of an axis that the engine holds, in order, as those in the middle are held: where it does not
        hold one it holds none beyond."""
        numbers = sorted(value for value in axis.values if value is not None)
        middle = len(numbers) // 2
        if not numbers or self._program(axis.make(numbers[middle])) is None:
            return []

        def beyond(way: list[int]) -> int:
            """How many of these, nearest first, are held."""
            if not way or self._program(axis.make(way[-1])) is not None:
                return len(way)
            return bisect_left(way, True, key=lambda number: self._program(axis.make(number)) is None)

        below, above = beyond(numbers[:middle][::-1]), beyond(numbers[middle + 1 :])
        return numbers[middle - below : middle + 1 + above]

    def _check(self) -> None:
        """Axes share no place but those of which the largest value is right."""
        used = np.zeros(len(self.words), np.int64)
        for places, _ in self.patches:
            used[places] += ~self.free[places]
        if (used > 1).any():
            raise ValueError(f"axes change the same words {np.flatnonzero(used > 1)}")

    def datapath(self, index: int) -> Datapath:
        """The combination as a record."""
        path = self.base
        for axis, place in zip(self.axes, np.unravel_index(index, self.shape), strict=True):
            path = axis[int(place)](path)
        return path

    def evaluate(self, indices: Indices, vectors: Batch) -> Bits:
        """d (len(indices), n) of these combinations."""
        out = np.empty((len(indices), vectors.size), formats.get(self.base.d).dtype)
        places = np.unravel_index(indices, self.shape) if self.shape else ()
        axes = [(*patch, place) for patch, place in zip(self.patches, places, strict=True)]
        Patched(self.words, self.free, self.sums, _ANCHOR).run(axes, self.base.c is not None, vectors, out)
        return out


@lru_cache(maxsize=1024)
def _lifted(datapath: Datapath) -> Plain | None:
    """A datapath's program with every anchored grid far above the others, so that the largest of two is the right one:
    groups of fields around one datapath meet the same edits again."""
    made = plain_program(datapath)
    if made is not None:
        words, sums, _ = made
        words[sums + _GRID] += _ANCHOR * words[sums + _ANCHORED]
        words[sums + _ANCHORED] = 0
        words.flags.writeable = False
    return made


def _with(by: Encode | Rules, value: Mapping[str, Any]) -> Encode | Rules:
    return by._replace(**value) if isinstance(by, Rules) else replace(by, **value)
