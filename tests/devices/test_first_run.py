"""The first run of an instruction on a GPU, in a child process."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices import child
from mmaprobe.devices.gpu import trial as gpu_trial
from mmaprobe.devices.gpu.campaign import LaunchOrder
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.driver import (
    HungError,
    LostError,
    NoChildError,
    OutOfMemoryError,
    StuckError,
    TakenError,
    TooOldError,
)
from mmaprobe.devices.gpu.known_answer import WrongAnswerError
from mmaprobe.devices.gpu.trial import HELLO, ChildTrial, command, serve
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError
from mmaprobe.toolchain.source import Source
from stand_ins import fake_cuda
from stand_ins.fake_cuda import FakeCuda, device, model
from stand_ins.fake_trial import gpu
from stand_ins.vendors import VENDORS, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
BATCH = random_batch(MADE, 21, 1)


@pytest.fixture(params=sorted(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


def forms(vendor: Vendor) -> tuple[Instruction, ...]:
    """Three of a vendor's instructions."""
    return tuple(instruction(name, vendor.architecture) for name in (vendor.signed, vendor.unsigned, vendor.half))


def trial(fault: str) -> ChildTrial:
    script = str(Path(fake_cuda.__file__).with_name("fake_trial.py"))
    return ChildTrial("cuda:0", (sys.executable, script, fault), 60)


def test_the_first_run_is_in_a_child() -> None:
    tried = trial("")
    opened = device(FakeCuda(), tried)
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    opened.run(OTHER, random_batch(OTHER, 2, 1))
    tried._child.stop()
    opened.run(MADE, BATCH)


class Dies:
    """A trial whose child ends as it compiles."""

    def check(self, instruction: Instruction) -> None:
        raise DeviceError("ended by SIGSEGV")

    def check_campaign(self, source: Source, order: LaunchOrder) -> None:
        raise DeviceError("ended by SIGSEGV")


def test_a_compiler_that_dies_does_so_in_the_child() -> None:
    """This process compiles nothing before a child did."""
    opened = GpuDevice(fake_cuda.driver(FakeCuda()), lambda *_: pytest.fail("compiled here"), Dies(), 5)
    with pytest.raises(DeviceError, match="SIGSEGV"):
        opened.run(MADE, BATCH)


class Within:
    """A child without a process: devices, one a start, answer as a child's would."""

    def __init__(self, *devices: object) -> None:
        self.devices, self.running, self.device, self.starts = list(devices), False, None, 0

    def start(self) -> str:
        self.device, self.running = self.devices.pop(0), True
        self.starts += 1
        return f"{HELLO}\n"

    def exchange(self, request: bytes, *, lines: int) -> bytes:
        assert self.running
        answered = StringIO()
        try:
            serve(self.device, self.device.architecture, StringIO(request.decode()), answered)  # type: ignore[attr-defined]
        except SystemExit as end:
            self.running = False
            raise DeviceError(f"ended with exit code {end}") from None
        return answered.getvalue().removeprefix(f"{HELLO}\n").encode()

    def stop(self) -> None:
        self.running = False


def within(*devices: object) -> ChildTrial:
    made = ChildTrial("gpu", ("nobody",), 1)
    made._child = Within(*devices)  # type: ignore[assignment]
    return made


def test_what_one_does_to_its_child_condemns_no_other(vendor: Vendor) -> None:
    """A hang, a crash: it is that instruction's failure, with its class, and the ones after it are well."""
    first, second, third = forms(vendor)
    for kind, raised, said in (("hang", HungError, "hung"), ("die", DeviceError, "ended with exit code 9")):
        tried = within(*(gpu(vendor.scheme, f"{kind} of {second.id}") for _ in range(3)))
        tried.check(first)
        with pytest.raises(DeviceError, match=said) as failed:
            tried.check(second)
        assert type(failed.value) is raised
        tried.check(third)


