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


def test_a_night_that_its_budget_ended_is_the_baseline_of_the_next(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `nightly` ends: everything had its least, and what ended with 0 is half a night to no command."""
    plan = Path(words[4])
    plan.write_text(plan.read_text().replace("12_000", "10_000_000_000\nleast_vectors = 1_000"))
    calm = [*words[:2], WRONG, *words[3:], "--budget", "0.05"]
    assert night(calm, tmp_path / "one") == 0
    assert "the budget was spent: " in capsys.readouterr().out
    assert main(["evidence", "verify", str(tmp_path / "one")]) == 0
    assert "ended by its budget after its least" in capsys.readouterr().out
    assert main(["evidence", "list", str(tmp_path / "one"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["outcome"] == "equal"
    assert night(calm, tmp_path / "two", "--baseline", tmp_path / "one") == 0
    plan.write_text(plan.read_text().replace("1_000\n", "10_000_000_000\n"))
    assert night(calm, tmp_path / "few") == 4
    capsys.readouterr()
    assert main(["evidence", "verify", str(tmp_path / "few")]) == 4
    assert night(calm, tmp_path / "three", "--baseline", tmp_path / "few") == 2
    assert "run its plan again with a larger --budget" in capsys.readouterr().err


def test_a_campaign_is_verified_with_its_shards_and_each_alone(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One digit changed in a shard is 2 where the campaign is verified, its folder of shards, or the file alone."""
    calm = [*words[:2], WRONG, *words[3:], "--shards", "2"]
    assert night(calm, tmp_path / "one") == 0
    shards = tmp_path / "one" / "shards"
    file = next(iter(sorted(shards.iterdir())))
    for place in (tmp_path / "one", shards, file):
        assert main(["evidence", "verify", str(place)]) == 0
    assert "shard: whole; as it was written" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"seed": 3', '"seed": 4', 1))
    for place in (tmp_path / "one", shards, file):
        assert main(["evidence", "verify", str(place)]) == 2
        assert "key sha256 is not that of the rest of the file" in capsys.readouterr().out
    file.write_text('{"kind": "another"}')
    assert main(["evidence", "verify", str(file)]) == 2
    assert "no kind of mmaprobe's texts" in capsys.readouterr().err


def test_equal_means_the_reference_where_nothing_was_derived(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A campaign derives nothing; its reference may be no model."""
    page = tmp_path / "page.md"
    night(words, tmp_path / "one", "--markdown", page)
    main(["evidence", "show", str(tmp_path / "one")])
    told = capsys.readouterr().out + page.read_text()
    assert told.count("the same bits on the device and on its reference") == 3
    assert "derived from it" not in told
    assert ", expected 0x" in told
