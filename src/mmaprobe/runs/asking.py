"""The steps ``questions`` and ``probes``: what is open, and what every probe finds of each distinct primitive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.devices.base import Device, Serial, Support
from mmaprobe.devices.gpu.driver import StuckError
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.store import Store
from mmaprobe.exit_codes import DEVICE_FAILED
from mmaprobe.probing import probe
from mmaprobe.runs.open_questions.answers import Answer, answer_from_json, answer_to_json
from mmaprobe.runs.open_questions.ask import ask, never
from mmaprobe.runs.open_questions.claims import named
from mmaprobe.runs.run_state import RunState, Work


class Sound(Serial):
    """The device without the instructions that steps before found unsound."""

    def __init__(self, device: Device, run: RunState) -> None:
        super().__init__(device)
        self._room = run

    def supports(self, instruction: Instruction) -> Support:
        """The device's own word; no where the instruction is left out, or not among those of this run."""
        if self._room.left_out(instruction):
            return Support(False, f"left out: {self._room.part(instruction).validation['error']}")
        if instruction.id not in self._room.wanted:
            return Support(False, "not among the instructions of this run")
        return super().supports(instruction)


def ask_questions(run: RunState) -> Work:
    """Put every open question to the device; one that a slice cut short is asked again, to its end.

    Each answer is kept as it comes: where the device answers nothing more, those after it are asked by a later run,
    and the one that broke it is not.  Claims change what was derived so far, and what questions before have settled.
    """
    result = run.result("questions")
    believed = {made.id: row.datapath for made, row in run.surveyor.rows.items() if row.datapath is not None}
    answers, asked = result.setdefault("answers", []), result.setdefault("asked", [])
    cut: set[str] = set()
    for question in named(()):
        while question.name not in asked:
            whole = question.name in cut
            known = {(each["question"], each["instruction"]) for each in answers}
            found = ask(Sound(run.device, run), seed=run.seed, stop=never if whole else run.late,
                        names=[question.name], believed=believed, known=known)  # fmt: skip
            with _blaming(run, answers):
                for answer in found:
                    if run.late() and not whole and answer.status != "failed":
                        break
                    answers.append(answer_to_json(answer))
                    _say(result, answer)
            if run.late() and not whole:
                cut.add(question.name)
                yield f"{question.name}: begun"
                continue
            asked.append(question.name)
            yield question.name


@contextmanager
def _blaming(run: RunState, answers: list[dict[str, Any]]) -> Iterator[None]:
    """Where the device is stuck since an instruction failed, the last that was asked, this is left out from then on."""
    try:
        yield
    except StuckError:
        last = next((each for each in reversed(answers) if each["status"] != "not here"), None)
        if last is not None and last["status"] == "failed":
            run.fail(lookup(last["instruction"], run.architecture), last["finding"], DEVICE_FAILED)
        raise


def _say(result: dict[str, Any], answer: Answer) -> None:
    statuses = [each["status"] for each in result["answers"]]
    words = [f"{statuses.count(word)} {word}" for word in ("settled", "open", "failed", "not here") if word in statuses]
    result["text"] = ", ".join(words)


def answers_of(store: Store) -> list[Answer]:
    """The answers that a run has so far."""
    step = store.steps.get("questions")
    kept = step.result.get("answers", []) if step is not None else []
    where = store.path / "steps" / "questions.json"
    return [answer_from_json(FileValue(where, f"result.answers[{number}]", each)) for number, each in enumerate(kept)]


def probe_primitives(run: RunState) -> Work:
    """Every question of the probe suite, to an instruction of each distinct primitive."""
    result = run.result("probes")
    asked, primitives = result.setdefault("asked", []), run.sound().primitives
    for made in primitives:
        if made.id in asked or run.left_out(made):
            continue
        with run.asking(made):
            found = probe(run.device, made, seed=run.seed)
            run.save(made, findings=tuple(found.values()))
            asked.append(made.id)
            wrong = next((each for each in found.values() if each.status == "contradictory"), None)
            if wrong is not None:
                run.flag(made, f"{wrong.question}: {wrong.text}")
        result["text"] = f"{len(asked)} of {len(primitives)} primitives"
        yield made.id