def test_the_doing_of_a_neighbour_is_no_result(vendor: Vendor) -> None:
    """A child that ran others and then dies is no answer about the one it died in: a fresh one is asked."""
    first, second, third = forms(vendor)
    for fault in ("die", "illegal"):
        tried = within(gpu(vendor.scheme, fault, after=3), gpu(vendor.scheme))
        for made in (first, second, third, first):
            tried.check(made)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("wrong", WrongAnswerError), ("hang", HungError), ("wait", HungError), ("ecc", LostError), ("bus", LostError),
     ("illegal", DeviceError), ("never", DeviceError)],
)  # fmt: skip
def test_the_class_of_an_error_comes_over(vendor: Vendor, fault: str, kind: type[MmaprobeError]) -> None:
    """And the child has ended, whatever it was."""
    tried = within(gpu(vendor.scheme, fault))
    with pytest.raises(kind) as failed:
        tried.check(forms(vendor)[0])
    assert type(failed.value) is kind
    assert not tried._child.running


def test_classes_without_a_launch() -> None:
    """No memory, another process, an old driver: what ends the run ends it."""
    cases: list[tuple[FakeCuda, type[MmaprobeError]]] = [
        (FakeCuda(fault="no memory"), OutOfMemoryError),
        (FakeCuda(mode=3, retain=46), TakenError),
        (FakeCuda(fault="no binary", version=12090), TooOldError),
        (FakeCuda(fault="no binary", version=13000), NotHereError),
    ]
    for cuda, kind in cases:
        with pytest.raises(kind) as failed:
            within(device(cuda)).check(MADE)
        assert type(failed.value) is kind, kind
    with pytest.raises(DeviceError, match=r"it answers 'error Nonsense what\?'"):
        raise gpu_trial._said("error Nonsense what?", "child")


def test_a_gpu_lost_in_the_child_is_lost() -> None:
    """The parent's GPU is the same one: it is not opened again, and no instruction fails for it."""
    opened = device(FakeCuda(), within(device(FakeCuda(fault="ecc"))))
    for made in (MADE, OTHER):
        with pytest.raises(LostError, match=r"uncorrectable ECC error.*the same command with --resume goes on"):
            opened.run(made, random_batch(made, 2, 1))


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
    with pytest.raises(NoChildError, match=r"^nobody: a child process cannot open it: unknown device 'nobody'"):
        ChildTrial("nobody", command("nobody"), 60).check(MADE)


def test_a_child_that_does_not_come_up_is_no_instruction_s_failure() -> None:
    """It says what it is not, it dies at once, or there is none: the run ends."""
    for words in (("import sys; print('hello')"), ("raise SystemExit('no memory for it')")):
        with pytest.raises(NoChildError, match="--resume goes on"):
            ChildTrial("cuda:0", (sys.executable, "-c", words), 60).check(MADE)
    with pytest.raises(NoChildError, match="cannot start /nowhere"):
        ChildTrial("cuda:0", ("/nowhere",), 60).check(MADE)


def test_a_child_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's driver may hold a killed process; waiting for it is bounded, and nothing more is launched."""
    monkeypatch.setattr(child, "_LAST_BREATH", 0.01)
    monkeypatch.setattr("os.killpg", lambda group, number: None)
    silent = (sys.executable, "-c", f"import time; print({HELLO!r}, flush=True); time.sleep(2)")
    with pytest.raises(StuckError, match=r"killed, it has not ended within 0.01 s.*see: ps .*--resume goes on"):
        ChildTrial("cuda:0", silent, 0.5).check(MADE)


def test_a_child_that_says_nothing_hung() -> None:
    silent = (sys.executable, "-c", f"import time; print({HELLO!r}, flush=True); time.sleep(9)")
    with pytest.raises(HungError, match=r"no complete answer within 0.5 s"):
        ChildTrial("cuda:0", silent, 0.5).check(MADE)


@pytest.mark.parametrize("mode", [0, 3])
def test_a_context_is_given_up_where_one_process_alone_may_have_one(mode: int) -> None:
    """Before the answer, since the parent's is next; elsewhere the child keeps it from one instruction to the next."""
    cuda = FakeCuda(mode=mode)

    class Answers(StringIO):
        def write(self, text: str) -> int:
            if text.startswith("ok"):
                assert cuda.references == (mode != 3)
            return super().write(text)

    answered = Answers()
    assert serve(device(cuda), "sm_90a", StringIO(f"{MADE.id}\n{OTHER.id}\nnobody\n{MADE.id}\n"), answered) == 2
    hello, first, second, third = answered.getvalue().splitlines()
    assert (hello, first, second) == (HELLO, "ok 1", "ok 1")
    assert third.startswith("error UsageError unknown instruction 'nobody'")
    assert cuda.contexts == (2 if mode == 3 else 1)


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
