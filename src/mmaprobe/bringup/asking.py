"""The steps ``questions`` and ``probes``: what is open, and what every probe finds of each distinct primitive."""

from __future__ import annotations

from mmaprobe.bringup.answers import Answer, answer_from_json, answer_to_json
from mmaprobe.bringup.claims import named
from mmaprobe.bringup.questions import ask, never
from mmaprobe.bringup.room import DEVICE_FAILED, Room, Work
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Serial, Support
from mmaprobe.evidence.files import Field
from mmaprobe.evidence.store import Store
from mmaprobe.probing import probe


class Sound(Serial):
    """The device without the instructions that steps before found unsound."""

    def __init__(self, device: Device, room: Room) -> None:
        super().__init__(device)
        self._room = room

    def supports(self, instruction: Instruction) -> Support:
        """The device's own word; no where the instruction is left out, or not among those of this run."""
        if self._room.left_out(instruction):
            return Support(False, f"left out: {self._room.part(instruction).validation['error']}")
        if instruction.id not in self._room.wanted:
            return Support(False, "not among the instructions of this run")
        return super().supports(instruction)


def ask_questions(room: Room) -> Work:
    """Put every open question to the device; one that a slice cut short is asked again, to its end.

    Claims change what was derived so far, and what questions before have settled.
    """
    result = room.result("questions")
    believed = {made.id: row.datapath for made, row in room.surveyor.rows.items() if row.datapath is not None}
    answers, asked = result.setdefault("answers", []), result.setdefault("asked", [])
    cut: set[str] = set()
    for question in named(()):
        while question.name not in asked:
            whole = question.name in cut
            stop = never if whole else room.late
            sound = Sound(room.device, room)
            found = list(ask(sound, seed=room.seed, stop=stop, names=[question.name], believed=believed))
            if room.late() and not whole:
                cut.add(question.name)
                yield f"{question.name}: begun"
                continue
            answers += [answer_to_json(each) for each in found]
            asked.append(question.name)
            _say(room, found)
            yield question.name


def _say(room: Room, found: list[Answer]) -> None:
    result = room.result("questions")
    statuses = [each["status"] for each in result["answers"]]
    words = [f"{statuses.count(word)} {word}" for word in ("settled", "open", "failed", "not here") if word in statuses]
    result["text"] = ", ".join(words)
    if any(each.status == "failed" for each in found):
        result["exit_code"] = DEVICE_FAILED


def answers_of(store: Store) -> list[Answer]:
    """The answers that a run has so far."""
    step = store.steps.get("questions")
    kept = step.result.get("answers", []) if step is not None else []
    where = store.path / "steps" / "questions.json"
    return [answer_from_json(Field(where, f"result.answers[{number}]", each)) for number, each in enumerate(kept)]


def probe_primitives(room: Room) -> Work:
    """Every question of the probe suite, to an instruction of each distinct primitive."""
    result = room.result("probes")
    asked, primitives = result.setdefault("asked", []), room.sound().primitives
    for made in primitives:
        if made.id in asked or room.left_out(made):
            continue
        with room.asking(made):
            found = probe(room.device, made, seed=room.seed)
            room.save(made, findings=tuple(found.values()))
            asked.append(made.id)
            wrong = next((each for each in found.values() if each.status == "contradictory"), None)
            if wrong is not None:
                room.fail(made, f"{wrong.question}: {wrong.text}", DEVICE_FAILED)
        result["text"] = f"{len(asked)} of {len(primitives)} primitives"
        yield made.id
