"""``mmaprobe run --device cuda:0 --pack`` and ``hip:0``, whole, on a stand-in GPU: what goes well, and each end."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.runs import validating
from mmaprobe.runs.verbs import STEPS
from mmaprobe.validation import fused, stream
from stand_ins.bringup_run import LATER, VECTORS, Run, at, breaks, failed
from stand_ins.kernel_source import Lies
from stand_ins.vendors import NVIDIA, VENDORS, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.long if name != NVIDIA.scheme else ()) for name in VENDORS]
)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


@pytest.fixture
def run(vendor: Vendor, tmp_path: Path) -> Run:
    return Run(vendor, tmp_path)


def test_all_of_it(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """From the pack to parameters: every step finished, exit code 0; going on does nothing twice."""
    vendor, around = run.vendor, run.vendor.around()
    around.process(4242, "train")
    assert run(None, "--json", around=around, steps="all") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(step["name"], step["status"]) for step in found["steps"]] == [(each.name, "finished") for each in STEPS]
    parts = run.store.parts
    assert set(parts) == {vendor.signed}
    assert {part.vectors for part in parts.values()} == {VECTORS}
    assert {part.comparison["outcome"] for part in parts.values()} <= {"same", "equivalent"}
    assert run.notes() == [f"{run.name}: another process uses the GPU: pid 4242 (train, 1024 MiB)"]
    assert run.store.header.identity["driver"] == vendor.driver


# Ends, and going on


@pytest.mark.long
def test_a_killed_run_goes_on(run: Run) -> None:
    """The process ends at once, in the middle of a launch; what was written is whole and is not asked again."""
    child = os.fork()
    if not child:
        run(run.vendor.gpu(events=at(LATER, lambda: os._exit(9))))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert run.statuses() == {"layouts": "finished"}
    assert run(None, "--resume") == 0
    assert run.store.parts[run.vendor.signed].vectors == VECTORS
    assert len(run.store.steps["layouts"].slices) == 1


def test_a_spent_budget_goes_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(None, "--budget", "0") == 4
    assert "the budget was spent" in capsys.readouterr().out
    assert run.store.parts == {}
    assert run(None, "--resume") == 0


@pytest.mark.long
def test_a_gpu_that_goes_away_mid_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5 and the command to type; the step before is whole; on a GPU that is back the run goes on."""
    assert run(breaks(run.vendor.gpu(), LATER, "bus")) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "the device is lost" in said
    assert "once the GPU is back, the same command with --resume goes on" in said
    assert (run.statuses()["layouts"], run.statuses()["survey"]) == ("finished", "partial")
    assert any("the device is lost" in note for note in run.notes())
    assert run(None, "--resume") == 0
    assert [len(step.slices) for step in run.store.steps.values()] == [1, 2, 1]


