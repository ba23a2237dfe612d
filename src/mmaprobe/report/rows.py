"""The summary of a run: one row an instruction, from which every report is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["equal", "mismatch", "changed", "failed", "inconclusive", "unwritten", "internal"]

EXIT_CODES: dict[Outcome, int] = {
    "equal": 0,
    "mismatch": 1,
    "changed": 0,
    "inconclusive": 4,
    "failed": 5,
    "unwritten": 6,
    "internal": 70,
}
"""What each outcome of an instruction makes the command return; ``changed`` (the derived datapath is not the shipped
one) returns 1 under ``--check``."""

PRECEDENCE = (70, 5, 1, 6, 4, 3, 0)


def worst(codes: Collection[int]) -> int:
    """Of several outcomes the first of 70, 5, 1, 6, 4, 3, 0; what is none of them (an interrupt) comes before all."""
    others = [code for code in codes if code not in PRECEDENCE]
    return max(others) if others else next((code for code in PRECEDENCE if code in codes), 4)


MEANING = (
    "Equal means: every vector compared gave the same bits on the device and in the model derived from it. "
    "It is evidence for those vectors, not a proof for all."
)


@dataclass(frozen=True)
class InstructionRow:
    """What a run found out about one instruction.

    ``phrases`` are those of ``report.phrases.describe`` (empty where nothing
    was derived); ``parameters`` says how the derived datapath compares with the
    shipped one; ``detail`` is the reason or the first mismatch, for a person.
    """

    instruction: str
    outcome: Outcome
    phrases: Mapping[str, str] = field(default_factory=dict)
    vectors: int = 0
    mismatches: int = 0
    seconds: float = 0.0
    parameters: str = ""
    detail: str = ""


@dataclass(frozen=True)
class StepRow:
    """A step of a bring-up: how far it is, its seconds, what it found in a line."""

    name: str
    status: str
    seconds: float
    text: str


@dataclass(frozen=True)
class Summary:
    """A whole run; ``not_here`` pairs each instruction that this device lacks with the reason.

    ``ended``: why it ended early, ``failure`` that reason's exit code, where it is one.
    """

    device: str
    identity: Mapping[str, str]
    run: str
    version: str
    seed: int
    rows: tuple[InstructionRow, ...]
    not_here: tuple[tuple[str, str], ...] = ()
    evidence: str = ""
    seconds: float = 0.0
    check: bool = False
    steps: tuple[StepRow, ...] = ()
    ended: str = ""
    failure: int = 0

    @property
    def vectors(self) -> int:
        """Vectors compared in all."""
        return sum(row.vectors for row in self.rows)

    @property
    def mismatches(self) -> int:
        """Vectors that differed in all."""
        return sum(row.mismatches for row in self.rows)

    @property
    def exit_code(self) -> int:
        """The first of 70, 5, 1, 6, 4, 3, 0 among the rows; 4 where nothing was compared, 3 where nothing is here."""
        if self.failure == 130:
            return 130
        if not self.rows:
            return self.failure or (3 if self.not_here else 4)
        codes = {EXIT_CODES[row.outcome] for row in self.rows} | (set() if self.vectors else {4})
        codes |= {self.failure} if self.failure else set()
        codes |= {1} if self.check and any(row.outcome == "changed" for row in self.rows) else set()
        return worst(codes)
