"""The report as rows for a person: one an instruction, its control states taken together."""

from __future__ import annotations

from itertools import groupby

import mmaprobe
from mmaprobe.bringup.result import Report, Result, mismatches_of, vectors_of, worst
from mmaprobe.catalog.states import default_state
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.report.phrases import describe
from mmaprobe.report.rows import InstructionRow, Outcome, Summary
from mmaprobe.report.vectors import vector_text

OUTCOMES: dict[int, Outcome] = {0: "equal", 1: "mismatch", 3: "failed", 4: "inconclusive", 5: "failed", 6: "unwritten"}
PARAMETERS = ("changed", "unknown", "not derived", "equivalent", "same")
"""How states compare with the shipped file; a group is what the first of these that occurs says."""


def summary_of(report: Report) -> Summary:
    """The report as the summary that tables, JSON and JUnit are made from."""
    groups = groupby(report.results, key=lambda result: default_state(result.instruction).id)
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
    )


def _row(name: str, states: list[Result]) -> InstructionRow:
    code = worst([state.exit_code for state in states])
    parameters = _parameters(states)
    outcome = OUTCOMES.get(code, "inconclusive")
    mismatches = sum(mismatches_of(state) for state in states)
    if outcome == "equal" and any(state.changed for state in states):
        outcome = "changed"
    datapath = _datapath(states[0])
    return InstructionRow(
        instruction=name if len(states) == 1 else f"{name} ({len(states)} control states)",
        outcome=outcome,
        phrases=describe(datapath) if datapath is not None else {},
        vectors=sum(vectors_of(state) for state in states),
        mismatches=mismatches,
        seconds=sum(state.seconds for state in states),
        parameters=parameters,
        detail=next((text for state in states if (text := _detail(state))), ""),
    )


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
    if result.summary is not None and result.summary.examples:
        example = result.summary.examples[0]
        vector, expected = example.vector, example.expected
        if example.shrunk is not None and example.shrunk_expected is not None:
            vector, expected = example.shrunk, example.shrunk_expected
        return f"{where}{vector_text(vector)} gives {vector.d:#x}, the model {expected:#x} ({example.recipe})"
    if result.summary is not None and not result.summary.vectors:
        return f"{where}nothing was compared"
    if result.derivation is not None and result.derivation.datapath is None:
        return f"{where}{result.derivation.reason}"
    if result.comparison is not None and result.comparison.changed:
        proof = result.comparison.witness
        lines = "; ".join(result.comparison.lines)
        return f"{where}{lines}" + (f"; {vector_text(proof)} gives {proof.d:#x}, {proof.note}" if proof else "")
    return ""
