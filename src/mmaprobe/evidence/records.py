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
class Mismatch:
    """A vector on which two devices differ; ``stable`` after a retest, ``recipe`` names its origin."""

    vector: Witness  # d is the answer of the device under test
    expected: int
    recipe: str
    stable: bool = True
    shrunk: Witness | None = None
    shrunk_expected: int | None = None
