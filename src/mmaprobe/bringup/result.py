"""What the main job found: results by control state, the report over all of them, and their evidence form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmaprobe.bringup.answers import Answer
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import Derivation
from mmaprobe.derivation.comparison import Comparison
from mmaprobe.devices.base import Device
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Part
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.rows import worst
from mmaprobe.validation import Summary


@dataclass(frozen=True)
class Result:
    """What was found of one instruction in one control state, now or before (``resumed``).

    ``form`` is the instruction in whose row it is reported; by default itself in its default control state.
    """

    instruction: Instruction
    datapath: Datapath | None = None
    derivation: Derivation | None = None
    comparison: Comparison | None = None
    summary: Summary | None = None
    seconds: float = 0.0
    error: str = ""
    error_code: int = 0
    resumed: Part | None = None
    form: Instruction | None = None

    @property
    def exit_code(self) -> int:
        """Of this instruction alone; that its datapath is not the shipped one is another matter (``changed``)."""
        if self.error:
            return self.error_code
        if self.resumed is not None:
            return int(self.resumed.validation.get("exit_code", 0))
        codes = [self.summary.exit_code if self.summary is not None else 4]
        if self.derivation is None or self.derivation.datapath is None:
            codes.append(4 if self.derivation is None or self.derivation.again is None else 5)
        return worst(codes)

    @property
    def changed(self) -> bool:
        """Whether a vector tells the derived datapath from the shipped one."""
        if self.comparison is not None:
            return self.comparison.changed
        return bool(self.resumed and self.resumed.comparison and self.resumed.comparison["outcome"] == "changed")


@dataclass(frozen=True)
class Report:
    """Everything a run found; ``out`` holds the evidence."""

    device: Device
    results: tuple[Result, ...]
    absent: tuple[tuple[str, str], ...]
    out: Path
    run: str
    seed: int
    seconds: float
    ended: str = ""  # why the run stopped early, if it did
    interrupted: bool = False
    check: bool = False  # whether a changed datapath is a failure
    steps: tuple[StepRecord, ...] = ()
    failure: int = 0  # exit code of what ended the run early, or of a step that is about no single instruction
    answers: tuple[Answer, ...] = ()  # to the open questions
    notes: tuple[str, ...] = ()

    @property
    def vectors(self) -> int:
        return sum(vectors_of(result) for result in self.results)

    @property
    def mismatches(self) -> int:
        return sum(mismatches_of(result) for result in self.results)

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return 130
        codes = [result.exit_code for result in self.results] or ([] if self.failure else [4])
        codes += [self.failure] if self.failure else []
        return worst([*codes, 1] if self.check and any(result.changed for result in self.results) else codes)


def vectors_of(result: Result) -> int:
    """Vectors compared of one result, in this run or before it was resumed."""
    if result.resumed is not None:
        return result.resumed.vectors
    return result.summary.vectors if result.summary is not None else 0


def mismatches_of(result: Result) -> int:
    """Mismatches of one result, in this run or before it was resumed."""
    if result.resumed is not None:
        return result.resumed.mismatch_count
    return result.summary.mismatches if result.summary is not None else 0


def to_part(result: Result) -> Part:
    """The evidence of one result."""
    done = result.summary is not None and not result.summary.interrupted and not result.error
    derivation = result.derivation
    return Part(
        instruction=result.instruction.id,
        status="finished" if done else "partial",
        findings=tuple(derivation.findings.values()) if derivation else (),
        datapath=derivation.form() if derivation else None,
        comparison=result.comparison.form() if result.comparison else None,
        validation={**(result.summary.form() if result.summary is not None else {}), "exit_code": result.exit_code}
        | ({"error": result.error} if result.error else {}),
        vectors=vectors_of(result),
        mismatch_count=mismatches_of(result),
        mismatches=result.summary.examples if result.summary is not None else (),
        witnesses=derivation.witnesses if derivation else (),
    )
