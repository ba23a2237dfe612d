"""Bad input of campaigns, end to end: one line that names the file and what is wrong, and the right exit code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from mmaprobe.campaigns import engines
from mmaprobe.campaigns import verbs as campaign_verbs
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.shard_file import shard_name
from mmaprobe.cli import main
from mmaprobe.errors import CannotWriteError
from mmaprobe.report import junit

X86, DPPS = "model:x86-64+intel", "x86.dpps"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"
PLAN = f'instructions = ["{DPPS}"]\nvectors = 20_000\nleast_instructions = 1\n'


def shard(folder: Path, number: int, seed: int = 1, text: str = PLAN) -> Path:
    """One of two shards, in a folder."""
    plan = folder.parent / "mine.toml"
    plan.write_text(text)
    words = ["validate", X86, X86, "--plan", str(plan), "--seed", str(seed), "--out", str(folder)]
    assert main([*words, "--shard", f"{number}/2"]) == 0
    return folder / shard_name(Shard(number, 2))


def refused(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that ends so, with one line."""
    capsys.readouterr()
    assert main(words) == code
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1, told
    assert said in told


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_text(path.read_text()[:300]), "truncated, or not JSON"),
    (lambda path: path.write_text(path.read_text().replace('"vectors": ', '"vectors": 1', 1)), "changed or damaged"),
    (lambda path: path.write_bytes(b"\x00\xff" * 50), "not JSON"),
    (lambda path: path.write_bytes(b""), "truncated, or not JSON"),
    (lambda path: path.unlink(), "1 of 2 shards is missing: 1/2"),
    (lambda path: shard(path.parent.parent / "other", 1, 2).replace(path), "is of another seed than"),
    (lambda path: shard(path.parent.parent / "other", 1, 1, PLAN + "states = true\n").replace(path), "of another plan"),
]


