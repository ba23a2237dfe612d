"""Runs of a device that describes itself: the evidence carries the description along, and a slow one ends in time."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from cases.new_unit import device_of, program
from mmaprobe.catalog import supplements
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.trial import serve
from mmaprobe.evidence.store import CATALOG, Store
from mmaprobe.runs.beginning import Options
from mmaprobe.runs.engine import conduct
from mmaprobe.runs.instructions import EACH_IN_TURN

QUICK: dict[str, Any] = {"vectors": 2000, "seed": 3}
Print = pytest.CaptureFixture[str]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the device of the page, by a program in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("acme.py").write_text(program(), "utf-8")
    return device_of(Path("acme.py"))


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that begins."""
    monkeypatch.setattr(supplements, "_ADDED", [])


def test_evidence_is_read_where_nothing_is_known(acme: str, monkeypatch: pytest.MonkeyPatch, capsys: Print) -> None:
    report = mmaprobe.run(acme, out="e", **QUICK)
    assert report.exit_code == 0
    assert report.device.info()["description"]
    forget(monkeypatch)
    assert main(["evidence", "verify", "e"]) == 0
    assert CATALOG in capsys.readouterr().out
    forget(monkeypatch)
    assert main(["parameters", "write", "e", "--out", "acme1.toml"]) == 0
    forget(monkeypatch)
    assert main(["parameters", "show", "acme1.toml"]) == 0
    assert capsys.readouterr().out.count("predicted: ") == 1
    forget(monkeypatch)
    assert main(["instructions", "acme1", "--catalog", f"e/{CATALOG}"]) == 0


def test_what_is_derived_of_it_is_read_where_nothing_is_known(
    acme: str, monkeypatch: pytest.MonkeyPatch, capsys: Print
) -> None:
    """On the basis that its user gives it: a program is silicon where he says so."""
    said = acme.replace("process:", "process:silicon=yes ")
    for device, basis in ((acme, "predicted: "), (said, "measured: ")):
        assert main(["derive", "acme1", "-d", device, "--fresh", "1000", "--write", "acme1.toml"]) == 0
        forget(monkeypatch)
        assert main(["parameters", "show", "acme1.toml"]) == 0
        assert capsys.readouterr().out.count(basis) == 1
    assert "(silicon, as its user says) alone" in Path("acme1.toml").read_text("utf-8")


@pytest.mark.parametrize("whole", [True, False])
def test_a_description_that_was_altered_is_found(
    acme: str, monkeypatch: pytest.MonkeyPatch, capsys: Print, whole: bool
) -> None:
    """It is that file that is named, not an instruction that nobody knows without it."""
    mmaprobe.run(acme, out="e", **QUICK)
    path = Path("e", CATALOG)
    text = path.read_text("utf-8")
    path.unlink()
    if whole:
        path.write_text(text.replace("k = 4", "k = 8"), "utf-8")
    forget(monkeypatch)
    assert main(["evidence", "verify", "e"]) == 2
    assert f": 1 of 3 files: {CATALOG}\n" in capsys.readouterr().out
    assert not supplements.added()


def test_a_run_of_ours_has_no_such_file(tmp_path: Path) -> None:
    report = mmaprobe.run("model:x86-64+intel", instruction="x86.pmaddwd", out=tmp_path / "e", **QUICK)
    assert not (report.out / CATALOG).exists()
    assert "catalog" not in Store.open(report.out).header.settings


def test_a_device_that_changed_is_not_resumed(acme: str, monkeypatch: pytest.MonkeyPatch, capsys: Print) -> None:
    assert mmaprobe.run(acme, out="e", budget=0, **QUICK).exit_code == 4
    forget(monkeypatch)
    Path("acme.py").write_text(program().replace("k = 4", "k = 2"), "utf-8")
    assert main(["run", "-d", acme, "-n", "2000", "--seed", "3", "--out", "e", "--resume"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "acme.dot4 is on acme1 already, in the description of process:" in said
    assert "k is 4 here and 2 there; use one of the two" in said


def test_a_recording_carries_the_rows_along(acme: str, monkeypatch: pytest.MonkeyPatch, capsys: Print) -> None:
    mmaprobe.bring_up(acme, out="e", steps=["outputs"], **QUICK)
    forget(monkeypatch)
    assert main(["evidence", "verify", "e/recording.tar.gz"]) == 0
    forget(monkeypatch)
    replay = open_device("replay:e/recording.tar.gz")
    assert [made.id for made in replay.instructions()] == ["acme.dot4"]


def test_a_device_that_is_slower_than_the_budget_ends_in_time(acme: str) -> None:
    """A second an answer, three seconds: three answers are asked for, where some 35 derive it.  The clock stands still
    but for the answers, so that how fast this machine is does not count."""
    counting = 'case [b"run", _, count]:\n            open("asked", "a").write("1")'
    Path("acme.py").write_text(program().replace('case [b"run", _, count]:', counting), "utf-8")
    asked = Path("asked")
    asked.touch()
    budget = Options(vectors=2000, seed=3, out="e", budget=0.05, clock=lambda: float(asked.stat().st_size))
    report = conduct(acme, EACH_IN_TURN, budget)
    assert report.exit_code == 4
    said = "\n".join(report.notes)
    assert "acme.dot4: the budget was spent after 3 answers of" in said
    assert "before it was derived; it begins anew with --resume and a longer --budget" in said
    Path("acme.py").write_text(program(), "utf-8")
    assert main(["run", "-d", acme, "-n", "2000", "--seed", "3", "--out", "e", "--resume"]) == 0


def test_a_child_that_tries_kernels_is_told_the_rows(acme: str) -> None:
    open_device(acme)
    tables = [each.data for each in supplements.added()]
    answers = StringIO()
    with pytest.MonkeyPatch.context() as fresh:
        forget(fresh)
        serve(open_device("model:x86-64"), "x86-64", StringIO(f"catalog {json.dumps(tables)}\nacme.dot4\n"), answers)
    _, first, second = answers.getvalue().splitlines()
    assert first == "ok 1"
    assert "x86-64 has no acme; acme1 has" in second
