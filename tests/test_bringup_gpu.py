"""``mmaprobe run --device cuda:0 --pack``, whole, on a stand-in GPU: what goes well, and each end it can come to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_cuda import model
from fake_machine import FakeNvml
from mmaprobe.bringup.stepwise import STEPS
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.store import Store
from mmaprobe.validation import fused, stream
from standin_gpu import Lies, Seed, StandIn, pack, plugged

SIGNED = "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"
UNSIGNED = "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
BOTH = "mma.m16n8k16.s32.[su]8.s8.s32"
"""Two instructions that are soon derived."""
VECTORS = 2000
LATER = 10
"""A launch of the step after the layout, which takes three of them: a known answer, a batch, another known answer."""


class Run:
    """A pack of some instructions, an evidence folder, and the command line on a stand-in."""

    def __init__(self, folder: Path, names: tuple[str, ...] = (SIGNED,), **seeds: tuple[Seed, ...]) -> None:
        self.pack, self.out = folder / "pack", folder / "evidence"
        pack(self.pack, names, {{"signed": SIGNED, "unsigned": UNSIGNED}[key]: seed for key, seed in seeds.items()})

    def __call__(
        self,
        cuda: StandIn,
        *more: str,
        nvml: FakeNvml | None = None,
        glob: str = SIGNED,
        steps: str = "layouts,survey,validation",
        vectors: int = VECTORS,
        trial: str = "no",
        child: str = "",
    ) -> int:
        words = [
            "run",
            "--steps",
            steps,
            "--device",
            f"cuda:0?trial={trial}",
            "--pack",
            str(self.pack),
            "--out",
            str(self.out),
        ]
        words += ["--instruction", glob, "--vectors", str(vectors), *more]
        with plugged(cuda, nvml, child):
            return main(words)

    @property
    def store(self) -> Store:
        return Store.open(self.out)

    def statuses(self) -> dict[str, str]:
        return {name: step.status for name, step in self.store.steps.items()}

    def notes(self) -> list[str]:
        return [note for step in self.store.steps.values() for each in step.slices for note in each.notes]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def at(launch: int, does: Callable[[], Any]) -> dict[int, Callable[[], Any]]:
    return {launch: does}


def breaks(cuda: StandIn, launch: int, fault: str) -> StandIn:
    """The GPU has a fault from a launch on."""
    cuda.events = at(launch, lambda: setattr(cuda, "fault", fault))
    return cuda


def test_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the pack to parameters: every step finished, exit code 0; going on does nothing twice."""
    run, nvml = Run(tmp_path), FakeNvml()
    nvml.processes = {4242: ("train", 1 << 30)}
    assert run(StandIn(), "--json", nvml=nvml, steps="all") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(step["name"], step["status"]) for step in found["steps"]] == [(each.name, "finished") for each in STEPS]
    parts = run.store.parts
    assert set(parts) == {SIGNED}
    assert {part.vectors for part in parts.values()} == {VECTORS}
    assert {part.comparison["outcome"] for part in parts.values()} <= {"same", "equivalent"}
    assert run.notes() == ["cuda:0: another process uses the GPU: pid 4242 (train, 1024 MiB)"]
    assert run.store.header.identity["driver"] == "580.65.06"


# Ends, and going on


def test_a_killed_run_goes_on(run: Run) -> None:
    """The process ends at once, in the middle of a launch; what was written is whole and is not asked again."""
    child = os.fork()
    if not child:
        run(StandIn(events=at(LATER, lambda: os._exit(9))))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert run.statuses() == {"layouts": "finished"}
    assert run(StandIn(), "--resume") == 0
    assert run.store.parts[SIGNED].vectors == VECTORS
    assert len(run.store.steps["layouts"].slices) == 1


def test_a_spent_budget_goes_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(StandIn(), "--budget", "0") == 4
    assert "the budget was spent" in capsys.readouterr().out
    assert run.store.parts == {}
    assert run(StandIn(), "--resume") == 0