@pytest.mark.long
def test_a_launch_that_hangs_and_goes_on_running(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """It is this instruction's failure and the end of this run, but not the other instruction's failure."""
    run, vendor = run.both(), run.vendor
    assert run(breaks(vendor.gpu(), LATER, "hang"), glob=vendor.both, trial="no&timeout=0.05") == 5
    said = " ".join(capsys.readouterr().out.split())
    assert f"a launch that hung still runs; end this process, see that it is gone: {vendor.who}; then" in said
    assert "then the same command with --resume goes on" in said
    assert "did not end within 0.05 s" in run.store.parts[vendor.signed].validation["error"]
    assert vendor.unsigned not in run.store.parts
    assert run(None, "--resume", glob=vendor.both) == 5
    assert "did not end within 0.05 s" in failed(run)


@pytest.mark.long
def test_a_failure_that_stays(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Where every call answers it from there on, the run ends and no other instruction is blamed."""
    run, vendor = run.both(), run.vendor
    assert run(breaks(vendor.gpu(), LATER, "illegal"), glob=vendor.both) == 5
    said = " ".join(capsys.readouterr().out.split())
    runtime = {"cuda": "CUDA", "hip": "ROCm"}[vendor.scheme]
    assert (
        f"since a launch failed {runtime} does nothing more in this process; the same command with --resume goes on"
        in said
    )
    assert "(700)" in run.store.parts[vendor.signed].validation["error"]
    assert vendor.unsigned not in run.store.parts
    assert run(None, "--resume", glob=vendor.both) == 5
    assert "(700)" in failed(run)


@pytest.mark.long
def test_another_process_takes_the_memory(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No instruction is to blame: once there is room again the run goes on."""
    gpu = run.vendor.gpu()
    gpu.events = at(LATER, lambda: setattr(gpu, "memory", 0))
    assert run(gpu) == 5
    assert f"out of memory; see who holds it: {run.vendor.who}" in " ".join(capsys.readouterr().out.split())
    assert run.statuses() == {"layouts": "finished", "survey": "partial"}
    assert run(None, "--resume") == 0


@pytest.mark.long
def test_another_process_takes_the_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the start; or after one instruction's failure, when the context was given up.  AMD has no such mode."""
    before, gpu = Run(NVIDIA, tmp_path / "before"), NVIDIA.gpu(mode=3)
    assert before(NVIDIA.gpu(mode=3, retain=46)) == 3
    assert before(None, "--resume") == 0

    def taken() -> None:
        gpu.fault, gpu.retain = "refused", 46

    run, gpu.events = before.both(), at(LATER, taken)
    assert run(gpu, glob=NVIDIA.both) == 5, "of an instruction that failed and a GPU that is not there any more"
    said = " ".join(capsys.readouterr().out.split())
    assert "Exclusive_Process, and another process has the GPU; see: nvidia-smi" in said
    assert (run.statuses()["layouts"], set(run.store.parts)) == ("finished", {NVIDIA.signed})


@pytest.mark.long
def test_errors_of_memory_mid_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The answers look right and are thrown away; a later run finds them anew."""
    around = run.vendor.around()
    assert run(run.vendor.gpu(events=at(LATER, around.uncorrected)), around=around) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "uncorrected ECC errors rose by 1" in said
    assert f"see: {run.vendor.errors}; then the same command with --resume goes on" in said
    assert (run.statuses()["survey"], run.store.parts) == ("partial", {})
    assert run.store.steps["survey"].slices[0].after["uncorrected"] == 1
    assert run(None, "--resume", around=run.vendor.around()) == 0


def test_what_happens_beside_the_run_is_in_its_evidence(run: Run) -> None:
    around = run.vendor.around()
    around.own()

    def happens() -> None:
        around.corrected(2)
        around.slower()
        around.process(4242, "train")

    assert run(run.vendor.gpu(events=at(LATER, happens)), around=around) == 0
    assert run.notes() == [
        f"{run.name}: corrected ECC errors rose by 2, to 5",
        f"{run.name}: {run.vendor.slower}",
        f"{run.name}: another process uses the GPU now: pid 4242 (train, 1024 MiB)",
    ]


def test_a_driver_that_refuses_a_newer_compiler_s_binaries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Within a major version they load; where they do not it is said once, and no form is blamed."""
    run = Run(NVIDIA, tmp_path)
    shutil.rmtree(run.pack)
    NVIDIA.pack(run.pack, (NVIDIA.signed,), toolchain="NVRTC 13.5")
    assert run(NVIDIA.gpu(fault="no binary")) == 3
    assert "the driver serves CUDA 13.0 and cannot load" in " ".join(capsys.readouterr().out.split())
    assert run.store.parts == {}
    assert run(NVIDIA.gpu(), "--resume") == 0


def test_another_driver_or_gpu_does_not_go_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    vendor, other = run.vendor, run.vendor.around()
    run(None, "--budget", "0", around=vendor.around())
    other.driver("595.10")
    assert run(None, "--resume", around=other) == 2
    said = f"begun with another identity: driver was {vendor.driver}, is now 595.10; start anew"
    assert said in capsys.readouterr().err
    here, there = vendor.names
    assert run(vendor.gpu(name=there.encode()), "--resume", around=vendor.around()) == 2
    assert f"model_name was {here}, is now {there}" in capsys.readouterr().err
    shutil.rmtree(run.pack)
    vendor.pack(run.pack, (vendor.signed,), toolchain="another one")
    assert run(None, "--resume", around=vendor.around()) == 2
    said = f"another toolchain: kernels was {vendor.toolchain}, is now another one"
    assert said in capsys.readouterr().err


# What is wrong with one instruction


def test_a_kernel_that_does_nothing(run: Run) -> None:
    run = run.both()
    assert run(run.vendor.gpu(dead=(run.vendor.signed,)), glob=run.vendor.both) == 5
    assert "the kernel counts 0 items stored, of 37 given" in failed(run)


@pytest.mark.parametrize("trial", ["no", "yes"])
def test_a_wrong_layout(vendor: Vendor, tmp_path: Path, trial: str) -> None:
    """The known answer does not come out; the step says which operand goes where, and nothing is derived from it."""
    run = Run(vendor, tmp_path, (vendor.signed, vendor.unsigned), {vendor.signed: (vendor.rows,)})
    assert run(None, trial=trial, glob=vendor.both if trial == "no" else "") == 5
    assert failed(run) == "layout: elements of a reach other outputs"
    (finding,) = run.store.parts[vendor.signed].findings
    assert (finding.answer["a"]["0,0"], finding.answer["b"]) == (vendor.lies_at, "as named")
    assert finding.answer["c"] == "as named"
    assert run.store.parts[vendor.signed].datapath is None


def test_a_known_answer_that_no_layout_explains(run: Run) -> None:
    """The operands are where they should be, and yet: what the device said stays."""

    def unit(made: Instruction, batch: Batch) -> Bits:
        return run.vendor.model(made, batch) ^ (made.id == run.vendor.signed) * (batch.c == 8)

    assert run(run.vendor.gpu(unit=unit)) == 5
    assert "wrong known answer before the batch; the batch is void" in failed(run)


def test_a_first_run_that_hangs(run: Run) -> None:
    """In the child; nothing reaches this process's GPU."""
    gpu = run.vendor.gpu()
    assert run(gpu, trial="yes&timeout=0.05", child="hang") == 5
    assert "hung" in failed(run)
    assert not gpu.launches


@pytest.mark.long
def test_a_first_run_that_hangs_condemns_no_other(run: Run) -> None:
    """Its child ends with it: the forms after it get answers, in this run."""
    run, vendor = run.both(), run.vendor
    assert run(None, trial="yes&timeout=0.05", child=f"hang of {vendor.signed}", glob=vendor.both) == 5
    assert "first run in a child process: " in failed(run)
    assert "hung" in failed(run)


@pytest.mark.long
def test_a_gpu_lost_in_a_child_ends_the_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No form is blamed for it; once the GPU is back the run goes on."""
    assert run(None, trial="yes", child="ecc") == 5
    assert "uncorrectable ECC error" in " ".join(capsys.readouterr().out.split())
    assert run.store.parts == {}
    assert run(None, "--resume", trial="no") == 0


def test_first_runs_in_a_child(run: Run) -> None:
    assert run(None, trial="yes") == 0


@pytest.mark.long
def test_a_multiprocessor_that_lies(run: Run) -> None:
    """Its answers do not repeat: exit code 5, and no instruction counts as equal."""
    assert run(run.vendor.gpu(lies=Lies(multiprocessor=77))) == 5
    assert "do not repeat: one vector was answered" in failed(run)


@pytest.mark.long
def test_a_multiprocessor_that_begins_to_lie_is_named(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all was derived: the fused campaign compares, and says where it was computed wrong."""
    monkeypatch.setattr(stream, "LEAST", 1000)
    monkeypatch.setattr(stream, "ALONE", 100)
    monkeypatch.setattr(validating, "EACH", 0)
    monkeypatch.setattr(fused, "PROOF", 5)
    monkeypatch.setattr(fused, "SABOTAGED", 3)
    vendor = run.vendor
    made = instruction(vendor.signed, vendor.architecture)
    vectors = 94 * made.m * made.n
    vendor.pack(run.pack, (), campaigns=(vendor.signed,))
    assert run(None, steps="layouts,survey", vectors=vectors) == 4
    assert run(vendor.gpu(lies=Lies(multiprocessor=19, bit=3)), "--resume", vectors=vectors) == 5
    (found,) = run.store.parts[vendor.signed].validation["runs"]
    assert list(found["multiprocessors"]["wrong"]) == ["19"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"; {found['multiprocessors']['wrong']['19']} wrong on {vendor.multiprocessor} 19" in said


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("fault", "ends"), [("never", 0), ("hang", 5)])
def test_a_campaign_that_fails_condemns_no_form(
    run: Run, fault: str, ends: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was to compare is compared the ordinary way, by the run that goes on where this one could not."""
    monkeypatch.setattr(stream, "LEAST", 1000)
    monkeypatch.setattr(stream, "ALONE", 100)
    monkeypatch.setattr(validating, "EACH", 0)
    vendor = run.vendor
    vendor.pack(run.pack, (), campaigns=(vendor.signed,))
    gpu = vendor.gpu(fault=f"{fault} of campaigns")
    assert run(gpu, vectors=10_000, trial="no&timeout=0.3") == ends
    assert "compared the ordinary way, not by the fused kernel" in " ".join(capsys.readouterr().out.split())
    part = run.store.parts[vendor.signed]
    assert "error" not in part.validation
    assert "the fused kernel" in part.validation["ordinary"]
    assert run(vendor.gpu(fault="die of campaigns"), "--resume", vectors=10_000, trial="no&timeout=0.3") == 0
    part = run.store.parts[vendor.signed]
    assert (part.status, part.vectors, part.mismatch_count) == ("finished", 10_000, 0)
    assert not any("multiprocessors" in each for each in part.validation["runs"])


@pytest.mark.long
def test_a_unit_that_is_not_the_shipped_one(
    vendor: Vendor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """It agrees with what is derived from it; that this is not what is shipped fails with --check."""
    other = open_device(vendor.other)
    run = Run(vendor, tmp_path, (vendor.changed,))
    assert run(vendor.gpu(unit=other.run), "--check", glob=vendor.changed) == 1
    assert vendor.says in capsys.readouterr().out
    assert run.store.parts[vendor.changed].comparison["outcome"] == "changed"
    assert run.store.parts[vendor.changed].mismatch_count == 0
