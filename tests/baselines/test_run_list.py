"""``mmaprobe evidence list``: a row a run by its manifest alone; what cannot be read is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases.nights import BF16, GPU, KEEPS, MADD, night, part, shipped
from cases.sealing import reseal
from mmaprobe.baselines.run_list import list_runs
from mmaprobe.cli import main
from mmaprobe.errors import UsageError
from mmaprobe.evidence import store as stores
from mmaprobe.evidence.corpus import KIND as CORPUS
from mmaprobe.evidence.folders import evidence_below


def test_a_row_says_what_the_manifest_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night(tmp_path / "b", part(), part(MADD, vectors=20, wrong=3), day=2, device="cuda:1", identity=GPU)
    night(tmp_path / "deep" / "er" / "a", part(vectors=7), day=1)
    assert main(["evidence", "list", "--json", str(tmp_path)]) == 0
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert (first["path"], first["vectors"], first["outcome"]) == (str(tmp_path / "deep" / "er" / "a"), 7, "equal")
    told = {
        key: second[key]
        for key in ("device", "unit", "silicon", "driver", "architecture", "seed", "instructions", "begun")
    }
    assert told == {"device": "cuda:1", "unit": "GPU-1", "silicon": "silicon", "driver": "580",
                    "architecture": "sm_90a", "seed": 2, "instructions": 2,
                    "begun": "2026-11-02T03:00:00+00:00"}  # fmt: skip
    assert (second["vectors"], second["mismatches"], second["outcome"], second["finished"]) == (
        1020,
        3,
        "mismatch",
        True,
    )
    assert main(["evidence", "list", str(tmp_path)]) == 0
    assert "2026-11-01 03:00:00" in capsys.readouterr().out


@pytest.mark.parametrize(("parts", "finished", "outcome"), [
    ([part()], True, "equal"), ([part()], False, "unfinished"), ([], True, "inconclusive"),
    ([part(vectors=0)], True, "inconclusive"), ([part(), part(MADD, status="partial")], True, "inconclusive"),
    ([part(wrong=1)], False, "mismatch"),
])  # fmt: skip
def test_the_outcome_is_that_of_the_counts(
    tmp_path: Path, parts: list[stores.Part], finished: bool, outcome: str
) -> None:
    night(tmp_path / "e", *parts, finished=finished)
    assert [each.outcome for each in list_runs(tmp_path)] == [outcome]


def test_thousands_are_listed_since_no_part_is_read(tmp_path: Path) -> None:
    night(tmp_path / "a", part(BF16, shipped(BF16, KEEPS)))
    for path in (tmp_path / "a" / "instructions").iterdir():
        path.unlink()
    assert [each.outcome for each in list_runs(tmp_path)] == ["equal"]


def test_what_is_damaged_is_named_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cut", "changed", "newer", "whole", "lost"):
        night(tmp_path / name, part())
    for name, change in (("cut", lambda text: text[:99]), ("changed", lambda text: text.replace("1000", "9000"))):
        path = tmp_path / name / "manifest.json"
        path.write_text(change(path.read_text()))
    (tmp_path / "lost" / "manifest.json").unlink()
    newer = tmp_path / "newer" / "manifest.json"
    reseal(newer, json.loads(newer.read_text()) | {"schema": 99})
    (tmp_path / "corpus").mkdir()
    reseal(tmp_path / "corpus" / "manifest.json", {"kind": CORPUS, "schema": 2})
    assert main(["evidence", "list", str(tmp_path)]) == 2
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("damaged: ")]
    assert [line.split(": ")[1].rpartition("/")[2] for line in told] == ["changed", "cut", "lost", "newer"]
    assert "truncated, or not JSON" in told[1]
    assert "No such file" in told[2]
    assert "pip install --upgrade mmaprobe" in told[3]


def test_a_folder_without_runs_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for path, said in (
        (tmp_path, "no run's evidence"),
        (tmp_path / "x", "no such folder"),
        (tmp_path / "file", "no folder"),
    ):
        assert main(["evidence", "list", str(path)]) == 2
        assert said in capsys.readouterr().err


def test_links_and_what_is_inside_of_a_run_are_not_followed(tmp_path: Path) -> None:
    night(tmp_path / "a", part())
    night(tmp_path / "a" / "cpu", part())
    (tmp_path / "again").symlink_to(tmp_path / "a")
    assert evidence_below(tmp_path) == [tmp_path / "a"]
    with pytest.raises(UsageError, match="no such folder"):
        evidence_below(tmp_path / "nowhere")