def test_a_gpu_that_goes_away_mid_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5 and the command to type; the step before is whole; on a GPU that is back the run goes on."""
    assert run(breaks(StandIn(), LATER, "bus")) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "the device is lost" in said
    assert "once the GPU is back, the same command with --resume goes on" in said
    assert (run.statuses()["layouts"], run.statuses()["survey"]) == ("finished", "partial")
    assert any("the device is lost" in note for note in run.notes())
    assert run(StandIn(), "--resume") == 0
    assert [len(step.slices) for step in run.store.steps.values()] == [1, 2, 1]


def test_a_launch_that_hangs_and_goes_on_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is this instruction's failure and the end of this run, but not the other instruction's failure."""
    run = Run(tmp_path, (SIGNED, UNSIGNED))
    assert run(breaks(StandIn(), LATER, "hang"), glob=BOTH, trial="no&timeout=0.05") == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "a launch that hung still runs; end this process" in said
    assert "then the same command with --resume goes on" in said
    assert "did not end within 0.05 s" in run.store.parts[SIGNED].validation["error"]
    assert UNSIGNED not in run.store.parts
    assert run(StandIn(), "--resume", glob=BOTH) == 5
    assert "did not end within 0.05 s" in failed(run, SIGNED)


def test_another_process_takes_the_memory(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No instruction is to blame: once there is room again the run goes on."""
    cuda = StandIn()
    cuda.events = at(LATER, lambda: setattr(cuda, "memory", 0))
    assert run(cuda) == 5
    assert "out of memory; see who holds it: nvidia-smi" in " ".join(capsys.readouterr().out.split())
    assert run.statuses() == {"layouts": "finished", "survey": "partial"}
    assert run(StandIn(), "--resume") == 0


def test_another_process_takes_the_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the start; or after one instruction's failure, when the context was given up."""
    before = Run(tmp_path / "before")
    assert before(StandIn(mode=3, retain=46)) == 3
    assert before(StandIn(), "--resume") == 0
    run, cuda = Run(tmp_path, (SIGNED, UNSIGNED)), StandIn(mode=3)

    def taken() -> None:
        cuda.fault, cuda.retain = "refused", 46

    cuda.events = at(LATER, taken)
    assert run(cuda, glob=BOTH) == 5, "of an instruction that failed and a GPU that is not there any more"
    said = " ".join(capsys.readouterr().out.split())
    assert "Exclusive_Process, and another process has the GPU; see: nvidia-smi" in said
    assert (run.statuses()["layouts"], set(run.store.parts)) == ("finished", {SIGNED})


def test_errors_of_memory_mid_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The answers look right and are thrown away; a later run finds them anew."""
    nvml = FakeNvml()
    assert run(StandIn(events=at(LATER, lambda: nvml.errors.update(UNCORRECTED=1))), nvml=nvml) == 5
    assert "uncorrected ECC errors rose by 1" in " ".join(capsys.readouterr().out.split())
    assert (run.statuses()["survey"], run.store.parts) == ("partial", {})
    assert run.store.steps["survey"].slices[0].after["uncorrected"] == 1
    assert run(StandIn(), "--resume", nvml=FakeNvml()) == 0


def test_what_happens_beside_the_run_is_in_its_evidence(run: Run) -> None:
    nvml = FakeNvml()
    nvml.processes = {os.getpid(): ("python3", 1 << 30)}

    def happens() -> None:
        nvml.errors["CORRECTED"] += 2
        nvml.clocks["SM"], nvml.reasons = 1200, 0x40
        nvml.processes[4242] = ("train", 1 << 30)

    assert run(StandIn(events=at(LATER, happens)), nvml=nvml) == 0
    assert run.notes() == [
        "cuda:0: corrected ECC errors rose by 2, to 5",
        "cuda:0: clocks: SM 1980 -> 1200 MHz; held down by hw_thermal_slowdown",
        "cuda:0: another process uses the GPU now: pid 4242 (train, 1024 MiB)",
    ]


def test_another_driver_or_gpu_does_not_go_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(StandIn(), "--budget", "0", nvml=FakeNvml())
    other = FakeNvml()
    other.driver = "595.10"
    assert run(StandIn(), "--resume", nvml=other) == 2
    assert "begun with another identity: driver was 580.65.06, is now 595.10; start anew" in capsys.readouterr().err
    assert run(StandIn(name=b"NVIDIA H100"), "--resume", nvml=FakeNvml()) == 2
    assert "model_name was NVIDIA H200, is now NVIDIA H100" in capsys.readouterr().err
    shutil.rmtree(run.pack)
    pack(run.pack, (SIGNED,), toolchain="NVRTC 13.5")
    assert run(StandIn(), "--resume", nvml=FakeNvml()) == 2
    assert "another toolchain: kernels was NVRTC 13.0, is now NVRTC 13.5" in capsys.readouterr().err


# What is wrong with one instruction


def failed(run: Run, name: str) -> str:
    """What the evidence says of an instruction that failed, the other one being finished."""
    parts = run.store.parts
    others = [part for other, part in parts.items() if other != name]
    assert [(part.status, part.vectors) for part in others] == [("finished", VECTORS)] * len(others)
    assert parts[name].status == "partial"
    return str(parts[name].validation["error"])


def test_a_kernel_that_does_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, (SIGNED, UNSIGNED))
    assert run(StandIn(dead=(SIGNED,)), glob=BOTH) == 5
    assert "the kernel counts 0 items stored, of 37 given" in failed(run, SIGNED)


@pytest.mark.parametrize("trial", ["no", "yes"])
def test_a_wrong_layout(tmp_path: Path, trial: str) -> None:
    """The known answer does not come out; the step says which operand goes where, and nothing is derived from it."""
    run = Run(tmp_path, (SIGNED, UNSIGNED), signed=(("8 * ((slot / 4) & 1)", "8 * (1 - ((slot / 4) & 1))"),))
    assert run(StandIn(), trial=trial, glob=BOTH if trial == "no" else SIGNED) == 5
    assert failed(run, SIGNED) == "layout: elements of a reach other outputs"
    (finding,) = run.store.parts[SIGNED].findings
    assert (finding.answer["a"]["0,0"], finding.answer["b"], finding.answer["c"]) == (["8,*"], "as named", "as named")
    assert run.store.parts[SIGNED].datapath is None


def test_a_known_answer_that_no_layout_explains(tmp_path: Path) -> None:
    """The operands are where they should be, and yet: what the device said stays."""

    def unit(made: Instruction, batch: Batch) -> Bits:
        return model(made, batch) ^ (made.id == SIGNED) * (batch.c == 8)

    run = Run(tmp_path)
    assert run(StandIn(unit=unit)) == 5
    assert "wrong known answer before the batch; the batch is void" in failed(run, SIGNED)


def test_a_first_run_that_hangs(run: Run) -> None:
    """In the child; nothing reaches this process's GPU."""
    cuda = StandIn()
    assert run(cuda, trial="yes&timeout=0.05", child="hang") == 5
    assert "hung" in failed(run, SIGNED)
    assert not cuda.launches


def test_first_runs_in_a_child(run: Run) -> None:
    assert run(StandIn(), trial="yes") == 0


def test_a_multiprocessor_that_lies(run: Run) -> None:
    """Its answers do not repeat: exit code 5, and no instruction counts as equal."""
    assert run(StandIn(lies=Lies(multiprocessor=77)), glob=SIGNED) == 5
    assert "do not repeat: one vector was answered" in failed(run, SIGNED)


def test_a_multiprocessor_that_begins_to_lie_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all was derived: the fused campaign compares, and says where it was computed wrong."""
    monkeypatch.setattr(stream, "LEAST", 1000)
    monkeypatch.setattr(stream, "ALONE", 100)
    monkeypatch.setattr(fused, "PROOF", 5)
    monkeypatch.setattr(fused, "SABOTAGED", 3)
    run = Run(tmp_path)
    pack(run.pack, (), campaigns=(SIGNED,))
    assert run(StandIn(), steps="layouts,survey", vectors=12_000) == 4
    assert run(StandIn(lies=Lies(multiprocessor=20, bit=3)), "--resume", vectors=12_000) == 5
    (found,) = run.store.parts[SIGNED].validation["runs"]
    assert list(found["multiprocessors"]["wrong"]) == ["20"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"; {found['multiprocessors']['wrong']['20']} wrong on multiprocessor 20" in said


def test_a_unit_that_is_not_the_shipped_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It agrees with what is derived from it; that this is not what is shipped fails with --check."""
    other = open_device("mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/tree.fraction_bits=24")

    def unit(made: Instruction, batch: Batch) -> Bits:
        return other.run(made, batch) if made.id == HALF else model(made, batch)

    run = Run(tmp_path, (HALF,))
    assert run(StandIn(unit=unit), "--check", glob=HALF) == 1
    assert "F=24" in capsys.readouterr().out
    assert run.store.parts[HALF].comparison["outcome"] == "changed"
    assert run.store.parts[HALF].mismatch_count == 0
