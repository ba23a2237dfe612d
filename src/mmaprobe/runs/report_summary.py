"""The report as rows for a person: one an instruction, its control states taken together."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import mmaprobe
from mmaprobe.catalog.states import default_state
from mmaprobe.evidence.cell_counts import summed
from mmaprobe.evidence.store import Part
from mmaprobe.exit_codes import INTERRUPTED, MISMATCH, worst
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.report.json import to_json
from mmaprobe.report.mismatches import in_short, part_command, shown_in_row
from mmaprobe.report.run_summary import AGAIN, InstructionRow, RowOutcome, RunSummary, drawn_of, tiled_of
from mmaprobe.report.vectors import vector_text
from mmaprobe.runs.open_questions.answers import answer_to_json
from mmaprobe.runs.result import Report, Result, coverage_of_result, mismatches_of, step_row, vectors_of
from mmaprobe.survey.smoke import drawn_vectors

OUTCOMES: dict[int, RowOutcome] = {
    0: "equal", 1: "mismatch", 3: "failed", 4: "inconclusive", 5: "failed", 6: "unwritten", 70: "internal",
}  # fmt: skip
FEW_PLACES = 4
"""Multiprocessors that a row names one by one; of more their number."""
NOTHING, SPENT = "nothing was compared", "not reached before the run ended"
PARAMETERS = ("changed", "new", "not derived", "equivalent", "same")
"""How states compare with the shipped file; a group is what the first of these that occurs says."""


def summary_of(report: Report) -> RunSummary:
    """The report as the summary that tables, JSON and JUnit are made from."""
    groups = groupby(report.results, key=lambda result: result.row)
    return RunSummary(
        device=report.device.name,
        identity=report.device.info(),
        run=report.run,
        version=mmaprobe.__version__,
        seed=report.seed,
        rows=tuple(row_of(name, list(states), report.out, report.device.name) for name, states in groups),
        not_here=report.absent,
        evidence=str(report.out),
        seconds=report.seconds,
        check=report.check,
        steps=tuple(map(step_row, report.steps)),
        ended=report.ended,
        failure=INTERRUPTED if report.interrupted else report.failure,
        least=report.least,
        unreached=report.unreached,
    )


def document_of(report: Report) -> dict[str, Any]:
    """The report as JSON; of recorded steps with the answers to the open questions."""
    more = {"questions": [answer_to_json(each) for each in report.answers], "notes": list(report.notes)}
    return to_json(summary_of(report)) | (more if report.steps else {})


def row_of(name: str, states: list[Result], out: Path, device: str) -> InstructionRow:
    """The row of an instruction, or a form, with the results of all its states; ``out`` holds its evidence."""
    codes = [state.exit_code for state in states]
    changed = next((state for state in states if state.changed), None)
    outcome = OUTCOMES.get(worst(codes if changed is None else [*codes, MISMATCH]), "inconclusive")
    if outcome == "mismatch" and MISMATCH not in codes:
        outcome = "changed"
    datapath = _datapath(states[0])
    details = ((_detail(state, out, device), state) for state in states)
    text, told = next((pair for pair in details if pair[0]), ("", None))
    return InstructionRow(
        instruction=name if len(states) == 1 else f"{name} ({_counted(states)})",
        outcome=outcome,
        phrases=describe(datapath) if datapath is not None else {},
        vectors=sum(vectors_of(state) for state in states),
        mismatches=sum(mismatches_of(state) for state in states),
        seconds=sum(state.seconds for state in states),
        parameters=next((word for word in PARAMETERS if word in {state.standing for state in states}), ""),
        changes=_changes(changed) if changed is not None else (),
        coverage=summed(map(coverage_of_result, states)),
        drawn=sum(map(_drawn, states)),
        tiled=sum(map(_tiled, states)),
        detail=text,
        shown=_shown(told, out, device) if told is not None else (),
    )


def _drawn(result: Result) -> int:
    """Vectors that generators drew, in this run or before it was resumed."""
    if result.resumed is not None:
        return drawn_of(result.resumed)
    families = result.summary.families if result.summary is not None else ()
    return drawn_vectors((name, count.vectors) for name, count in families)


def _tiled(result: Result) -> int:
    """Vectors that are results of whole tiles."""
    if result.resumed is not None:
        return tiled_of(result.resumed)
    return sum(count.outputs for _, count in result.summary.families) if result.summary is not None else 0


def _counted(states: list[Result]) -> str:
    """How many instructions a row tells of."""
    alike = len({default_state(state.instruction) for state in states})
    return f"{len(states)} control states" if alike == 1 else f"{len(states)} sizes and modifiers"


def _datapath(result: Result) -> Datapath | None:
    if result.datapath is not None or result.resumed is None or not result.resumed.datapath:
        return result.datapath
    table = result.resumed.datapath.get("datapath")
    return from_table(table, f"{result.instruction.id}: datapath") if table else None


def _changes(changed: Result) -> tuple[str, ...]:
    """The fields in which what was derived differs from what is shipped."""
    if changed.comparison is not None:
        return changed.comparison.decisive
    kept = (changed.resumed.comparison if changed.resumed is not None else None) or {}
    return tuple(map(str, kept.get("decisive") or kept.get("differences", ())))


def _detail(result: Result, out: Path, device: str) -> str:
    """Why the result is not plainly equal: the error, the reason, the first mismatch, or the changed parameters."""
    state = result.instruction
    where = "" if state == default_state(state) else f"{state.id}: "
    if result.error:
        return result.error
    if result.resumed is not None:
        return kept_detail(result.resumed, where, out, device)
    if result.summary is not None and result.summary.examples:
        return where + in_short(result.summary.examples[0]) + _again(state.id, out, device)
    if result.summary is not None and not result.summary.vectors:
        return where + (SPENT if result.summary.stopped else NOTHING)
    if result.derivation is not None and result.derivation.datapath is None:
        return f"{where}{result.derivation.reason}"
    if result.comparison is not None and result.comparison.changed:
        proof = result.comparison.witness
        lines = "; ".join(result.comparison.decisive)
        return f"{where}{lines}" + (f"; {vector_text(proof)} gives {proof.d:#x}, {proof.note}" if proof else "")
    return ""


def _shown(result: Result, out: Path, device: str) -> tuple[str, ...]:
    """The lines of the mismatch that ``_detail`` tells of; of another reason none."""
    if result.resumed is not None:
        return () if result.error else kept_shown(result.resumed, out, device)
    if result.error or result.summary is None or not result.summary.examples:
        return ()
    state = result.instruction.id
    return shown_in_row(state, result.summary.examples[0], part_command(out, state, device))


def kept_shown(part: Part, out: Path, device: str) -> tuple[str, ...]:
    """The same of a part that was read."""
    if part.validation.get("error") or not part.mismatches:
        return ()
    again = part_command(out, part.instruction, device)
    return shown_in_row(part.instruction, part.mismatches[0], again, _places(part))


def kept_detail(part: Part, where: str, out: Path, device: str) -> str:
    """Why a part that was read is not plainly equal."""
    if part.validation.get("error"):
        return f"{part.instruction}: {part.validation['error']}" if where else str(part.validation["error"])
    if part.mismatches:
        return where + in_short(part.mismatches[0]) + _places(part) + _again(part.instruction, out, device)
    if part.datapath and not part.datapath.get("datapath"):
        return f"{where}{part.datapath.get('reason') or 'no datapath was derived'}"
    return "" if part.vectors else where + (SPENT if part.validation.get("interrupted") else NOTHING)


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


def _again(instruction: str, out: Path, device: str) -> str:
    return f"{AGAIN}{part_command(out, instruction, device)}"
