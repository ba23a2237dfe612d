"""How many sampled vectors fell into which cell of coverage (``validation.coverage`` says what the cells are)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mmaprobe.evidence.files import FileValue

CELLS_VERSION = 1
"""Of the rules that say which cells there are; counts of two versions do not add up."""
SPECIALS = "specials"
"""The one rule by which a vector may fall into several cells, or into none; by every other one it falls into one."""


@dataclass(frozen=True)
class CellCounts:
    """Of ``sampled`` vectors how many fell into each cell, by rule: 0 for a cell that the formats can reach and no
    vector did.  ``unreachable``: of a rule, why it has no more cells here."""

    sampled: int = 0
    cells: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)

    def __add__(self, other: CellCounts) -> CellCounts:
        """The counts of both samples."""
        cells: dict[str, dict[str, int]] = {rule: dict(counts) for rule, counts in self.cells.items()}
        for rule, counts in other.cells.items():
            into = cells.setdefault(rule, {})
            for cell, count in counts.items():
                into[cell] = into.get(cell, 0) + count
        return CellCounts(self.sampled + other.sampled, cells, {**self.unreachable, **other.unreachable})

    @property
    def reachable(self) -> int:
        """Cells that the formats can reach."""
        return sum(map(len, self.cells.values()))

    @property
    def hit(self) -> int:
        """Cells that a sampled vector reached."""
        return sum(count > 0 for counts in self.cells.values() for count in counts.values())

    @property
    def dead(self) -> tuple[str, ...]:
        """The others, ``RULE: CELL`` each, in one order whoever counted."""
        cells = [(rule, cell) for rule, counts in self.cells.items() for cell, count in counts.items() if not count]
        return tuple(f"{rule}: {cell}" for rule, cell in sorted(cells, key=lambda each: (each[0], _place(each[1]))))

    def form(self) -> dict[str, Any]:
        """As evidence keeps it."""
        return {
            "version": CELLS_VERSION,
            "sampled": self.sampled,
            "cells": {rule: dict(counts) for rule, counts in self.cells.items()},
            "unreachable": dict(self.unreachable),
        }


NO_CELLS = CellCounts()
"""Those of no vector."""


def _place(cell: str) -> tuple[int, str]:
    """Where a cell stands among those of its rule: numbers by their size."""
    number = cell.partition(" ")[0].lstrip("+")
    return (int(number), cell) if number.lstrip("-").isdigit() else (0, cell)


def cell_counts_from_json(field: FileValue) -> CellCounts:
    """The counts whose ``form`` a file holds; UsageError naming the key where they do not add up."""
    if not 1 <= field["version"].whole <= CELLS_VERSION:
        raise field["version"].wrong(f"is {field['version'].whole}; this package reads up to {CELLS_VERSION}")
    sampled = field["sampled"].whole
    if sampled < 1:
        raise field["sampled"].wrong("is no number of vectors")
    cells = {rule: _counts(field["cells"][rule], sampled) for rule in field["cells"].typed(dict)}
    for rule, counts in cells.items():
        if rule != SPECIALS and sum(counts.values()) != sampled:
            raise field["cells"][rule].wrong(f"counts {sum(counts.values()):,} vectors, but {sampled:,} were sampled")
    why = field["unreachable"]
    return CellCounts(sampled, cells, {rule: why[rule].text for rule in why.typed(dict)})


def _counts(field: FileValue, sampled: int) -> dict[str, int]:
    counts = {cell: field[cell].whole for cell in field.typed(dict)}
    for cell, count in counts.items():
        if not 0 <= count <= sampled:
            raise field[cell].wrong(f"is {count:,}, of {sampled:,} vectors")
    return counts


def coverage_of(validation: Mapping[str, Any]) -> CellCounts:
    """The counts that a part of evidence holds in what was validated; none in evidence of before there were any."""
    kept = validation.get("coverage")
    return CellCounts(kept["sampled"], kept["cells"], kept["unreachable"]) if kept else NO_CELLS


def summed(found: Iterable[CellCounts]) -> CellCounts:
    """The counts of all samples of one instruction together."""
    return sum(found, NO_CELLS)
