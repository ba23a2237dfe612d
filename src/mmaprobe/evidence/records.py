"""What a run finds: witnesses, findings, mismatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mmaprobe.operands.batch import Witness as Witness

FindingStatus = Literal["exact", "bounded", "inconclusive", "contradictory"]


@dataclass(frozen=True)
class Finding:
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


@dataclass(frozen=True)
class Mismatch:
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
