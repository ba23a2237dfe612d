"""Open questions put to devices that fail, contradict themselves or are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import match
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.gpu.driver import HungError, LostError, OutOfMemoryError, StuckError, TakenError
from mmaprobe.devices.gpu.health import VoidError
from mmaprobe.errors import DeviceError, MmaprobeError, UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.runs.open_questions.ask import ask
from mmaprobe.runs.open_questions.claims import from_text
from stand_ins.followers import Follower
from stand_ins.stepping import FEW, MODEL, Changed


def test_a_device_without_the_instruction() -> None:
    hopper = {(a.question, a.status) for a in ask(open_device("model:sm_90a"), names=["cdna3-sum", "step-tf32"])}
    assert hopper == {("cdna3-sum", "not here"), ("step-tf32", "settled")}
    lone = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    device = Follower(lone, datapath_for("sm_90a", lone))
    answers = list(ask(device, names=["f64-order"]))
    assert {answer.status for answer in answers} == {"not here"}
    assert all(f"only {lone.id}" in answer.finding for answer in answers)


class Unsteady(Follower):
    """Its last bit is another one in every second call."""

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        self.calls[0] += 1
        return super().run_vectors(instruction, vectors) ^ (self.calls[0] & 1)

    calls = [0]  # noqa: RUF012


class Broken(Follower):
    """It breaks down."""

    wrong: MmaprobeError = DeviceError("the kernel hung")

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        raise self.wrong


@pytest.mark.parametrize(("kind", "says"), [(Unsteady, "two answers"), (Broken, "the kernel hung")])
@pytest.mark.parametrize("name", ["precision-f32-result", "nan-f32"])
def test_a_device_that_fails(kind: type[Follower], says: str, name: str) -> None:
    instruction = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    device = kind(instruction, datapath_for("sm_90a", instruction))
    (answer,) = (found for found in ask(device, names=[name]) if found.instruction == instruction.id)
    assert answer.status == "failed"
    assert says in answer.finding or "cannot be relied on" in answer.finding or "gave" in answer.finding


@pytest.mark.parametrize("kind", ["zeros", "c"])
def test_a_device_that_does_nothing(kind: str) -> None:
    answers = list(ask(open_device(f"misbehaving:{kind}?of=model:sm_90a"), names=["zero-exponent-f16", "tf32-nan"]))
    assert {answer.status for answer in answers} == {"failed"}
    assert "a plain sum that is 0x3c00 by every claim came out as 0x0" in answers[0].finding


@pytest.mark.parametrize("kind", [LostError, StuckError, TakenError, OutOfMemoryError, VoidError])
def test_a_device_that_answers_nothing_more_ends_the_questions(kind: type[MmaprobeError]) -> None:
    """No question failed: it is the device that is gone, stuck or another's."""
    instruction = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    device = Broken(instruction, datapath_for("sm_90a", instruction))
    device.wrong = kind("the GPU is gone")
    with pytest.raises(kind, match="the GPU is gone"):
        list(ask(device, names=["precision-f32-result"]))


@pytest.mark.parametrize("calls", [0, 5])
def test_a_stuck_device_ends_the_step_and_going_on_asks_the_rest(tmp_path: Path, calls: int) -> None:
    """What hangs is an answer, once; what it kept from being asked is asked by the run that goes on."""

    class Hangs(Changed):
        left, hung = calls, False

        def run_vectors(self, made: Instruction, vectors: Batch) -> Bits:
            if self.hung:
                raise StuckError("cuda:0: a launch that hung still runs")
            self.left, self.hung = self.left - 1, self.left <= 0
            if self.hung:
                raise HungError("cuda:0: hung")
            return run_vectors(self.inner, made, vectors)

    given: dict[str, Any] = FEW | {"out": tmp_path / "e", "steps": ["questions"]}
    report = mmaprobe.bring_up(Hangs(name=MODEL), **given)
    assert (report.exit_code, report.ended) == (5, "cuda:0: a launch that hung still runs")
    (failed,) = (answer for answer in report.answers if answer.status == "failed")
    result = Store.open(tmp_path / "e").steps["questions"].result
    assert set(result["asked"]) <= {answer.question for answer in report.answers}
    again = mmaprobe.bring_up(MODEL, resume=True, **given)
    whole = mmaprobe.bring_up(MODEL, **given | {"out": tmp_path / "w"})
    found, every = ({(each.question, each.instruction) for each in of.answers} for of in (again, whole))
    assert {question for question, _ in found} == {question for question, _ in every}
    assert [answer for answer in again.answers if answer.status == "failed"] == [failed]
    left = f"left out: {failed.finding}"
    assert {answer.finding for answer in again.answers if answer.instruction == failed.instruction} >= {left}
    assert (again.ended, again.exit_code) == ("", 5)


@pytest.mark.parametrize(("text", "says"), [
    ("schema = 2\nquestion = []", "schema"),
    ('schema = 1\n[[question]]\nname = "x"\ntopik = "y"', "topik"),
    ('schema = 1\n[[question]]\nname = "x"\ntopic = ""\nasks = ""\nmatters = ""\narchitectures = []\ninstructions = []',
     "two claims"),
])  # fmt: skip
def test_a_wrong_file(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        from_text(text)
