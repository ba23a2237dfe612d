"""Cores one after another: a device that is wrong on one of them only is caught, and the core is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mmaprobe.catalog.lookup import instruction as instruction_of
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.generators import families_for
from mmaprobe.validation.core_by_core import validate_cores
from mmaprobe.validation.cores import allowed_cores, pinned

ROOT = Path(__file__).parents[2]
MADE = instruction_of("x86.vpdpbusd")
MODEL = "model:x86-64+amd"
CORES = sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("core", sorted({CORES[0], CORES[-1]}))
def test_a_device_wrong_on_one_core_is_caught_and_the_core_named(core: int) -> None:
    device = open_device(f"misbehaving:cpu?n={core}&of={MODEL}")
    summary = validate_cores(device, open_device(MODEL), MADE, 20_000, 3)
    assert summary.screening is not None
    assert summary.screening.wrong == {str(core): 20_000}
    assert (summary.screening.present, summary.screening.covered) == (len(CORES), len(CORES))
    assert (summary.exit_code, summary.vectors, summary.mismatches) == (1, 20_000 * len(CORES), 20_000)
    assert str(summary.screening).endswith(f"{len(CORES)} cores compared vectors; wrong: 20,000 by number {core}")
    assert {place for _, place, *_ in summary.screening.first} == {core}
    assert dict(summary.families).keys() == set(families_for(MADE))
    assert sorted(os.sched_getaffinity(0)) == CORES


def test_a_sound_device_is_equal_on_every_core() -> None:
    summary = validate_cores(open_device(MODEL), open_device(MODEL), MADE, 10_000)
    assert summary
    assert summary.screening is not None
    assert not summary.screening.wrong
    assert (summary.vectors, summary.planned) == (10_000 * len(CORES), 10_000 * len(CORES))


@pytest.mark.skipif(len(CORES) < 2, reason="one core only: nothing to restrict")
def test_a_container_with_fewer_cores_has_those_checked() -> None:
    with pinned(CORES[0]):
        assert allowed_cores() == CORES[:1]
        device = open_device(f"misbehaving:cpu?n={CORES[-1]}&of={MODEL}")
        summary = validate_cores(device, open_device(MODEL), MADE, 10_000)
    assert summary.screening is not None
    assert (summary.screening.present, summary.screening.covered, summary.screening.wrong) == (1, 1, {})
    assert allowed_cores() == CORES


def test_a_core_that_takes_no_thread_and_a_system_without_pinning_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotHereError, match="core 100000 takes no thread of this process"), pinned(100_000):
        pass
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(NotHereError, match="pins no thread to a core"):
        validate_cores(open_device(MODEL), open_device(MODEL), MADE, 10)


@pytest.mark.long
def test_the_plan_sdc_takes_every_core_and_every_generator(tmp_path: Path) -> None:
    plan = tomllib.loads((ROOT / "src/mmaprobe/campaigns/plans/sdc.toml").read_text())
    assert plan["cores"] is True
    assert "generators" not in plan
    text = (ROOT / "src/mmaprobe/campaigns/plans/sdc.toml").read_text()
    for whole, short in (
        ("50_000_000", "10_000"),
        ('"*"', f'"{MADE.id}"'),
        ("least_instructions = 4", "least_instructions = 1"),
    ):
        assert whole in text
        text = text.replace(whole, short)
    (tmp_path / "sdc.toml").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "validation"]
    command += ["--plan", str(tmp_path / "sdc.toml"), "--device", f"misbehaving:cpu?of={MODEL}", "--ref", MODEL]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"{len(CORES)} cores compared vectors; wrong: 10,000 by number {CORES[-1]}\b", done.stdout)
