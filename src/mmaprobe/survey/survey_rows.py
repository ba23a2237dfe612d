"""What a survey found: a row for each instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.certificate import one_in
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.devices.base import Device
from mmaprobe.parameters.datapath import Datapath

SurveyOutcome = Literal["derived", "equal", "inconclusive", "refused", "failed"]


@dataclass(frozen=True)
class SurveyRow:
    """What became of one instruction.

    ``derived``: by a search of its own (``derivation``).  ``equal``: ``compared``
    vectors agree with the datapath derived from ``like``, or with what the
    lowering makes of the primitives derived from these; a fault on 1 in
    ``excluded`` of such vectors, or more, is excluded.  ``inconclusive``: no
    datapath of the grammar fits; ``refused``: it cannot be asked so;
    ``failed``: the device broke down or contradicted itself; ``reason`` says why.
    """

    instruction: Instruction
    outcome: SurveyOutcome
    datapath: Datapath | None = None
    derivation: Derivation | None = None
    like: tuple[str, ...] = ()
    compared: int = 0
    tiles: int = 0
    launches: int = 0
    seconds: float = 0.0
    reason: str = ""

    @property
    def excluded(self) -> int:
        """At 95 %, where it is equal."""
        return one_in(self.compared)


@dataclass(frozen=True)
class Survey:
    """The rows in the order asked for; ``absent``: what does not run on the device, and why; ``run``: the id of the
    run that it is part of, if any."""

    device: str
    architecture: str
    identity: dict[str, str]
    seed: int
    rows: tuple[SurveyRow, ...]
    absent: tuple[tuple[str, str], ...]
    seconds: float
    run: str = ""

    def of(self, outcome: SurveyOutcome) -> tuple[SurveyRow, ...]:
        """The rows with this outcome."""
        return tuple(row for row in self.rows if row.outcome == outcome)


def survey_of(
    device: Device,
    seed: int,
    rows: tuple[SurveyRow, ...],
    absent: Sequence[tuple[str, str]] = (),
    seconds: float = 0.0,
    run: str = "",
) -> Survey:
    """A survey of these rows of a device."""
    identity = device.info()
    architecture = identity.get("architecture", "")
    return Survey(device.name, architecture, identity, seed, rows, tuple(absent), seconds, run)


def outcome_of(found: Derivation) -> SurveyOutcome:
    """What a search came to; a device whose answers do not repeat has failed."""
    return "derived" if found.datapath else "inconclusive" if found.again is None else "failed"


def alone(device: Device, instruction: Instruction, derivation: Derivation, seed: int) -> Survey:
    """A survey of one instruction that was derived already."""
    row = SurveyRow(
        instruction,
        outcome_of(derivation),
        derivation.datapath,
        derivation,
        tiles=derivation.tiles,
        launches=derivation.launches,
        seconds=derivation.seconds,
        reason=derivation.reason,
    )
    return survey_of(device, seed, (row,), seconds=derivation.seconds)


def together(surveys: Sequence[Survey]) -> Survey:
    """The rows of several surveys of one device."""
    rows = tuple(row for each in surveys for row in each.rows)
    return replace(surveys[0], rows=rows, seconds=sum(each.seconds for each in surveys))
