"""The first run of an instruction on a GPU, in a child process."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest

import fake_cuda
from emulator.batches import random_batch
from fake_cuda import FakeCuda, device, model
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu_trial import ChildTrial, command, serve
from mmaprobe.errors import DeviceError

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
BATCH = random_batch(MADE, 21, 1)


def trial(fault: str, seconds: float = 60) -> ChildTrial:
    command = (sys.executable, str(Path(fake_cuda.__file__).with_name("fake_trial.py")), fault)
    return ChildTrial("cuda:0", command, seconds)


def test_the_first_run_is_in_a_child() -> None:
    tried = trial("")
    opened = device(FakeCuda(), tried)
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    opened.run(OTHER, random_batch(OTHER, 2, 1))
    tried._child.stop()
    opened.run(MADE, BATCH)


FIRST = {
    "wrong": "first run in a child process: .*wrong known answer before the batch",
    "hang": "first run in a child process: .*hung",
    "die": "in a child: .*ended with exit code 9",
}


@pytest.mark.parametrize("fault", FIRST)
def test_a_first_run_that_fails_never_reaches_this_process(fault: str) -> None:
    cuda = FakeCuda()
    opened = device(cuda, trial(fault))
    with pytest.raises(DeviceError, match=FIRST[fault]):
        opened.run(MADE, BATCH)
    assert not cuda.launches


def test_the_real_child_tries_a_device_by_name() -> None:
    """The command that ``cuda:N`` starts, on a device that is here, and one that is not."""
    ChildTrial("the model", command("model:sm_90a"), 60).check(MADE)
    with pytest.raises(DeviceError, match=r"its first run on nobody, in a child: .*unknown device 'nobody'"):
        ChildTrial("nobody", command("nobody"), 60).check(MADE)


def test_the_child_answers_when_its_context_is_gone() -> None:
    cuda = FakeCuda()

    class Answers(StringIO):
        def write(self, text: str) -> int:
            assert cuda.references == 0
            return super().write(text)

    answered = Answers()
    serve(device(cuda), "sm_90a", StringIO(f"{MADE.id}\nnobody\n{OTHER.id}\n"), answered)
    hello, first, second, third = answered.getvalue().splitlines()
    assert (hello, first, third) == ("mmaprobe-trial", "ok 1", "ok 1")
    assert second.startswith("error 2 unknown instruction 'nobody'")
    assert cuda.contexts == 2


def test_the_child_has_an_exclusive_gpu_to_itself() -> None:
    cuda = FakeCuda(mode=3)

    class Watch:
        def check(self, instruction: Instruction) -> None:
            assert cuda.references == 0
            tried.append(instruction)

    tried: list[Instruction] = []
    opened = device(cuda, Watch())
    for made in (MADE, OTHER, MADE):
        opened.run(made, random_batch(made, 2, 1))
    assert tried == [MADE, OTHER]
    assert cuda.contexts == 2
