"""The pytest plug-in's options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
def test_device(device, seed):
    assert (device.name, seed) == ("model:sm_90a", 7)

def test_reference(reference):
    assert reference.name == "model:sm_80"
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


def test_fixtures_follow_the_options(tmp_path: Path) -> None:
    done = run(tmp_path, "--device", "model:sm_90a", "--ref", "model:sm_80", "--seed", "7")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("options", "message"), [
    (("--device", "cdua:0"), "unknown device"), (("--ref", "modle:sm_80"), "--ref modle:sm_80: unknown device"),
    (("--require-gpu",), "--require-gpu needs --device cuda:N or hip:N, not cpu"),
])  # fmt: skip
def test_wrong_options_end_the_run(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = run(tmp_path, *options)
    assert done.returncode == 4
    assert message in done.stderr + done.stdout


def test_the_probes_refuse_a_device_that_cannot_be_opened_in_one_line() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "probes"]
    command += ["--device", "model:sm_9"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 4
    assert (done.stderr + done.stdout).strip().startswith("ERROR: unknown architecture 'sm_9'; did you mean")
