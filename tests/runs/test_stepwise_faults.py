"""Bring-ups whose device breaks, is gone, changes or lies, and files that are damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from cases.sealing import replaced
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.driver import LostError
from mmaprobe.devices.gpu.health import Health
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.report import junit
from mmaprobe.runs.report_summary import summary_of
from stand_ins.stepping import F16, FEW, MODEL, NAMES, ONE, PLAIN, Changed, Heard


def test_an_interrupt_keeps_what_was_found(tmp_path: Path) -> None:
    class Interrupts(Heard):
        def step(self, name: str, purpose: str) -> None:
            super().step(name, purpose)
            if name == "survey":
                raise KeyboardInterrupt

    steps = ["layouts", "main", "survey"]
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", listener=Interrupts(), steps=steps, **ONE)
    assert (report.exit_code, report.ended) == (130, "interrupted")
    statuses = {name: step.status for name, step in Store.open(tmp_path / "e").steps.items()}
    assert statuses == {"layouts": "finished", "main": "finished"}


def test_a_wrong_layout_leaves_the_form_out(tmp_path: Path) -> None:
    """Rows of A that come out one further: named, not derived, and another form is the main one."""

    class Shifted(Changed):
        def run(self, made: Any, batch: Any) -> Any:
            if made.id == F16:
                batch = replace(batch, a=batch.a[:, [*range(1, 16), 0]])
            return self.inner.run(made, batch)

    report = mmaprobe.bring_up(Shifted(name="shifted"), out=tmp_path / "e", steps=PLAIN, **FEW)
    assert report.exit_code == 5
    parts = Store.open(tmp_path / "e").parts
    assert parts[F16].validation["error"] == "layout: elements of a reach other outputs"
    assert parts[F16].findings[0].answer["a"]["1,0"] == ["0,*"]
    assert parts[F16].datapath is None
    assert list(Store.open(tmp_path / "e").steps["main"].result["rows"]) == [F16.replace("k16", "k8")]
    assert all(part.status == "finished" for name, part in parts.items() if name != F16)


def test_a_device_that_breaks_ends_the_instruction(tmp_path: Path) -> None:
    class Breaks(Changed):
        def run(self, made: Any, batch: Any) -> Any:
            if made.id == F16:
                raise DeviceError("cuda:0: illegal address; the batch is void")
            return self.inner.run(made, batch)

    report = mmaprobe.bring_up(Breaks(name="breaks"), out=tmp_path / "e", steps=PLAIN, **FEW)
    assert (report.exit_code, report.ended) == (5, "")
    parts = Store.open(tmp_path / "e").parts
    assert parts[F16].validation["error"].startswith("cuda:0: illegal address")
    assert {part.status for name, part in parts.items() if name != F16} == {"finished"}


@pytest.mark.parametrize("kind", ["flaky"])
def test_devices_that_misbehave(tmp_path: Path, kind: str) -> None:
    """A device that lies is never equal."""
    name = f"misbehaving:{kind}?p=0.02&of={MODEL}"
    report = mmaprobe.bring_up(name, out=tmp_path / "e", steps=["main", "validation"], **ONE)
    assert report.exit_code in (1, 4, 5)
    assert not any(result.exit_code == 0 for result in report.results)


def test_a_lost_device_ends_the_run(tmp_path: Path) -> None:
    """Exit 5, the steps before it are whole, and the run goes on where the device is back."""

    class Lost(Changed):
        def run_vectors(self, made: Any, vectors: Any) -> Any:
            raise LostError("cuda:0: the device is lost; --resume goes on")

    report = mmaprobe.bring_up(Lost(name=MODEL), out=tmp_path / "e", steps=PLAIN, **ONE)
    assert report.exit_code == 5
    assert "--resume goes on" in report.ended
    steps = Store.open(tmp_path / "e").steps
    assert (steps["layouts"].status, steps["main"].status) == ("finished", "partial")
    assert "the device is lost" in steps["main"].slices[-1].notes[0]
    again = mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=True, steps=PLAIN, **ONE)
    assert (again.exit_code, again.ended) == (0, "")


def test_memory_errors_void_the_slice(tmp_path: Path) -> None:
    """An uncorrectable error read after a slice: nothing of the slice is kept, the one before is."""
    readings: Iterator[int] = iter((0, 0, 1, 1))
    device = Changed(health=lambda: Health(uncorrected=next(readings), temperature_c=40))
    report = mmaprobe.bring_up(device, out=tmp_path / "e", **FEW)
    assert report.exit_code == 5
    assert "uncorrected ECC errors rose by 1" in report.ended
    store = Store.open(tmp_path / "e")
    first, second, third = NAMES[:3]
    assert [store.steps[name].status for name in (first, second)] == ["finished", "partial"]
    assert store.steps[first].slices[0].before == {"uncorrected": 0, "temperature_c": 40}
    assert (store.steps[second].result, store.parts, third in store.steps) == ({}, {}, False)


def test_nothing_is_handed_on_of_what_is_void(tmp_path: Path) -> None:
    readings = iter((0, 1))
    device = Changed(health=lambda: Health(uncorrected=next(readings)))
    report = mmaprobe.bring_up(device, out=tmp_path / "e", steps=["survey"], **ONE)
    assert (report.exit_code, report.results) == (5, ())
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == ["manifest.json", "steps", "summary.json"]
    assert 'errors="1"' in junit.to_junit(summary_of(report))


def test_another_driver_is_refused(tmp_path: Path) -> None:
    info = open_device(MODEL).info()
    mmaprobe.bring_up(Changed(info=lambda: info | {"driver": "550.54"}), out=tmp_path / "e", steps=["layouts"], **ONE)
    with pytest.raises(UsageError, match=r"driver was 550.54, is now 560.28; start anew with another --out"):
        mmaprobe.bring_up(Changed(info=lambda: info | {"driver": "560.28"}), out=tmp_path / "e", resume=True, **ONE)


def test_a_step_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """A named step without its file, or with another run's, makes the folder unreadable, and the error says which."""
    mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["layouts"], **ONE)
    path = tmp_path / "e" / "steps" / "layouts.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"run": "0"}))
    with pytest.raises(UsageError, match=r"layouts\.json is not the file that manifest\.json names"):
        Store.open(tmp_path / "e")
    replaced(path, kept | {"run": "0"})
    with pytest.raises(UsageError, match=r"layouts\.json: key run is '0'"):
        Store.open(tmp_path / "e")
    path.unlink()
    with pytest.raises(UsageError, match=r"layouts\.json: No such file"):
        mmaprobe.bring_up(MODEL, out=tmp_path / "e", resume=True, **ONE)


def test_another_compiler_is_refused(tmp_path: Path) -> None:
    made = Changed(toolchain=lambda: {"kernels": "NVRTC 13.0"})
    mmaprobe.bring_up(made, out=tmp_path / "e", steps=["layouts"], **ONE)
    with pytest.raises(UsageError, match=r"another toolchain: kernels was NVRTC 13\.0, is now NVRTC 13\.1"):
        mmaprobe.bring_up(Changed(toolchain=lambda: {"kernels": "NVRTC 13.1"}), out=tmp_path / "e", resume=True, **ONE)
