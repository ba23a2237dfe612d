"""The step ``layouts``: where every form's operands go, at several sizes and every placement; open ones settled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.known_answer import WrongAnswerError
from mmaprobe.evidence.documents import finding_to_json
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.suite import probe_layout_alone
from mmaprobe.runs.room import DEVICE_FAILED, INCONCLUSIVE, Room, Work
from mmaprobe.survey.layouts import Settles, settle, unsettled


def find_layouts(room: Room) -> Work:
    """Ask the layout of every instruction once; one whose operands are elsewhere is left out of what follows."""
    result = room.result("layouts")
    found = result.setdefault("findings", {})
    for number, made in enumerate(room.later(room.plan.asked, lambda made: made)):
        if made.id in found or room.left_out(made):
            continue
        with room.asking(made):
            finding = _layout(room, made)
            found[made.id] = finding_to_json(finding)
            if finding.status == "contradictory":
                room.save(made, findings=(finding,))
                room.fail(made, f"layout: {finding.text}", DEVICE_FAILED)
            elif finding.status == "inconclusive" and unsettled(room.device, made):
                room.fail(made, f"layout: {finding.text}", INCONCLUSIVE)
        result["text"] = _text(room, number + 1)
        yield made.id


def recall(room: Room) -> None:
    """Take in what earlier slices, or runs, of the step ``layouts`` settled."""
    if not isinstance(room.device, Settles):
        return
    known = {made.id: made for made in room.plan.asked}
    for name, finding in _findings(room).items():
        answer = finding["answer"]
        if name in known and isinstance(answer, dict) and answer.get("claim"):
            room.device.layouts.settle(known[name], answer["claim"])


def _layout(room: Room, made: Instruction) -> Finding:
    """The layout as found; where a GPU's known answer already comes out wrong, which operand it is that goes astray."""
    if unsettled(room.device, made):
        return settle(room.device, made, room.seed)
    try:
        return probe_layout_alone(room.device, made, room.seed)
    except WrongAnswerError:
        unproven: Callable[[], AbstractContextManager[None]] | None = getattr(room.device, "unproven", None)
        if unproven is None:
            raise
        with unproven():
            finding = probe_layout_alone(room.device, made, room.seed)
        if finding.status != "contradictory":
            raise
        return finding


def _findings(room: Room) -> dict[str, Any]:
    found: dict[str, Any] = room.result("layouts").get("findings", {})
    return found


def _text(room: Room, done: int) -> str:
    statuses = [each["status"] for each in _findings(room).values()]
    wrong = statuses.count("contradictory")
    settled = sum(
        "claim" in (each["answer"] or ()) and each["status"] == "bounded" for each in _findings(room).values()
    )
    said = [f"{done} of {len(room.plan.asked)} asked, {wrong} wrong"]
    said += [f"{settled} open ones settled"] * bool(settled)
    said += [f"{room.plan.unasked} more do not run here"] * bool(room.plan.unasked)
    return ", ".join(said)