@pytest.mark.parametrize(("spoil", "said"), SPOILT, ids=[said for _, said in SPOILT])
def test_what_is_no_whole_campaign_is_not_merged(
    spoil: Callable[[Path], object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard(tmp_path / "shards", 0)
    spoil(shard(tmp_path / "shards", 1))
    refused(["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "all")], 2, said, capsys)
    assert not (tmp_path / "all").exists()


def test_a_campaign_is_not_merged_over_other_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, seed in (("one", 1), ("two", 2)):
        for number in range(2):
            shard(tmp_path / folder, number, seed)
    out = str(tmp_path / "all")
    assert main(["merge", str(tmp_path / "one"), "--out", out]) == 0
    assert main(["merge", str(tmp_path / "one"), "--out", out]) == 0
    refused(["merge", str(tmp_path / "two"), "--out", out], 2, "holds evidence of another run; choose another", capsys)
    refused(["merge", str(tmp_path / "none"), "--out", out], 2, "none: No such file", capsys)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLAN + "extra = 3\n", "mine.toml: no plan has a key 'extra'"),
        (PLAN + "vectors = 3\n", "mine.toml: "),
        (PLAN.replace("20_000", "-1"), "mine.toml: vectors is -1"),
        ('instructions = ["x86.dpps"\n', "mine.toml: Unclosed array"),
        (PLAN.replace(DPPS, "x86.dpp"), "x86.dpp"),
    ],
)
def test_a_plan_that_is_none(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(text)
    refused(["validate", X86, X86, "--plan", str(tmp_path / "mine.toml"), "--seed", "1"], 2, said, capsys)


@pytest.mark.parametrize("number", ["", "2/2", "-1/2", "0/0", "0", "0/2/3", " 0/2"])
def test_a_shard_that_is_none(number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The empty one is a variable that a script did not set: each of its tasks would compare the whole plan."""
    (tmp_path / "mine.toml").write_text(PLAN)
    words = ["validate", X86, X86, "--plan", str(tmp_path / "mine.toml"), "--seed", "1", "--shard", number]
    refused([*words, "--out", str(tmp_path / "out")], 2, "shard", capsys)
    assert not (tmp_path / "out").exists()


def test_a_plan_without_a_reference_says_the_command_that_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the file that was named: its plan's name alone is that of no plan."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my plans").mkdir()
    Path("my plans/mine.toml").write_text(PLAN)
    again = f"mmaprobe validate {X86} REF --plan 'my plans/mine.toml'"
    refused(["validate", X86, "--plan", "my plans/mine.toml", "--seed", "1"], 2, f"name one: {again}", capsys)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("")
    (tmp_path / "mine.toml").write_text(PLAN)
    words = ["validate", X86, X86, "--plan", str(tmp_path / "mine.toml"), "--seed", "1", "--out", str(tmp_path / "out")]
    refused(words, 6, "cannot write ", capsys)


def test_shards_are_verified_alone_and_inside_of_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One figure that was changed, and a shard of another seed: both are named, and neither is passed over."""
    plan = tmp_path / "p.toml"
    plan.write_text('instructions = ["x86.dpps"]\nvectors = 2_000\nwitnesses = true\nleast_instructions = 1\n')
    for seed in ("1", "2"):
        words = ["validate", WRONG, X86, "--plan", str(plan), "--seed", seed, "--shards", "2"]
        assert main([*words, "--out", str(tmp_path / seed)]) == 1
    shards = [sorted((tmp_path / seed / "shards").iterdir()) for seed in ("1", "2")]
    assert main(["evidence", "verify", str(tmp_path / "1")]) == 1
    assert main(["evidence", "verify", str(shards[0][0].parent)]) == 1
    said = capsys.readouterr().out
    assert said.count("shard 1/2 of plan p, ") == 2
    assert "not named by the manifest" not in said
    for wrong, content in (
        ("key seed is not that of manifest.json", shards[1][1].read_text()),
        ("key sha256 is not that of the rest", shards[0][1].read_text().replace('"vectors": ', '"vectors": 1', 1)),
    ):
        shards[0][1].write_text(content)
        assert main(["evidence", "verify", str(tmp_path / "1"), "--json"]) == 2
        assert wrong in capsys.readouterr().out
    assert main(["evidence", "verify", str(shards[0][1])]) == 2


def test_what_could_not_be_written_is_said_before_anything_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that is there, a folder that is a file, a report in the place of a folder: an hour later is too late."""
    there = shard(tmp_path / "shards", 1)
    plan = str(tmp_path / "mine.toml")
    words = ["validate", X86, X86, "--plan", plan, "--seed", "1"]
    monkeypatch.setattr(campaign_verbs, "run_shard", lambda *_, **__: pytest.fail("it was run"))
    monkeypatch.setattr(engines, "run_shard", lambda *_, **__: pytest.fail("it was run"))
    refused([*words, "--shard", "1/2", "--out", str(there.parent)], 2, "is there already", capsys)
    refused([*words, "--shard", "1/2", "--out", plan], 6, f"cannot write {plan}/{there.name}: ", capsys)
    refused([*words, "--junit", str(there.parent)], 6, "there is something that is no file", capsys)
    refused([*words, "--markdown", f"{plan}/x/y.md"], 6, "choose another file with --markdown", capsys)


def test_a_mismatch_is_worse_than_a_report_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when all was done: what was found is printed, and decides how it ends."""
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN)

    def full(*_: object, **__: object) -> None:
        raise CannotWriteError("cannot write j.xml: No space left on device; choose another file with --junit")

    monkeypatch.setattr(junit, "write", full)
    for dut, code in ((WRONG, 1), (X86, 6)):
        words = ["validate", dut, X86, "--plan", str(plan), "--seed", "1", "--junit", str(tmp_path / "j.xml")]
        assert main(words) == code
        told = capsys.readouterr()
        assert "No space left on device" in told.err
        assert "20,000 vectors of 1 instruction" in told.out
        assert main([*words, "--json"]) == code
        assert json.loads(capsys.readouterr().out)["exit_code"] == code


def test_witnesses_of_no_default_state_are_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text('instructions = ["x86.dpps{ftz}"]\nwitnesses = true\nleast_instructions = 1\n')
    words = ["validate", X86, X86, "--plan", str(plan), "--seed", "1"]
    refused(words, 2, "witnesses are of default control states, and none of its instructions is in one", capsys)


@pytest.mark.parametrize(("said", "shard_of"), [("", ""), ("", "0/1"), ("witnesses = true\n", "0/2")])
def test_what_a_campaign_that_keeps_nothing_found_is_asked_again_by_one_command(
    said: str, shard_of: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "p.toml"
    plan.write_text(PLAN + said)
    words = ["validate", WRONG, X86, "--plan", str(plan), "--seed", "1", *["--shard", shard_of][: 2 * bool(shard_of)]]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert said.count("\n    differs in ") >= 1
    (line,) = (each for each in said.splitlines() if each.startswith("  again: "))
    again = shlex.split(line.partition("again: ")[2])
    assert again[0] == "mmaprobe"
    assert main(again[1:]) == 1


def test_a_shard_says_what_ended_it(capsys: pytest.CaptureFixture[str]) -> None:
    broken = f"misbehaving:crash?of={X86}&after=3"
    assert main(["validate", broken, X86, DPPS, "--plan", "quick", "--seed", "1", "--shard", "0/2"]) == 5
    assert f"{DPPS}: {broken}: {DPPS} broke down: RuntimeError" in capsys.readouterr().out
