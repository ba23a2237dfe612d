"""What a run finds: witnesses, findings, mismatches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from mmaprobe.operands.batch import Witness as Witness
from mmaprobe.showing import Code, NamedResults, Row, Showing, counted

FindingStatus = Literal["exact", "bounded", "inconclusive", "contradictory"]


@dataclass(frozen=True, repr=False)
class Finding(Showing):
    """The answer to one question about one instruction.

    ``answer`` is JSON-able and its shape belongs to the question; ``text`` says
    it in one line for a person.  ``tiles`` and ``launches`` are what it cost.
    """

    question: str
    status: FindingStatus
    answer: Any
    text: str
    witnesses: tuple[Witness, ...] = ()
    tiles: int = 0
    launches: int = 0

    def in_a_line(self) -> str:
        """The question and its answer in words."""
        return f"finding {self.question}: {self.status}: {self.text}"

    def as_row(self) -> Row:
        """The answer, and what it cost."""
        names = ("question", "status", "text", "answer", "tiles", "launches")
        return {name: getattr(self, name) for name in names} | {"witnesses": len(self.witnesses)}

    def as_rows(self) -> list[Row]:
        """Its witnesses; what it says itself, where there is none."""
        return [witness.as_row() for witness in self.witnesses] or [self.as_row()]


class Findings(NamedResults[Finding]):
    """The findings of a probe by question."""

    def in_a_line(self) -> str:
        """How many there are of each status."""
        counts = Counter(finding.status for finding in self.values())
        return f"{counted(len(self), 'finding')}: {', '.join(f'{count} {status}' for status, count in counts.items())}"


@dataclass(frozen=True)
class Retest:
    """What a vector that differed was answered when it was asked again, ``asked`` times in one place.

    ``same``: the first wrong answer again, beside the same expected one; ``other``: wrong otherwise; the rest was
    right.  ``where`` names a place that is not the first one: ``core 3``, ``cuda:1``.
    """

    asked: int
    same: int
    other: int = 0
    where: str = ""

    @property
    def right(self) -> int:
        """How often the devices agreed."""
        return self.asked - self.same - self.other

    @property
    def outcome(self) -> str:
        """``stable``: always the first answer; ``gone``: always right; else ``intermittent r/N``, r wrong of N."""
        if self.same == self.asked:
            return "stable"
        wrong = self.same + self.other
        return f"intermittent {wrong}/{self.asked}" if wrong else "gone"


@dataclass(frozen=True, repr=False)
class Mismatch(Showing):
    """A vector on which two devices differ; ``stable`` after a retest, ``recipe`` names its origin.

    ``vector.d`` is the first answer of the device under test, ``format`` that of the answers.  ``retests``: where it
    was found, then elsewhere; ``kinds``: how the two answers differ, in words.  ``seen``: the core or multiprocessor
    that gave the first answer, where that is known; ``slot``: the vector's place among those that are asked together
    (``validation.places``).  ``reference_says`` is how a model comes to the expected answer, ``device_as`` what changed
    in that model's datapath gives the device's answers.  Evidence of older versions has none of these.
    """

    vector: Witness
    expected: int
    recipe: str
    stable: bool = True
    shrunk: Witness | None = None
    shrunk_expected: int | None = None
    retests: tuple[Retest, ...] = ()
    kinds: tuple[str, ...] = ()
    seen: str = ""
    reference_says: str = ""
    device_as: str = ""
    slot: int = 0
    format: str = ""

    def in_a_line(self) -> str:
        """The recipe, and both answers."""
        return f"mismatch {self.recipe}: {self.vector.d:#x}, expected {self.expected:#x}"

    def as_row(self) -> Row:
        """The vector in its smallest form, with both answers to it."""
        vector, expected = self.vector, self.expected
        if self.shrunk is not None and self.shrunk_expected is not None:
            vector, expected = self.shrunk, self.shrunk_expected
        said = {"kinds": "; ".join(self.kinds), "stable": self.stable, "recipe": self.recipe}
        return {**vector.as_row(), "expected": Code(expected), **said}
