"""The parts of a plan, numbered: what is compared in which order, and what of it a shard takes.

Part after part goes over all instructions, each round with four times the vectors of the one before, so that whatever
ends it early has compared something of everything.  The parts are a function of the plan and of the instructions that
it is about; shard ``i`` of ``n`` takes the parts i, i + n, i + 2 n, ... of them, so shards are no part of what a plan
compares.

Those of an exhaustive plan are pieces of enumerations, of one size: together every vector of each, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import digest_of, json_text
from mmaprobe.generators.enumerations import enumerations_of

FIRST = 10_000
"""Vectors of the first round's parts."""
GROWTH = 4
"""Each round has so many times the vectors of the one before."""
LARGEST = 1 << 30
"""Vectors of a part at most."""
PIECE = 1 << 19
"""Vectors of a piece of an enumeration: eight times all pairs of two operands of 8 bits."""
MOST_SHARDS = 100_000
"""Shards of a plan at most."""


@dataclass(frozen=True)
class PlanPart:
    """Vectors ``first`` to ``first + vectors - 1`` of the plan's mix for an instruction, or of what is ``enumerated``;
    its witnesses where these are none."""

    number: int
    instruction: Instruction
    first: int
    vectors: int
    enumerated: str = ""

    @property
    def witnesses(self) -> bool:
        return not self.vectors


def parts_of(
    plan: ValidationPlan, targets: Sequence[Instruction], recorded: Callable[[Instruction], int | None]
) -> list[PlanPart]:
    """All parts of a plan for these instructions, in their order; of one that is ``recorded`` so many vectors at
    most, its witnesses where they are among them."""
    if plan.exhaustive:
        return [PlanPart(number, *each) for number, each in enumerate(_pieces(targets))]
    return [PlanPart(number, *each) for number, each in enumerate(_in_order(plan, targets, recorded))]


def _pieces(targets: Sequence[Instruction]) -> Iterator[tuple[Instruction, int, int, str]]:
    """Every enumeration of every instruction from its first vector to its last, without a gap."""
    for made in targets:
        for each in enumerations_of(made):
            for first in range(0, each.size, PIECE):
                yield made, first, min(PIECE, each.size - first), each.name


def _in_order(
    plan: ValidationPlan, targets: Sequence[Instruction], recorded: Callable[[Instruction], int | None]
) -> Iterator[tuple[Instruction, int, int]]:
    if plan.witnesses:
        yield from ((made, 0, 0) for made in targets if default_state(made) == made and recorded(made) is None)
    there = {made: plan.vectors if (most := recorded(made)) is None else min(most, plan.vectors) for made in targets}
    for first, vectors in _rounds(plan.vectors):
        yield from ((made, first, min(vectors, there[made] - first)) for made in targets if there[made] > first)


def _rounds(vectors: int) -> Iterator[tuple[int, int]]:
    """First vector and vectors of each round; none is so small that a family would have nothing of it."""
    first, size = 0, FIRST
    while first < vectors:
        here = min(size, vectors - first)
        here = vectors - first if vectors - first - here < FIRST else here
        yield first, here
        first, size = first + here, min(size * GROWTH, LARGEST)


@dataclass(frozen=True)
class Shard:
    """Shard ``number`` of ``of``, from 0 on."""

    number: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.of <= MOST_SHARDS:
            raise UsageError(f"{self.of:,} shards; there must be 1 to {MOST_SHARDS:,}")
        if not 0 <= self.number < self.of:
            raise UsageError(f"shard {self.number:,} of {self.of:,}; it must be 0 to {self.of - 1:,}")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def parts(self, every: Sequence[PlanPart]) -> list[PlanPart]:
        """The parts that it takes."""
        return list(every[self.number :: self.of])


def shard_named(text: str) -> Shard:
    """The shard of ``3/16``."""
    number, _, of = text.partition("/")
    if not (number.isascii() and number.isdigit() and of.isascii() and of.isdigit() and len(text) < 16):
        raise UsageError(f"--shard {text!r} must be NUMBER/OF, as in 0/16 to 15/16")
    return Shard(int(number), int(of))


def digest_of_parts(parts: Sequence[PlanPart]) -> str:
    """What tells these parts from others: the SHA-256 of what each compares."""
    said = [[part.instruction.id, part.first, part.vectors, *[part.enumerated] * bool(part.enumerated)]
            for part in parts]  # fmt: skip
    return digest_of(json_text(said).encode())
