"""``validate --plan --baseline``: a campaign is held against an earlier one, as a run is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmaprobe.cli import main
from mmaprobe.evidence.store import Store

MODEL = "model:x86-64+intel"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    plan = tmp_path / "mine.toml"
    plan.write_text('instructions = ["x86.dpps", "x86.vpdpbusd"]\nvectors = 12_000\nleast_instructions = 1\n')
    return ["validate", WRONG, MODEL, "--plan", str(plan), "--seed", "3"]


def night(words: list[str], out: Path, *more: str | Path) -> int:
    return main([*words, "--out", str(out), *map(str, more)])


def test_a_second_night_that_is_alike_passes_the_gate(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calm = [*words[:2], WRONG, *words[3:]]
    assert night(calm, tmp_path / "one") == 0
    junit, page = tmp_path / "j.xml", tmp_path / "p.md"
    assert night(calm, tmp_path / "two", "--baseline", tmp_path / "one", "--junit", junit, "--markdown", page) == 0
    assert "beside the baseline" in junit.read_text()
    assert "<failure" not in junit.read_text()
    assert (tmp_path / "two" / "baseline.json").exists()
    capsys.readouterr()
    assert night(calm, tmp_path / "json", "--baseline", tmp_path / "one", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["exit_code"], told["baseline"]["exit_code"], told["baseline"]["changes"]) == (0, 0, [])


def test_what_changed_is_red_unless_it_is_expected(words: list[str], tmp_path: Path) -> None:
    """The first night it differed, now it does not: a change that nobody expected is red, though all is equal."""
    assert night(words, tmp_path / "one") == 1
    calm, junit = [*words[:2], WRONG, *words[3:]], tmp_path / "j.xml"
    assert night(calm, tmp_path / "two", "--baseline", tmp_path / "one", "--junit", junit) == 1
    assert 'type="baseline"' in junit.read_text()
    accepted = ("--baseline", tmp_path / "one", "--accept-change", "x86.dpps")
    assert night(calm, tmp_path / "three", *accepted) == 0
    assert night(words, tmp_path / "four", *accepted) == 1
    assert {*Store.open(tmp_path / "four").parts} == {"x86.dpps", "x86.vpdpbusd"}


@pytest.mark.parametrize(("more", "said"), [
    (["--baseline", "{one}"], "--baseline holds evidence against evidence, and this is kept nowhere: --out FOLDER"),
    (["--accept-change", "x86.dpps", "--out", "new"], "is about a change from a baseline: --baseline RUN"),
    (["--baseline", "{one}", "--out", "new", "--shard", "0/2"], "--baseline goes without --shard"),
    (["--baseline", "{none}", "--out", "new"], "none"),
])  # fmt: skip
def test_a_gate_that_cannot_be_is_refused_before_an_hour_is_spent(
    more: list[str], said: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    night(words, tmp_path / "one")
    capsys.readouterr()
    given = [each.format(one=tmp_path / "one", none=tmp_path / "none") for each in more]
    assert main([*words, *given]) == 2
    assert said in capsys.readouterr().err
    assert not Path("new").exists()


def test_another_device_is_no_baseline(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night(words, tmp_path / "one")
    other = [words[0], MODEL, *words[2:]]
    assert night(other, tmp_path / "two", "--baseline", tmp_path / "one") == 2
    assert "is of another device: device was mutant:" in capsys.readouterr().err


def test_a_night_that_a_budget_ended_is_a_baseline_where_it_compared_enough(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "endless.toml"
    text = 'instructions = ["x86.dpps"]\nvectors = 1_000_000_000_000\nleast_instructions = 1\nminutes = 0.02\n'
    plan.write_text(text + "least_vectors = 1\n")
    calm = [words[0], MODEL, MODEL, "--plan", str(plan)]
    assert night(calm, tmp_path / "one", "--seed", 1) == 0
    assert "the budget was spent" in capsys.readouterr().out
    assert night(calm, tmp_path / "two", "--seed", 2, "--baseline", tmp_path / "one") == 0
    plan.write_text(text)  # at least all of them
    assert night(calm, tmp_path / "three", "--seed", 3) == 4
    capsys.readouterr()
    assert night(calm, tmp_path / "four", "--seed", 4, "--baseline", tmp_path / "three") == 2
    assert "it compared less than its plan demands" in capsys.readouterr().err


def test_a_text_that_is_none_of_ours_is_not_called_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "any.json"
    file.write_text('{"kind": "another"}')
    assert main(["evidence", "verify", str(file)]) == 2
    assert "no kind of mmaprobe's texts" in capsys.readouterr().err


def test_a_mismatch_shows_what_was_expected_of_whatever_reference(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night(words, tmp_path / "one")
    main(["evidence", "show", str(tmp_path / "one")])
    assert "\n    expected    0x" in capsys.readouterr().out
