"""Every benchmark that has a short form runs in it, so that none rots between the releases that are measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHORT = sorted(path.name for path in BENCHMARKS.glob("*.py") if "--smoke" in path.read_text(encoding="utf-8"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHORT)
def test_the_short_form_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), "--smoke"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") > 3
