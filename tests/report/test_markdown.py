"""The Markdown page of a run: what is wrong first, and nothing that Markdown would take for its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.cli import main
from mmaprobe.report import markdown
from mmaprobe.report.run_summary import InstructionRow, RunSummary

ROWS = (
    InstructionRow("x86.dpps", "equal", vectors=30_000, drawn=30_000),
    InstructionRow("a|b`c\n<img>", "mismatch", vectors=10, mismatches=3, detail="<script> | `x`\nsecond", drawn=10),
    InstructionRow("x86.late", "inconclusive", detail="y" * 1000),
)


def summary(rows: tuple[InstructionRow, ...] = ROWS, **said: object) -> RunSummary:
    return RunSummary("cuda:0", {"architecture": "sm_90a"}, "run", "0.1", 7, rows, **said)  # type: ignore[arg-type]


def page(*rows: InstructionRow) -> list[str]:
    return markdown.to_markdown(summary(rows or ROWS), ["a line"]).splitlines()


def test_the_page_says_what_was_compared() -> None:
    said = page()
    assert said[0] == "### cuda:0 sm_90a: exit code 1"
    assert "- 30,010 vectors, 3 mismatches" in said
    assert "- of 3 instructions and control states 2 not equal" in said
    assert "- a line" in said
    assert said[-1].startswith("Equal means: ")
    assert page(ROWS[0])[0] == "### cuda:0 sm_90a: passed"
    bound = (
        "a fault rate above 3/30,000 of such vectors is excluded at 95 %; for each instruction alone, above 1 in 10,000"
    )
    assert f"- 0 of 30,000: {bound}" in page(ROWS[0])
    assert not any("excluded at 95 %" in line for line in said if line.startswith("- "))


def test_a_baseline_that_is_not_met_is_no_pass() -> None:
    said = markdown.to_markdown(summary(ROWS[:1]), failure="changed, and not accepted: x86.dpps").splitlines()
    assert said[0] == "### cuda:0 sm_90a: failed"
    assert "- changed, and not accepted: x86.dpps" in said


def test_what_is_wrong_comes_first_and_has_no_bound() -> None:
    assert [line for line in page() if line.startswith("| `")] == [
        "| `a\\|b'c <img>` | mismatch | 10 | 3 |  |  |",
        "| `x86.late` | inconclusive | 0 | 0 |  |  |",
        "| `x86.dpps` | equal | 30,000 | 0 | 1 in 10,000 |  |",
    ]


def test_a_reason_is_plain_text_of_one_line() -> None:
    assert "- `a\\|b'c <img>`: &lt;script> \\| 'x' second" in page()
    assert f"- `x86.late`: {'y' * 150} ... {'y' * 150}" in page()


def test_a_long_mismatch_keeps_its_answers_and_the_command_that_asks_it_again() -> None:
    """A command of which the end is missing is none, and what lies between asterisks is no vector in italics."""
    vector, end = ",".join(["0x0*4", "0x3c00*12"] * 20), "gives 0x1, expected 0x2; 7 wrong on multiprocessor 77"
    command = f"mmaprobe replay {'e' * 400}/x86.dpps.json"
    said = page(InstructionRow("x86.dpps", "mismatch", 9, 7, detail=f"{vector} {end}; again: {command}"))
    (line,) = (each for each in said if each.startswith("- `x86.dpps`: 0x0\\*4,0x3c00\\*12"))
    assert line.endswith(f"{end}; again: {command}")
    assert len(line) < 900
    assert "*" not in line.replace("\\*", "")


def test_a_page_has_an_end() -> None:
    """What is wrong is never what is left out."""
    many = (*[InstructionRow(f"i{number}", "equal", vectors=1) for number in range(markdown.MOST_ROWS + 4)], ROWS[1])
    said = [line for line in page(*many) if line.startswith("|")][2:]
    assert (len(said), said[-1]) == (markdown.MOST_ROWS + 1, "| and 5 more | | | | | |")
    assert "mismatch" in said[0]


def test_commands_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    pair = ["validate", "model:x86-64+intel", "model:x86-64+amd", "x86.pmaddwd"]
    plan = [*pair, "--plan", "smoke", "--seed", "1"]
    assert main([*plan, "--markdown", "one.md"]) == 0
    assert main([*plan, "--shard", "0/1", "--out", "shards"]) == 0
    assert main(["merge", "shards", "--out", "whole", "--markdown", "two.md"]) == 0
    one, two = (Path(name).read_text() for name in ("one.md", "two.md"))
    assert "| `x86.pmaddwd` | equal | 20,000 | 0 | 1 in 6,666 |" in one
    assert one == two
    assert main([*plan, "--markdown", "one.md/in_a_file.md"]) == 6
    assert main([*pair, "--markdown", "one.md"]) == 2
    assert "goes with --plan" in capsys.readouterr().err
    run = ["run", "-d", "model:x86-64", "-i", "x86.pmaddwd", "-n", "1000", "--seed", "1", "--out", "e"]
    assert main([*run, "--markdown", "run.md"]) == 0
    assert "| `x86.pmaddwd` | equal | " in Path("run.md").read_text()
