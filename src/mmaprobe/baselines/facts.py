"""What a run says, in the words in which two runs are compared: of each instruction, and of each open question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.records_json import finding_from_json
from mmaprobe.evidence.store import MANIFEST, Header, Part, Store, step_name
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INCONCLUSIVE, MISMATCH
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.report.tables.evidence import CPU

OUTCOMES = {EQUAL: "equal", MISMATCH: "mismatch", INCONCLUSIVE: "inconclusive", DEVICE_FAILED: "failed"}
"""What the exit code of a part says of its instruction; any other one is a failure, too."""
LAYOUT = "layout"


@dataclass(frozen=True)
class InstructionFacts:
    """What a run says of one instruction: ``made`` is None where no catalog knows it any more.

    ``datapath`` is what was derived, ``asked`` whether anything was; ``lowered`` are the primitives whose datapaths it
    was found to be made of.
    """

    part: Part
    made: Instruction | None
    datapath: Datapath | None
    layout: Finding | None
    lowered: tuple[str, ...]

    @property
    def asked(self) -> bool:
        return self.part.datapath is not None

    @property
    def outcome(self) -> str:
        """What its counts make of it."""
        return OUTCOMES.get(self.part.exit_code, OUTCOMES[DEVICE_FAILED])

    @property
    def reason(self) -> str:
        """Why it is not equal, as far as the evidence says."""
        said = self.part.validation.get("error") or (self.part.datapath or {}).get("reason")
        return str(said or "")

    @cached_property
    def witnesses(self) -> tuple[Witness, ...]:
        """The vectors that were kept since they tell near datapaths apart, with the device's answers."""
        return (*self.part.witnesses, *(each for finding in self.part.findings for each in finding.witnesses))

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        return self.part.mismatches


@dataclass(frozen=True)
class AnswerFacts:
    """What a run says to one open question of one instruction."""

    question: str
    instruction: str
    status: str
    claim: str
    finding: str

    @property
    def meaning(self) -> tuple[str, str]:
        """What is compared: the status with the claim that holds, or what was found where none does."""
        return self.status, self.claim or (self.finding if self.status == "settled" else "")

    def __str__(self) -> str:
        said = " ".join(filter(None, (self.claim, f"({self.finding})" if self.claim else self.finding)))
        return f"{self.status}: {said}" if said else self.status


@dataclass(frozen=True)
class RunFacts:
    """Everything of a run that is compared; the instructions of a bring-up's CPU are among them."""

    header: Header
    settled: bool
    instructions: Mapping[str, InstructionFacts] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], AnswerFacts] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Run, device and time in a line."""
        begun = self.header.execution.get("begun", "at an unknown time")
        text = f"run {self.header.run} of {self.header.device}, {begun}"
        return text if self.settled else f"{text}, not finished"


def facts_of(store: Store) -> RunFacts:
    """What an evidence folder says; UsageError where a part's datapath, or a step's result, is none."""
    found = {name: _instruction(store, part) for name, part in store.parts.items()}
    inner = store.path / CPU
    if (inner / MANIFEST).exists():
        found |= facts_of(Store.open(inner)).instructions
    answers = {(each.question, each.instruction): each for each in _answers(store)}
    return RunFacts(store.header, store.settled, found, answers)


def _instruction(store: Store, part: Part) -> InstructionFacts:
    architecture, form = store.header.identity.get("architecture", ""), part.datapath or {}
    table = form.get("datapath")
    datapath = from_table(table, f"{store.path}: {part.instruction}") if table else None
    lowered = tuple(sorted(_lowered(part.instruction, form, architecture))) if "outcome" in form else ()
    return InstructionFacts(part, known(part.instruction, architecture), datapath, _layout(store, part), lowered)


def known(name: str, architecture: str) -> Instruction | None:
    """The instruction of an id; None where the catalog has none."""
    try:
        return lookup(name, architecture or None)
    except UsageError:
        return None


def _lowered(name: str, form: Mapping[str, Any], architecture: str) -> set[str]:
    """The primitives of the instructions whose datapath it has, itself where it was derived alone."""
    found: set[str] = set()
    for each in form.get("like") or (name,):
        made = known(str(each), architecture)
        try:
            found |= {str(each)} if made is None else set(lowering(made, architecture).primitives)
        except UsageError:
            found.add(str(each))
    return found


def _layout(store: Store, part: Part) -> Finding | None:
    kept = _result(store, "layouts", "findings")
    if kept is not None and part.instruction in kept.typed(dict):
        return finding_from_json(kept[part.instruction])
    return next((finding for finding in part.findings if finding.question == LAYOUT), None)


def _answers(store: Store) -> Iterator[AnswerFacts]:
    for given in _result(store, "questions", "answers") or ():
        yield AnswerFacts(*(given[key].text for key in ("question", "instruction", "status", "claim", "finding")))


def _result(store: Store, step: str, key: str) -> FileValue | None:
    """What a step found under a key; None where it was not taken, or found nothing yet."""
    record = store.steps.get(step)
    if record is None or key not in record.result:
        return None
    return FileValue(store.path / step_name(step), f"result.{key}", record.result[key])
