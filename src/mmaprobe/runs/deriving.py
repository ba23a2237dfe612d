"""The steps ``main`` and ``survey``: what each instruction computes, beside what the shipped file says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.files import Field
from mmaprobe.runs.room import DEVICE_FAILED, Room, Work
from mmaprobe.runs.validating import EACH, validate_up_to
from mmaprobe.survey.comparison import compare
from mmaprobe.survey.kept_rows import row_from_json, row_to_json
from mmaprobe.survey.rows import Row

BRIEF = 10_000_000
"""Vectors of a main form's first validation."""
DERIVING = ("main", "survey")


def derive_main(room: Room) -> Work:
    """Derive the main forms and validate each briefly."""
    for made in room.sound().main:
        yield from _survey(room, "main", [made])
        for weight in (EACH, BRIEF):
            yield from validate_up_to(room, made, weight, "main")


def survey_all(room: Room) -> Work:
    """Derive every primitive once, and show the other instructions equal to what is derived."""
    room.begin(sum(made not in room.surveyor.rows for made in room.plan.states))
    for group in room.later(room.surveyor.ordered(room.plan.groups), lambda group: group[0]):
        yield from _survey(room, "survey", group)


def remember(room: Room) -> None:
    """Take in the rows that an earlier run wrote."""
    known = {made.id: made for group in room.plan.groups for made in group}
    known |= {made.id: made for made in room.device.instructions()}
    for step in DERIVING:
        for name, row in room.result(step).get("rows", {}).items():
            made = known[name]
            if made not in room.surveyor.rows:
                where = Field(room.store.path / Path("steps", f"{step}.json"), f"result.rows.{name}", row)
                room.surveyor.keep(row_from_json(made, where))


def _survey(room: Room, step: str, group: Iterable[Instruction]) -> Work:
    """Derive or recognise a group; its rows, and those of the primitives inside, go into the step's result."""
    states = list(group)
    if all(state in room.surveyor.rows or room.left_out(state) for state in states):
        return
    result = room.result(step)
    rows = result.setdefault("rows", {})
    before = set(room.surveyor.rows)
    with room.asking(states[0]):
        room.surveyor.group(states)
    for made, row in list(room.surveyor.rows.items()):
        if made not in before:
            rows[made.id] = row_to_json(row)
            _keep(room, row)
    result["text"] = _text(rows)
    yield states[0].id


def _keep(room: Room, row: Row) -> None:
    """A row as the part of its instruction."""
    made, found = row.instruction, row.derivation
    form = found.form() if found else {"datapath": row_to_json(row)["datapath"], "reason": row.reason}
    room.save(
        made,
        datapath={**form, "outcome": row.outcome, "like": list(row.like), "compared": row.compared},
        comparison=compare(room.architecture, made, row.datapath, room.seed).form(),
        witnesses=found.witnesses if found else (),
    )
    if row.outcome == "failed":
        room.fail(made, row.reason, DEVICE_FAILED)


def _text(rows: dict[str, dict[str, object]]) -> str:
    outcomes = [row["outcome"] for row in rows.values()]
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
