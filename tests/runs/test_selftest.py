"""What a bring-up does first: a self-test, layouts, the main forms' outputs; what breaks is named, the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions
from mmaprobe.catalog.variants import asked
from mmaprobe.devices import recording
from mmaprobe.devices.base import open_device
from mmaprobe.devices.recording import read_recording
from mmaprobe.evidence.records import Finding
from mmaprobe.evidence.store import Store
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.runs import layouts
from mmaprobe.runs.cpu import run_cpu
from mmaprobe.runs.plan import Plan
from mmaprobe.runs.recording import ARCHIVE
from mmaprobe.runs.run_state import RunState
from mmaprobe.runs.selftest import kernels
from mmaprobe.runs.verbs import STEPS
from mmaprobe.validation import fused
from stand_ins.bringup_run import Run
from stand_ins.stepping import F16, MODEL, ONE, Changed, Heard
from stand_ins.vendors import VENDORS, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")

TWO = {
    "cuda": ("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8"),
    "hip": ("v_mfma_i32_32x32x16_i8", "v_smfmac_i32_16x16x64_i8"),
}
"""Instructions of two kinds."""


@pytest.fixture(params=sorted(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


def given(run: Run, *more: str, gpu: Any = None, steps: str = "selftest,layouts,outputs", **options: Any) -> int:
    return run(gpu, *more, glob="*i8" if run.vendor.scheme == "hip" else "*.s8.s8*", steps=steps, **options)


@pytest.fixture
def run(vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(fused, "PROOF", 5)
    monkeypatch.setattr(fused, "SABOTAGED", 3)
    return Run(vendor, tmp_path, TWO[vendor.scheme])


def test_the_order() -> None:
    """What is lost least is asked first; the processor, which is always there, last."""
    names = [step.name for step in STEPS]
    assert (names[:3], names[-1]) == (["selftest", "layouts", "outputs"], "cpu")


def everything(architecture: str) -> RunState:
    """A run with all instructions of an architecture."""
    others = {
        name: tuple(made for made in found if made.id != name) for name, found in asked(architecture, "*").items()
    }
    plan = Plan(architecture, tuple((made,) for made in instructions(architecture)), others, (), 0)
    return cast(RunState, SimpleNamespace(plan=plan, device=open_device(MODEL)))


KERNELS = {
    "sm_80": [F16],
    "sm_90a": [F16, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{a=regs}"],
    "sm_100a": [F16, "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16",
                "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16{a=tmem}"],
    "gfx90a": ["v_mfma_f32_16x16x16f16", "v_dot2_f32_f16", "v_dot4_i32_i8", "v_dot8_i32_i4"],
    "gfx942": ["v_mfma_f32_16x16x16_f16", "v_dot2_f32_f16", "v_dot4_i32_i8", "v_dot8_i32_i4",
               "v_smfmac_f32_16x16x32_f16"],
    "gfx1200": ["v_wmma_f32_16x16x16_f16", "v_dot2_f32_f16", "v_dot4_f32_fp8_fp8", "v_dot8_i32_iu4",
                "v_swmmac_f32_16x16x32_f16"],
}  # fmt: skip


@pytest.mark.parametrize("architecture", KERNELS)
def test_a_kernel_of_each_kind(architecture: str) -> None:
    """By rule: each kind's main form, A from every place; what another kind does by the same primitives is left out."""
    assert [made.id for made in kernels(everything(architecture))] == KERNELS[architecture]


@pytest.mark.parametrize("vendor", ["cuda", pytest.param("hip", marks=pytest.mark.long)], indirect=True)
def test_all_is_well(run: Run, vendor: Vendor, capsys: pytest.CaptureFixture[str]) -> None:
    """A known answer of each, and a fused campaign that proves itself."""
    vendor.pack(run.pack, TWO[vendor.scheme], campaigns=TWO[vendor.scheme][:1])
    given(run)
    assert "self-test:" not in capsys.readouterr().out
    assert run.store.steps["selftest"].text == "3 of 3 went well"
    assert {step.status for step in run.store.steps.values()} == {"finished"}


def test_a_campaign_that_proves_nothing(run: Run, vendor: Vendor, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told in a line and condemns nothing."""
    vendor.pack(run.pack, TWO[vendor.scheme], campaigns=TWO[vendor.scheme][:1])
    given(run, gpu=vendor.gpu(fault="never of campaigns"))
    said = " ".join(capsys.readouterr().out.split())
    assert "self-test: fused campaign: " in said
    assert "the kernel counts 0 tiles" in said
    assert set(run.store.steps["layouts"].result["findings"]) == set(TWO[vendor.scheme])


@pytest.mark.parametrize("steps", ["selftest,layouts,outputs", "layouts,outputs", "outputs"])
def test_any_one_kernel_may_break(run: Run, vendor: Vendor, steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever step meets it first: it is named with what the driver said, the other one is done to the end."""
    broken, sound = TWO[vendor.scheme]
    assert given(run, gpu=vendor.gpu(fault=f"refused of {broken}"), steps=steps) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert ("self-test: " + broken in said) == ("selftest" in steps)
    assert "Launch" in run.store.parts[broken].validation["error"]
    assert {step.status for step in run.store.steps.values()} == {"finished"}
    assert list(run.store.steps["outputs"].result["sets"]) == [sound]
    assert [found.instruction for found in read_recording(run.out / ARCHIVE).sets()] == [sound]


FAULTS = {"cuda": "hang", "hip": "abort"}


@pytest.mark.parametrize("vendor", ["cuda", pytest.param("hip", marks=pytest.mark.long)], indirect=True)
def test_what_breaks_in_the_child(run: Run, vendor: Vendor, capsys: pytest.CaptureFixture[str]) -> None:
    """A hang, and a fault that ends the process, reach neither this process nor the other instruction."""
    broken, sound = TWO[vendor.scheme]
    fault = f"{FAULTS[vendor.scheme]} of {broken}"
    assert given(run, gpu=vendor.gpu(fault=f"die of {broken}"), trial="yes&timeout=1", child=fault) == 5
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("self-test: "))
    assert broken in line
    assert ("hung" if vendor.scheme == "cuda" else "ended by SIGABRT") in line
    assert list(run.store.steps["outputs"].result["sets"]) == [sound]


