"""Errors that nobody foresaw: a code of their own, a line that asks for a report, the traceback in a file."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.child import Child
from mmaprobe.devices.gpu.trial import ChildTrial, serve
from mmaprobe.errors import InternalError
from mmaprobe.evidence.store import Store
from mmaprobe.evidence.unexpected_ends import unforeseen
from mmaprobe.report import junit
from mmaprobe.runs import instructions, validating
from mmaprobe.runs.report_summary import summary_of
from stand_ins.stepping import F16, FEW, MODEL, Changed, Heard

X86 = "model:x86-64+intel"
ASKS = "please report it with"


def broken(*_: Any, **__: Any) -> Any:
    raise KeyError("nobody\nforesaw this")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("words", [
    ["probe", "x86.pmaddwd", "-d", X86], ["derive", "x86.pmaddwd", "-d", X86],
    ["validate", X86, X86, "x86.pmaddwd", "--seed", "1"],
])  # fmt: skip
def test_a_command_ends_with_70(
    words: list[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"mmaprobe.api._{words[0]}", broken)
    assert main(words) == 70
    (kept,) = elsewhere.iterdir()
    assert capsys.readouterr().err == (f"mmaprobe: internal error: KeyError: 'nobody\\nforesaw this'; {ASKS} {kept}\n")
    assert "raise KeyError" in kept.read_text()
    assert mmaprobe.__version__ in kept.read_text()


def test_a_traceback_that_cannot_be_kept_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert str(unforeseen(KeyError("x"), tmp_path / "file")).endswith(f"{ASKS} the lines above")
    assert "KeyError: 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("broke", ["derive", "compare_with_shipped", "validate"])
def test_one_instruction_of_a_run_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broke: str) -> None:
    """Whatever thread it was on: the others are derived, validated and written, and every report says 70."""
    whole = getattr(instructions, broke)

    def once(*given: Any, **more: Any) -> Any:
        return (broken if any(getattr(each, "id", "") == "x86.pmaddubsw" for each in given) else whole)(*given, **more)

    monkeypatch.setattr(f"mmaprobe.runs.instructions.{broke}", once)
    report = mmaprobe.run(X86, instruction="x86.pmadd*", vectors=1000, out=tmp_path / "e")
    assert (report.exit_code, summary_of(report).exit_code) == (70, 70)
    parts = Store.open(tmp_path / "e").parts
    assert {name: part.status for name, part in parts.items()} == {
        "x86.pmaddwd": "finished",
        "x86.pmaddubsw": "partial",
    }
    (kept,) = (tmp_path / "e").glob("mmaprobe-error-*.txt")
    assert parts["x86.pmaddubsw"].validation["error"].endswith(f"{ASKS} {kept}")
    assert '<error type="internal"' in junit.to_junit(summary_of(report))


@pytest.mark.long
def test_one_instruction_of_a_bring_up_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = validating.validate

    def once(*given: Any, **more: Any) -> Any:
        return (broken if given[2].id == F16 else whole)(*given, **more)

    monkeypatch.setattr("mmaprobe.runs.validating.validate", once)
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["survey", "validation"], **FEW)
    assert (report.exit_code, summary_of(report).exit_code, report.ended) == (70, 70, "")
    parts = Store.open(tmp_path / "e").parts
    assert {part.status for name, part in parts.items() if name != F16} == {"finished"}
    assert ASKS in parts[F16].validation["error"]


def test_a_step_that_fails_ends_the_run_and_nothing_before_it(tmp_path: Path) -> None:
    class Breaks(Heard):
        def step(self, name: str, purpose: str) -> None:
            super().step(name, purpose)
            if name == "survey":
                broken()

    steps = ["layouts", "main", "survey"]
    report = mmaprobe.bring_up(MODEL, out=tmp_path / "e", listener=Breaks(), steps=steps, **FEW)
    assert (report.exit_code, summary_of(report).exit_code) == (70, 70)
    assert ASKS in report.ended
    assert {name: step.status for name, step in Store.open(tmp_path / "e").steps.items()} == {
        "layouts": "finished", "main": "finished",
    }  # fmt: skip
    assert (tmp_path / "e" / "summary.json").exists()


def test_an_instruction_that_cannot_be_asked_is_inconclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A UsageError inside is the code 4 of its instruction, in every report, and never lost among equal ones."""

    def refuses(*_: Any, **__: Any) -> Any:
        raise mmaprobe.UsageError("no such thing")

    monkeypatch.setattr("mmaprobe.runs.instructions.derive", refuses)
    report = mmaprobe.run(X86, instruction="x86.pmaddwd", vectors=1000, out=tmp_path / "e")
    assert (report.exit_code, summary_of(report).exit_code) == (4, 4)


def test_a_trial_passes_it_on(elsewhere: Path) -> None:
    """What nobody foresaw in a GPU's trial child is 70 in the parent, not the device's failure."""
    device = Changed(run=broken)
    said = io.StringIO()
    serve(device, "sm_90a", io.StringIO(f"{F16}\n"), said)
    answer = said.getvalue().splitlines()[1]
    assert answer.startswith("error InternalError internal error: KeyError")
    trial = ChildTrial("cuda:0", (), 1.0)
    trial._child = type("Told", (Child,), {"running": True, "exchange": lambda *_, **__: answer.encode()})((), 1.0)
    with pytest.raises(InternalError, match=ASKS):
        trial.check(open_device(MODEL).instructions()[0])


@pytest.mark.parametrize(("target", "said"), [("/dev/full", "No space left on device"), ("", "")])
def test_an_output_that_takes_no_more_is_6(target: str, said: str) -> None:
    """A full disk behind ``>``, or a reader such as ``head`` that has seen enough."""
    if target:
        out = os.open(target, os.O_WRONLY)
    else:
        read, out = os.pipe()
        os.close(read)
    try:
        command = [sys.executable, "-c", "import sys; from mmaprobe.cli import main; sys.exit(main())", "devices"]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(out)
    assert (done.returncode, done.stderr.count("\n")) == (6, bool(said)), done.stderr
    assert said in done.stderr
