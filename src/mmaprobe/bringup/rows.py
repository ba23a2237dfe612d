"""The report as rows for a person: one an instruction, its control states taken together."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

import mmaprobe
from mmaprobe.bringup.answers import answer_to_json
from mmaprobe.bringup.result import Report, Result, mismatches_of, vectors_of
from mmaprobe.catalog.states import default_state
from mmaprobe.evidence.records import Mismatch
from mmaprobe.evidence.store import Part
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.report.json import to_json
from mmaprobe.report.phrases import describe
from mmaprobe.report.rows import InstructionRow, Outcome, StepRow, Summary, worst
from mmaprobe.report.vectors import vector_text

OUTCOMES: dict[int, Outcome] = {
    0: "equal", 1: "mismatch", 3: "failed", 4: "inconclusive", 5: "failed", 6: "unwritten", 70: "internal",
}  # fmt: skip
FEW_PLACES = 4
PARAMETERS = ("changed", "unknown", "not derived", "equivalent", "same")
"""How states compare with the shipped file; a group is what the first of these that occurs says."""


def summary_of(report: Report) -> Summary:
    """The report as the summary that tables, JSON and JUnit are made from."""
    groups = groupby(report.results, key=lambda result: (result.form or default_state(result.instruction)).id)
    return Summary(
        device=report.device.name,
        identity=report.device.info(),
        run=report.run,
        version=mmaprobe.__version__,
        seed=report.seed,
        rows=tuple(_row(name, list(states)) for name, states in groups),
        not_here=report.absent,
        evidence=str(report.out),
        seconds=report.seconds,
        check=report.check,
        steps=tuple(StepRow(step.name, step.status, step.seconds, step.text) for step in report.steps),
        ended=report.ended,
        failure=report.failure,
    )


def document_of(report: Report) -> dict[str, Any]:
    """The report as JSON; of a bring-up with the answers to the open questions."""
    more = {"questions": [answer_to_json(each) for each in report.answers], "notes": list(report.notes)}
    return to_json(summary_of(report)) | (more if report.steps else {})


def _row(name: str, states: list[Result]) -> InstructionRow:
    code = worst([state.exit_code for state in states])
    parameters = _parameters(states)
    outcome = OUTCOMES.get(code, "inconclusive")
    mismatches = sum(mismatches_of(state) for state in states)
    if outcome == "equal" and any(state.changed for state in states):
        outcome = "changed"
    datapath = _datapath(states[0])
    return InstructionRow(
        instruction=name if len(states) == 1 else f"{name} ({_counted(states)})",
        outcome=outcome,
        phrases=describe(datapath) if datapath is not None else {},
        vectors=sum(vectors_of(state) for state in states),
        mismatches=mismatches,
        seconds=sum(state.seconds for state in states),
        parameters=parameters,
        detail=next((text for state in states if (text := _detail(state))), ""),
    )


def _counted(states: list[Result]) -> str:
    """How many instructions a row tells of."""
    alike = len({default_state(state.instruction) for state in states})
    return f"{len(states)} control states" if alike == 1 else f"{len(states)} sizes and modifiers"


def _datapath(result: Result) -> Datapath | None:
    if result.datapath is not None or result.resumed is None or not result.resumed.datapath:
        return result.datapath
    table = result.resumed.datapath.get("datapath")
    return from_table(table) if table else None


def _parameters(states: list[Result]) -> str:
    found = set()
    for state in states:
        if state.comparison is not None:
            found.add(state.comparison.outcome)
        elif state.resumed is not None and state.resumed.comparison:
            found.add(state.resumed.comparison["outcome"])
    return next((outcome for outcome in PARAMETERS if outcome in found), "")


def _detail(result: Result) -> str:
    """Why the result is not plainly equal: the error, the reason, the first mismatch, or the changed parameters."""
    state = result.instruction
    where = "" if state == default_state(state) else f"{state.id}: "
    if result.error:
        return result.error
    if result.resumed is not None:
        return _kept_detail(result.resumed, where)
    if result.summary is not None and result.summary.examples:
        return where + _mismatch(result.summary.examples[0])
    if result.summary is not None and not result.summary.vectors:
        return f"{where}nothing was compared"
    if result.derivation is not None and result.derivation.datapath is None:
        return f"{where}{result.derivation.reason}"
    if result.comparison is not None and result.comparison.changed:
        proof = result.comparison.witness
        lines = "; ".join(result.comparison.lines)
        return f"{where}{lines}" + (f"; {vector_text(proof)} gives {proof.d:#x}, {proof.note}" if proof else "")
    return ""


def _kept_detail(part: Part, where: str) -> str:
    """The same of a part that was read."""
    if part.validation.get("error"):
        return f"{part.instruction}: {part.validation['error']}" if where else str(part.validation["error"])
    if part.mismatches:
        return where + _mismatch(part.mismatches[0]) + _places(part)
    if part.datapath and not part.datapath.get("datapath"):
        return f"{where}{part.datapath.get('reason') or 'no datapath was derived'}"
    if not part.vectors:
        return f"{where}nothing was compared"
    differences = (part.comparison or {}).get("differences", [])
    return where + "; ".join(differences) if differences else ""


def _places(part: Part) -> str:
    """Where a fused campaign found mismatches: the multiprocessors, where they are few."""
    wrong: Counter[str] = Counter()
    called = "multiprocessor"
    for screened in (run.get("multiprocessors", {}) for run in part.validation.get("runs", ())):
        wrong.update(screened.get("wrong", {}))
        called = screened.get("called", called)
    if len(wrong) > FEW_PLACES:
        return f"; on {len(wrong)} {called}s"
    return "".join(f"; {count:,} wrong on {called} {number}" for number, count in sorted(wrong.items()))


def _mismatch(example: Mismatch) -> str:
    vector, expected = example.vector, example.expected
    if example.shrunk is not None and example.shrunk_expected is not None:
        vector, expected = example.shrunk, example.shrunk_expected
    return f"{vector_text(vector)} gives {vector.d:#x}, the model {expected:#x} ({example.recipe})"
