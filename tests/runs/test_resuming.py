"""A run that goes on: what failed or was cut short is done again, and what was found wrong stays wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from cases.validated import MODEL as DEVICE
from cases.validated import Changed
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import DeviceError
from mmaprobe.evidence.store import Store
from mmaprobe.runs import instructions
from mmaprobe.validation import Summary, validate

MODEL = "model:x86-64+intel"
ONE: dict[str, Any] = {"instruction": "x86.pmaddwd", "vectors": 2000, "seed": 3}


def wrong(device: Any, *rest: Any, **more: Any) -> Summary:
    """``validate`` against a device of which every result is wrong in a bit."""
    return validate(Changed(lambda made, batch, d: d ^ 1, DEVICE), *rest, **more)


def test_a_mismatch_of_before_is_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions, "validate", wrong)
    first = mmaprobe.run(MODEL, out=tmp_path / "e", **ONE)
    assert first.exit_code == 1
    monkeypatch.undo()
    again = mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **ONE)
    assert all(result.resumed for result in again.results)
    assert (again.exit_code, again.mismatches) == (1, first.mismatches)
    words = ["run", "-d", MODEL, "-i", "x86.pmaddwd", "-n", "2000", "--seed", "3", "--resume"]
    assert main([*words, "--out", str(tmp_path / "e")]) == 1
    assert "mismatch" in capsys.readouterr().out


@pytest.mark.parametrize("ended", [DeviceError("broke down"), RuntimeError("a bug"), KeyboardInterrupt()], ids=repr)
def test_what_failed_or_was_interrupted_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: BaseException
) -> None:
    """Its part is there, but not finished: the same run, resumed, derives and compares it whole."""

    def fail(device: Any, *rest: Any, **more: Any) -> Summary:
        def broken(*_: Any) -> Any:
            raise ended

        if not isinstance(ended, KeyboardInterrupt):
            raise ended
        return validate(Changed(broken, DEVICE), *rest, **more)

    monkeypatch.setattr(instructions, "validate", fail)
    first = mmaprobe.run(MODEL, out=tmp_path / "e", **ONE)
    assert first.exit_code in (5, 70, 130)
    assert [part.status for part in Store.open(tmp_path / "e").parts.values()] == ["partial"]
    monkeypatch.undo()
    again = mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **ONE)
    assert not any(result.resumed for result in again.results)
    assert (again.exit_code, again.vectors) == (0, 2000)
    assert [part.status for part in Store.open(tmp_path / "e").parts.values()] == ["finished"]


def test_a_validation_takes_vectors_that_the_derivation_never_saw(tmp_path: Path) -> None:
    """Its seed is another one: a datapath that fits the vectors it was made from proves nothing on them."""
    report = mmaprobe.run(MODEL, out=tmp_path / "e", **ONE)
    (result,) = report.results
    assert result.summary is not None
    assert report.seed == ONE["seed"]
    assert result.summary.seed != report.seed
    (part,) = Store.open(tmp_path / "e").parts.values()
    assert part.validation["seed"] == result.summary.seed


def test_a_device_is_the_one_that_was_begun_with(tmp_path: Path) -> None:
    mmaprobe.run(MODEL, out=tmp_path / "e", **ONE)
    with pytest.raises(mmaprobe.errors.UsageError, match="another"):
        mmaprobe.run(open_device("model:x86-64+amd"), out=tmp_path / "e", resume=True, **ONE)
