"""What a shard found wrong: shown bit by bit where it is few, and asked again by the shard's own file."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.shard_file import shard_name
from mmaprobe.cli import main
from mmaprobe.report.run_summary import InstructionRow
from mmaprobe.report.tables.run import SHOWN, troubles

X86, DPPS = "model:x86-64+intel", "x86.dpps"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"
PLAN = f'instructions = ["{DPPS}"]\nvectors = 4_000\nleast_instructions = 1\n'
Print = pytest.CaptureFixture[str]


@pytest.fixture
def shard(tmp_path: Path, capsys: Print) -> Path:
    """The file of a shard that found mismatches; what it printed is there to be read."""
    plan = tmp_path / "mine.toml"
    plan.write_text(PLAN)
    words = ["validate", WRONG, X86, "--plan", str(plan), "--seed", "1", "--shard", "0/1", "--out", str(tmp_path / "s")]
    assert main(words) == 1
    return tmp_path / "s" / shard_name(Shard())


def test_a_shard_names_its_file_and_is_asked_again_by_it(shard: Path, capsys: Print) -> None:
    said = capsys.readouterr().out
    (command,) = (line for line in said.splitlines() if line.startswith("  again: "))
    words = shlex.split(command.partition("again: ")[2])
    assert words == ["mmaprobe", "replay", str(shard)]
    assert said.count("\n    differs in ") == 2  # of the vector and of its smallest form
    assert main(words[1:]) == 1
    assert "wrong again; it was" in capsys.readouterr().out
    assert main(["replay", str(shard), "--device", X86]) == 0


def test_all_mismatches_of_a_shard_are_asked_again(shard: Path) -> None:
    kept = [each for part in json.loads(shard.read_text())["done"] for each in part.get("mismatches", ())]
    found = mmaprobe.replay(shard, WRONG)
    assert [each.now.recipe for each in found if not each.smallest] == [each["recipe"] for each in kept]
    assert len(kept) >= 4
    assert {each.ref for each in found} == {X86}


def test_a_shard_that_was_changed_is_refused_and_an_empty_one_is_inconclusive(shard: Path, capsys: Print) -> None:
    text = shard.read_text()
    shard.write_text(text.replace('"seed": 1', '"seed": 2', 1))
    assert main(["replay", str(shard), "--device", WRONG]) == 2
    assert "something was changed or damaged" in capsys.readouterr().err
    shard.unlink()
    words = ["validate", X86, X86, "--plan", str(shard.parents[1] / "mine.toml"), "--seed", "1", "--shard", "0/1"]
    assert main([*words, "--out", str(shard.parent)]) == 0
    assert main(["replay", str(shard)]) == 4
    assert "no mismatch is kept there" in capsys.readouterr().out


def test_the_first_mismatches_of_a_table_are_shown_and_of_the_others_each_is_a_line() -> None:
    rows = [
        InstructionRow(
            f"i{number}", "mismatch", vectors=9, mismatches=1, detail="in short", shown=(f"i{number}: one", "^")
        )
        for number in range(SHOWN + 2)
    ]
    equal = InstructionRow("e", "equal", vectors=9, detail="nothing", shown=("never",))
    failed = InstructionRow("f", "failed", detail="broke down")
    said = [each.text for each in troubles([equal, failed, *rows])]
    shown = [line for number in range(SHOWN) for line in (f"i{number}: one", "^")]
    assert said == ["f: broke down", *shown, f"i{SHOWN}: in short", f"i{SHOWN + 1}: in short"]
