"""A parameter file is made anew by a package that has none: the commands of ``regenerate.py`` on one instruction."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import regenerate as script
from regenerate import regenerate

from mmaprobe.cli import main

ONE = {
    "sm_90a": "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",  # of an architecture that a run measured
    "gfx942": "v_mfma_i32_16x16x32_i8",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("architecture", ONE)
def test_one_instruction(architecture: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What is written is the function that ships, of the one primitive that was asked; the file lacks the others."""
    written = regenerate(architecture, tmp_path, ONE[architecture])
    assert "basis = " in written.read_text()
    capfd.readouterr()
    assert main(["parameters", "diff", architecture, str(written)]) == 1
    assert "1 pair of primitives with one name: 1 the same function, 0 not" in capfd.readouterr().out


def test_a_command_that_fails_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that found no answer for a form ends with 4, and so does this."""

    def fails(*given: Any, **options: Any) -> Path:
        raise subprocess.CalledProcessError(4, "mmaprobe run")

    monkeypatch.setattr(script, "regenerate", fails)
    assert script.main(["gfx942", "--out", str(tmp_path)]) == 4
    assert capsys.readouterr().out == "gfx942 is not regenerated: the command above ended with 4\n"
