"""Shapes that an assembler takes and its vendor's own library refuses.

Tables ``[[doubted]]`` of the data files: of the instructions whose ``opcode`` matches a glob, with these ``modifiers``
and one of the rows ``m`` (any, where none is named), the library wants a multiple of ``n`` for N.  What the unit does
with another N nobody says, so a bring-up asks it last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.loader import data_files


@dataclass(frozen=True)
class Doubt:
    """One table ``[[doubted]]``."""

    opcode: str
    n: int
    source: str
    m: tuple[int, ...] = ()
    modifiers: Mapping[str, str] = field(default_factory=dict)

    def concerns(self, made: Instruction) -> bool:
        """Whether an instruction has a shape that the library refuses."""
        named = fnmatchcase(made.opcode, self.opcode) and self.modifiers.items() <= made.modifier.items()
        return named and made.m in (self.m or (made.m,)) and made.n % self.n != 0


@cache
def doubts() -> tuple[Doubt, ...]:
    """All that ship."""
    tables = (table for file in data_files() for table in file.data.get("doubted", ()))
    return tuple(Doubt(**{**table, "m": tuple(table.get("m", ()))}) for table in tables)


def doubt(made: Instruction) -> str:
    """What a library wants of an instruction's shape, and where it says so; empty where none refuses it."""
    found = next((each for each in doubts() if each.concerns(made)), None)
    return f"N {made.n} is in doubt: {found.source} wants a multiple of {found.n}" if found else ""
