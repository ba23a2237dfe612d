"""Open questions put to devices that fail, contradict themselves or are gone."""

from __future__ import annotations

import pytest

from followers import Follower
from mmaprobe.bringup.claims import from_text
from mmaprobe.bringup.questions import ask
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import match
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu_driver import LostError
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.parameters.lookup import datapath_for


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

    wrong: DeviceError = DeviceError("the kernel hung")

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        raise self.wrong


class Lost(Broken):
    """It is gone."""

    wrong = LostError("the GPU is gone")


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


def test_a_device_that_is_gone_ends_the_questions() -> None:
    instruction = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    with pytest.raises(LostError, match="the GPU is gone"):
        list(ask(Lost(instruction, datapath_for("sm_90a", instruction)), names=["precision-f32-result"]))


@pytest.mark.parametrize(("text", "says"), [
    ("schema = 2\nquestion = []", "schema"),
    ('schema = 1\n[[question]]\nname = "x"\ntopik = "y"', "topik"),
    ('schema = 1\n[[question]]\nname = "x"\ntopic = ""\nasks = ""\nmatters = ""\narchitectures = []\ninstructions = []',
     "two claims"),
])  # fmt: skip
def test_a_wrong_file(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        from_text(text)
