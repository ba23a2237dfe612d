"""The step ``layouts``: where every form's operands go, at several sizes and every placement."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from mmaprobe.bringup.room import DEVICE_FAILED, Room, Work
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.known_answer import WrongAnswerError
from mmaprobe.evidence.documents import finding_to_json
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.suite import probe_layout_alone


def find_layouts(room: Room) -> Work:
    """Ask the layout of every instruction once; one whose operands are elsewhere is left out of what follows."""
    result = room.result("layouts")
    found = result.setdefault("findings", {})
    for number, made in enumerate(room.plan.asked):
        if made.id in found or room.left_out(made):
            continue
        with room.asking(made):
            finding = _layout(room, made)
            found[made.id] = finding_to_json(finding)
            if finding.status == "contradictory":
                room.save(made, findings=(finding,))
                room.fail(made, f"layout: {finding.text}", DEVICE_FAILED)
        result["text"] = _text(room, number + 1)
        yield made.id


def _layout(room: Room, made: Instruction) -> Finding:
    """The layout as found; where a GPU's known answer already comes out wrong, which operand it is that goes astray."""
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


def _text(room: Room, done: int) -> str:
    statuses = [each["status"] for each in room.result("layouts")["findings"].values()]
    wrong = statuses.count("contradictory")
    return f"{done} of {len(room.plan.asked)} asked, {wrong} wrong" + (
        f", {room.plan.unasked} more do not run here" if room.plan.unasked else ""
    )