def test_where_nothing_runs(run: Run, vendor: Vendor, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 5 at once, a line a kernel and what to type; nothing is condemned, once it is well the run goes on."""
    assert given(run, gpu=vendor.gpu(fault="refused")) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"self-test: {name}: " in said for name in TWO[vendor.scheme])
    assert "none of the self-test's 2 kernels came to a good end; see: mmaprobe doctor" in said
    assert f"the same command with --resume --out {run.out} goes on" in said
    assert run.store.parts == {}
    given(run, "--resume")
    assert run.store.steps["selftest"].text.startswith("2 of 3 went well")


def test_like_ones_come_last(run: Run, vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a kind's kernel breaks the device, the others of the kind wait until all else is asked."""
    broken, sound = TWO[vendor.scheme]
    like = {"cuda": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "hip": vendor.unsigned}[vendor.scheme]
    vendor.pack(run.pack, (broken, like, sound))
    order, find = [], layouts._layout

    def noted(run: RunState, made: Instruction) -> Finding:
        order.append(made.id)
        return find(run, made)

    monkeypatch.setattr(layouts, "_layout", noted)
    assert given(run, gpu=vendor.gpu(fault=f"refused of {broken}")) == 5
    assert order == [sound, like]


def test_outputs_lie_there_whatever_breaks_later(tmp_path: Path) -> None:
    """The process ends as the main forms are derived; the archive is whole and answers as a device."""

    class Killed(Heard):
        def step(self, name: str, purpose: str) -> None:
            if name == "main":
                raise SystemExit(9)

    with pytest.raises(SystemExit):
        mmaprobe.bring_up(MODEL, out=tmp_path / "e", listener=Killed(), **ONE)
    summary = mmaprobe.validate(f"replay:{tmp_path / 'e' / ARCHIVE}", MODEL, F16, 10**6)
    assert (summary.vectors, summary.exit_code) == (1000, 0)


def test_what_is_recorded_briefly_first_is_recorded_in_full(tmp_path: Path) -> None:
    """Where a short slice kept the first outputs waiting until after the recording, which takes fewer."""
    regs = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{a=regs}"
    few: dict[str, Any] = {"instruction": "wgmma.*k16.f32.f16.f16*", "out": tmp_path / "e"}
    mmaprobe.bring_up(MODEL, steps=["recording"], **few)
    mmaprobe.bring_up(MODEL, steps=["outputs"], resume=True, **few)
    (entry,) = (each for each in read_recording(tmp_path / "e" / ARCHIVE).sets() if each.instruction == regs)
    assert entry.count == 1000


def test_a_recording_that_is_too_large_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says where the outputs are; what was to follow follows."""
    monkeypatch.setattr(recording, "MOST_BYTES", 100)
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["outputs", "main"], **ONE)
    assert (report.exit_code, [step.status for step in report.steps]) == (0, ["finished", "finished"])
    assert any(f"no {ARCHIVE} is written: the recording takes" in note for note in report.notes)
    assert list(Store.open(tmp_path / "e").steps["outputs"].result["sets"]) == [F16]


def test_what_contradicts_itself_is_recorded(tmp_path: Path) -> None:
    """One output depends on another one's operands: flagged, recorded, and the report says so."""

    class Leaks(Changed):
        def run(self, made: Instruction, batch: Batch) -> Bits:
            d: Bits = self.inner.run(made, batch)
            d[:, 0, 0] ^= (batch.a[:, 1] != 0).any(axis=1).astype(d.dtype)
            return d

    report = mmaprobe.bring_up(Leaks(name="leaks"), out=tmp_path / "e", steps=["probes", "recording"], **ONE)
    store = Store.open(tmp_path / "e")
    part, step = store.parts[F16], store.steps["recording"]
    assert (report.exit_code, part.validation["flagged"]) == (5, True)
    assert any(finding.status == "contradictory" for finding in part.findings)
    assert list(step.result["sets"]) == [F16]
    assert step.text == f"1,000 vectors of 1 instruction; {F16} contradicts itself"
    found = read_recording(tmp_path / "e" / ARCHIVE)
    assert any("witnesses" in each.key for each in found.sets())


def test_the_processor_waits_for_the_gpu() -> None:
    """Its turn comes to nothing while a step of the GPU is open."""
    run = SimpleNamespace(open_steps={"survey"}, device=Changed(), pattern="*", result=lambda name: {})
    run.device.resident, run.device.run_operands = (), print
    work: Iterator[Any] = run_cpu(cast(RunState, run))
    assert next(work) is None
