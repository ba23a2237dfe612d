"""Which cells the vectors of a comparison reached, and which are dead, in lines for a person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mmaprobe.evidence.cell_counts import CellCounts
from mmaprobe.showing import counted

MOST_DEAD = 12
"""Dead cells that are named, those of the most instructions first; JSON names all, instruction by instruction."""


def coverage_lines(found: Mapping[str, CellCounts]) -> Iterator[str]:
    """How many cells were reached of those that the formats can reach, and the dead ones, of instructions by name.

    Nothing where no vector was sampled.
    """
    reached = {name: each for name, each in found.items() if each.sampled}
    if not reached:
        return
    hit, reachable, sampled = (
        sum(getattr(each, what) for each in reached.values()) for what in ("hit", "reachable", "sampled")
    )
    yield (
        f"coverage: {hit:,} of {reachable:,} cells that the formats can reach, by {counted(sampled, 'sampled vector')}"
        + (f" of {len(reached)} instructions and control states" if len(reached) > 1 else "")
    )
    dead = Counter(cell for each in reached.values() for cell in each.dead)
    if dead:
        yield f"dead cells, which no sampled vector reached: {'; '.join(_named(dead, len(reached)))}"


def _named(dead: Counter[str], instructions: int) -> Iterator[str]:
    """The cells, each with in how many instructions it is dead where there are several."""
    every = sorted(dead.items(), key=lambda each: -each[1])
    for cell, count in every[:MOST_DEAD]:
        yield f"{cell} (in {count})" if instructions > 1 else cell
    if len(every) > MOST_DEAD:
        yield f"and {len(every) - MOST_DEAD} more (--json names all)"


def coverage_json(found: CellCounts) -> dict[str, Any]:
    """The counts of one instruction, and what they add up to; empty where no vector was sampled."""
    if not found.sampled:
        return {}
    return found.form() | {"hit": found.hit, "reachable": found.reachable, "dead": list(found.dead)}
