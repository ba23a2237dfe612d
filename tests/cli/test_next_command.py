"""Mistakes of a first day: what is wrong in a line, and the command or the names that are right."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

import mmaprobe
from cases.command_tree import commands
from mmaprobe.cli import main
from mmaprobe.cli.terminal import app
from mmaprobe.derivation.budget import ALLOWANCE
from mmaprobe.errors import UsageError, near

INSTRUCTION = "mma.m16n8k16.f32.f16.f16.f32"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["validate", "cpu"], "name a reference, such as model:x86-64, and an instruction; or compare many by a plan"),
        (["validate", "cpu", "model:x86-64"], "name an instruction; or compare many by a plan: --plan quick"),
        (["validate", "cpu", "model:x86-64", "x86.d*"], "'x86.d*' names many instructions; compare them by a plan"),
        (
            ["explain", "sm_90a", "mma.*", "a=1"],
            "one is wanted; mmaprobe instructions ARCH --instruction 'mma.*' lists them",
        ),
        (["explain", "sm_90a", INSTRUCTION, "a=1"], "operands missing; add b=... c=..."),
        (["instructions", "sm_90a", "--family", "foo"], "no family 'foo' in sm_90a; it has"),
        (["instructions", "sm_70", "-i", "foo*"], "matches 'foo*'; mmaprobe instructions sm_70 lists them"),
        (["gemm", "identify", "gemm:foo?m=8&n=8&k=8"], "those that ship: "),
        (["tree", "function:nowhere.py:f?k=4"], "nowhere.py: No such file or directory"),
    ],
)
def test_a_mistake_says_what_is_right(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1


def test_nothing_is_near_no_name() -> None:
    assert near("", [f"name {number}" for number in range(20)]) == ""


def test_an_allowance_that_pays_for_nothing_ends_without_an_answer() -> None:
    found = mmaprobe.derive("model:x86-64", "x86.pmaddwd", allowance=5)
    assert found.status == "inconclusive"
    assert "no answer within the allowance of 5" in found.in_a_line()


def test_help_says_the_allowance_that_there_is() -> None:
    derive = dict(commands(typer.main.get_command(app)))["derive"]
    (option,) = (each for each in derive.params if each.name == "allowance")
    assert f"without it {ALLOWANCE:,}." in option.help


def test_a_mismatch_that_is_asked_again_ends_in_the_command_that_explains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    words = ["validate", "model:sm_90a", "model:sm_80", INSTRUCTION, "-n", "200", "--seed", "1", "--save", str(kept)]
    assert main(words) == 1
    capsys.readouterr()
    assert main(["replay", str(kept)]) == 1
    said = capsys.readouterr().out
    assert said.count("why: mmaprobe explain sm_80 mma.sync.") == said.count("mismatch (") > 0


def test_a_tree_says_how_its_words_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "function:numpy:sum?k=12"]) == 0
    said = capsys.readouterr().out
    assert "\nread as: (n by s): n terms that begin s lanes apart; " in said
    assert ("chain: one after another" in said) == ("chain" in said.partition("tree:")[2].partition("\n")[0])


def test_a_run_that_goes_on_otherwise_is_told_in_words(tmp_path: Path) -> None:
    mmaprobe.run("cpu", instruction="x86.pmaddwd", vectors=100, seed=1, out=tmp_path / "run")
    with pytest.raises(UsageError, match="was begun with other settings: instruction was "):
        mmaprobe.run("cpu", instruction="x86.dpps", vectors=100, seed=1, out=tmp_path / "run", resume=True)
