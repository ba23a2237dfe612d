"""What a run found: results by control state, the report over all of them, and their evidence form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state
from mmaprobe.derivation import Derivation
from mmaprobe.devices.base import Device
from mmaprobe.evidence.cell_counts import NO_CELLS, CellCounts, coverage_of
from mmaprobe.evidence.records import Finding
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Part
from mmaprobe.exit_codes import DEVICE_FAILED, INCONCLUSIVE, INTERRUPTED, MISMATCH, demand_codes, run_code, worst
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.run_summary import EXIT_CODES, NEW, PRODUCT, StepRow, verdicts_of
from mmaprobe.runs.open_questions.answers import Answer
from mmaprobe.showing import Row, Showing, counted, counted_states, mismatches_in
from mmaprobe.survey.comparison import Comparison
from mmaprobe.validation import Summary


@dataclass(frozen=True, repr=False)
class Result(Showing):
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
    findings: tuple[Finding, ...] = ()  # of probes after which nothing was derived
    resumed: Part | None = None
    form: Instruction | None = None

    def in_a_line(self) -> str:
        """What was derived and compared of it."""
        derived = self.derivation.status if self.derivation is not None else "not derived"
        counts = mismatches_in(mismatches_of(self), vectors_of(self))
        return f"result {self.instruction.id}: {self.error or derived}, {counts}"

    def as_row(self) -> Row:
        """The derivation's outcome, and the counts."""
        derived = self.derivation.status if self.derivation is not None else None
        counts = {"vectors": vectors_of(self), "mismatches": mismatches_of(self)}
        said = {"derived": derived, "beside_shipped": self.standing, "error": self.error}
        return {"instruction": self.instruction.id, **counts, **said}

    @property
    def exit_code(self) -> int:
        """Of its vectors and derivation alone; that its datapath is not the shipped one is another matter
        (``changed``)."""
        if self.error:
            return self.error_code
        if self.resumed is not None:
            return self.resumed.exit_code
        codes = [self.summary.exit_code if self.summary is not None else INCONCLUSIVE]
        if self.derivation is None or self.derivation.datapath is None:
            doubtful = self.derivation is None or self.derivation.again is None
            codes.append(INCONCLUSIVE if doubtful else DEVICE_FAILED)
        return worst(codes)

    @property
    def changed(self) -> bool:
        """Whether a vector tells the derived datapath from the shipped one."""
        return self.standing == "changed"

    @property
    def standing(self) -> str:
        """How what was derived stands to what is shipped; empty where nobody compared them."""
        if self.comparison is not None:
            return self.comparison.outcome
        kept = self.resumed.comparison if self.resumed is not None else None
        return str(kept["outcome"]) if kept else ""

    @property
    def row(self) -> str:
        """The id of the instruction in whose row it is reported."""
        return (self.form or default_state(self.instruction)).id


@dataclass(frozen=True, repr=False)
class Report(Showing):
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
    check: bool = False  # whether what is new, or missing without a reason, is a failure
    least: int = 0  # instructions that must be compared
    unreached: int = 0  # instructions and control states below the run's minimum of vectors when the budget was spent
    steps: tuple[StepRecord, ...] = ()
    failure: int = 0  # exit code of what ended the run early, or of a step that is about no single instruction
    answers: tuple[Answer, ...] = ()  # to the open questions
    notes: tuple[str, ...] = ()

    def in_a_line(self) -> str:
        """The device, the counts, and where the evidence is."""
        counts = f"{counted(len(self.results), 'result')}, {mismatches_in(self.mismatches, self.vectors)}"
        return f"run of {self.device.name}: {counts}, exit code {self.exit_code}; evidence in {self.out}"

    def as_row(self) -> Row:
        """The counts."""
        counts = {"vectors": self.vectors, "mismatches": self.mismatches, "exit_code": self.exit_code}
        return {"device": self.device.name, "run": self.run, "seed": self.seed, **counts, "out": str(self.out)}

    def as_rows(self) -> list[Row]:
        """A row for each result."""
        return [result.as_row() for result in self.results]

    @property
    def vectors(self) -> int:
        return sum(vectors_of(result) for result in self.results)

    @property
    def mismatches(self) -> int:
        return sum(mismatches_of(result) for result in self.results)

    @property
    def exit_code(self) -> int:
        """The first of 70, 5, 1, 6, 4, 3, 0; 130 for an interrupt."""
        codes = {result.exit_code for result in self.results} | {MISMATCH for result in self.results if result.changed}
        codes |= demand_codes(
            changed=any(result.standing == NEW for result in self.results) or not all(why for _, why in self.absent),
            check=self.check,
            least=self.least,
            compared=len({result.row for result in self.results if vectors_of(result)}),
            unreached=self.unreached,
        )
        held = verdicts_of(map(step_row, self.steps))
        failure = INTERRUPTED if self.interrupted else self.failure
        return run_code(codes | held, self.vectors + len(held), failure, bool(self.absent))


def cpu_codes(steps: Mapping[str, StepRecord]) -> list[int]:
    """The exit codes that the CPU's instructions make, from their counts and outcomes."""
    rows = steps["cpu"].result.get("summary", {}).get("instructions", []) if "cpu" in steps else []
    return [MISMATCH if row["mismatches"] else EXIT_CODES[row["outcome"]] for row in rows]


def step_row(step: StepRecord) -> StepRow:
    """The row of a step; of ``product`` with the exit code of its verdict."""
    code = step.result.get("exit_code") if step.name == PRODUCT else None
    return StepRow(step.name, step.status, step.seconds, step.text, code)


def spent(unreached: int, chosen: int, minimum: int) -> str:
    """That a budget was spent, and whether what must be compared was."""
    if not unreached:
        each = "the instruction" if chosen == 1 else f"each of {counted_states(chosen)}"
        return f"the budget was spent; {each} had its least {counted(minimum, 'vector')}"
    return f"the budget was spent; {unreached} of {counted_states(chosen)} had less than {counted(minimum, 'vector')}"


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


def coverage_of_result(result: Result) -> CellCounts:
    """The cells that the vectors of one result reached, in this run or before it was resumed."""
    if result.resumed is not None:
        return coverage_of(result.resumed.validation)
    return result.summary.coverage if result.summary is not None else NO_CELLS


def to_part(result: Result) -> Part:
    """The evidence of one result."""
    done = result.summary is not None and not result.summary.interrupted and not result.error
    derivation = result.derivation
    return Part(
        instruction=result.instruction.id,
        status="finished" if done else "partial",
        findings=tuple(derivation.findings.values()) if derivation else result.findings,
        datapath=derivation.form() if derivation else None,
        comparison=result.comparison.form() if result.comparison else None,
        validation=(result.summary.form() if result.summary is not None else {})
        | ({"error": result.error, "error_code": result.error_code} if result.error else {}),
        vectors=vectors_of(result),
        mismatch_count=mismatches_of(result),
        mismatches=result.summary.examples if result.summary is not None else (),
        witnesses=derivation.witnesses if derivation else (),
    )
