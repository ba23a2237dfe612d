"""The steps ``main`` and ``survey``: what each instruction computes, beside what the shipped file says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.files import FileValue
from mmaprobe.exit_codes import DEVICE_FAILED
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.runs.validating import EACH, validate_up_to
from mmaprobe.survey.comparison import compare
from mmaprobe.survey.rows_json import row_from_json, row_to_json
from mmaprobe.survey.survey_rows import SurveyRow

BRIEF = 10_000_000
"""Vectors of a main form's first validation."""
DERIVING = ("main", "survey")


def derive_main(run: RunState) -> Work:
    """Derive the main forms and validate each briefly."""
    for made in run.sound().main:
        yield from _survey(run, "main", [made])
        for weight in (EACH, BRIEF):
            yield from validate_up_to(run, made, weight, "main")


def survey_all(run: RunState) -> Work:
    """Derive every primitive once, and show the other instructions equal to what is derived."""
    run.begin(sum(made not in run.surveyor.rows for made in run.plan.states))
    for group in run.later(run.surveyor.ordered(run.plan.groups), lambda group: group[0]):
        yield from _survey(run, "survey", group)


def remember(run: RunState) -> None:
    """Take in the rows that an earlier run wrote."""
    known = {made.id: made for group in run.plan.groups for made in group}
    known |= {made.id: made for made in run.device.instructions()}
    for step in DERIVING:
        for name, row in run.result(step).get("rows", {}).items():
            made = known[name]
            if made not in run.surveyor.rows:
                where = FileValue(run.store.path / Path("steps", f"{step}.json"), f"result.rows.{name}", row)
                run.surveyor.keep(row_from_json(made, where))


def _survey(run: RunState, step: str, group: Iterable[Instruction]) -> Work:
    """Derive or recognise a group; its rows, and those of the primitives inside, go into the step's result."""
    states = list(group)
    if all(state in run.surveyor.rows or run.left_out(state) for state in states):
        return
    result = run.result(step)
    rows = result.setdefault("rows", {})
    before = set(run.surveyor.rows)
    with run.asking(states[0]):
        run.surveyor.group(states)
    for made, row in list(run.surveyor.rows.items()):
        if made not in before:
            rows[made.id] = row_to_json(row)
            _keep(run, row)
    result["text"] = _text(rows)
    yield states[0].id


def _keep(run: RunState, row: SurveyRow) -> None:
    """A row as the part of its instruction."""
    made, found = row.instruction, row.derivation
    form = found.form() if found else {"datapath": row_to_json(row)["datapath"], "reason": row.reason}
    run.save(
        made,
        datapath={**form, "outcome": row.outcome, "like": list(row.like), "compared": row.compared},
        comparison=compare(run.architecture, made, row.datapath, run.seed).form(),
        witnesses=found.witnesses if found else (),
    )
    if row.outcome == "failed":
        run.fail(made, row.reason, DEVICE_FAILED)


def _text(rows: dict[str, dict[str, object]]) -> str:
    outcomes = [row["outcome"] for row in rows.values()]
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
