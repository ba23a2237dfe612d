"""What people read: help in whole sentences, lines that break between words on a terminal and nowhere else."""

from __future__ import annotations

import io
import re
import shlex

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from cases.command_tree import commands
from mmaprobe.cli import main
from mmaprobe.cli.terminal import app
from mmaprobe.report.console import ENDLESS, PlainConsole, folded
from mmaprobe.report.fitted import RuledTable
from mmaprobe.report.run_summary import InstructionRow, RunSummary
from mmaprobe.report.tables.listing import table
from mmaprobe.report.tables.run import SummaryTable
from mmaprobe.showing import human, per_second

EVERY = [name for name, _ in commands(typer.main.get_command(app))]
GROUPS = ["", *sorted({name.partition(" ")[0] for name in EVERY if " " in name})]
WORD = st.text("ab'-=:0", min_size=1, max_size=12)


@pytest.mark.parametrize("name", [*GROUPS, *EVERY])
def test_help_is_whole_sentences(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert not re.search(r"<\w+|[{}]|9223372036854775807|Path\b", said)
    if name in GROUPS:
        listed = " ".join(said.partition("Commands:\n")[2].split())
        assert not re.search(r"\.\.\.( |$)", listed), "a sentence is cut"
        assert listed.count(".") >= len([each for each in EVERY if each.startswith(name)]) // 4


def test_help_says_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    assert "Begin with mmaprobe doctor" in capsys.readouterr().out


@given(st.lists(WORD, min_size=1, max_size=30), st.integers(0, 8), st.integers(10, 100))
def test_a_line_breaks_between_words(words: list[str], indent: int, width: int) -> None:
    line = " " * indent + " ".join(words)
    lines = folded(line, width).split("\n")
    assert " ".join(lines).split() == line.split()
    assert all(len(each) <= width or len(each.split()) == 1 for each in lines)
    assert all(each.startswith(" " * indent) for each in lines)


@given(st.lists(st.text("ab '*=", max_size=20), min_size=1, max_size=12), st.integers(20, 100))
def test_a_command_that_is_broken_can_be_copied(words: list[str], width: int) -> None:
    command = shlex.join(["mmaprobe", "explain", *words])
    said = folded(f"  why: {command}", width).partition("why:")[2]
    if "  " not in command:
        assert "\n" not in said.replace("\\\n", "").strip(), "a line that goes on says so"
        assert shlex.split(said.replace("\\\n", "")) == ["mmaprobe", "explain", *words]


def test_columns_stay_where_they_are() -> None:
    line = "      answer      0xb31a4d60  1 01100110 00110100100110101100000  -0x1.349acp-25  and more of it"
    assert folded(line, 40) == line


def shown(what: object, width: int) -> list[str]:
    out = io.StringIO()
    PlainConsole(file=out, width=width).print(what)
    return out.getvalue().splitlines()


def test_what_is_no_terminal_has_no_edge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(" ") or line != line.rstrip()] == []
    assert any(line.startswith("model:ARCH") and line.endswith("as a device") for line in lines)
    assert main(["instructions", "gfx942"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("v_mfma_f64_16x16x4_f64 ")]
    assert [row.split()[-1] for row in rows] == ["1"]
    words = "a text of many words " * 40
    assert shown(words, ENDLESS) == [words.rstrip()]


def test_no_row_ends_in_spaces() -> None:
    rows = [{"name": "a", "what": "b"}, {"name": "longer", "what": "more than b"}]
    assert shown(table(rows, ("name", "what")), 80) == ["name    what", "a       b", "longer  more than b"]


def test_steps_are_shown_whole_whatever_the_width() -> None:
    steps = RuledTable("operands", "lane", "a", "")
    steps.add_row("0", "3ff123456789abcd", "0x1.123456789abcdp+0")
    steps.add_row("c", "bff71547652b82fe")
    assert shown(steps, 80)[-3:-1] == [" 0      3ff123456789abcd   0x1.123456789abcdp+0", " c      bff71547652b82fe"]
    cards = shown(steps, 30)
    assert cards[2:-1] == [
        "lane 0",
        "  a  3ff123456789abcd",
        "     0x1.123456789abcdp+0",
        "",
        "c",
        "  a  bff71547652b82fe",
    ]


def test_explain_cuts_no_number_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    words = ["x86-64+amd", "x86.vfmadd.f64", "0x3ff123456789abcd", "0x4005bf0a8b145769", "0xbff71547652b82fe"]
    assert main(["explain", *words]) == 0
    said = capsys.readouterr().out
    assert "…" not in said
    assert "0x1.74aeb6f6c425078db2fbde2215p+1" in said


@pytest.mark.parametrize(
    ("rate", "said"),
    [(5_120_000, "5.12 M/s"), (12_000, "12 k/s"), (340.4, "340/s"), (0.25, "0.25/s"), (7, "7/s"), (999_999, "1 M/s")],
)
def test_rates_of_slow_devices_too(rate: float, said: str) -> None:
    assert per_second(rate) == said


@given(st.integers(0, 10**14))
def test_a_count_has_three_digits_at_most_behind_which_stands_its_unit(count: int) -> None:
    assert re.fullmatch(r"\d{1,3}(\.\d{1,2})?( [kMGT])?", human(count)), human(count)


def test_the_last_lines_of_a_run_break_between_words() -> None:
    row = InstructionRow(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mismatch", {"order": "a of b " * 20}, 9, 1
    )
    summary = RunSummary("cpu", {}, "run", "0.1.0", 1, (row,), evidence="e")
    lines = shown(SummaryTable(summary), 60)
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).endswith(f"evidence: e {summary.meaning}")


def test_a_row_of_counts_is_one_line_where_it_is_too_wide() -> None:
    rows = [{"architecture": "gfx942", "forms": 57, "split": 0, "published": 1136, "predicted": 19}]
    lines = shown(table(rows, tuple(rows[0])), 40)
    assert lines == ["gfx942", "  forms 57 · published 1,136 ·", "  predicted 19"]


@pytest.mark.parametrize(
    ("words", "next_command"),
    [
        ("explain sm_90a", "mmaprobe explain --help"),
        ("nonsense", "mmaprobe --help"),
        ("run --devce cpu", "mmaprobe run --help"),
        ("plot tree sm_90a", "mmaprobe plot tree --help"),
        ("report nowhere", "mmaprobe evidence list"),
        ("corpus list nowhere", "mmaprobe corpus import"),
    ],
)
def test_a_mistake_names_the_next_command(words: str, next_command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert f"; {next_command}" in capsys.readouterr().err.replace("see ", "")


def test_a_row_on_a_pipe_is_one_line_that_is_not_padded_to_the_widest() -> None:
    rows = [{"a": "x", "n": 7, "b": "one\nand two " * 9, "c": "end"}, {"a": "long", "n": 1234, "b": "", "c": "here"}]
    lines = shown(table(rows, ("a", "n", "b", "c")), ENDLESS)
    assert len(lines) == 3
    assert lines[0].split() == ["a", "n", "b", "c"]
    assert lines[1].startswith("x         7  one and two one ")
    assert lines[2] == f"long  1,234  {'':60}  here"
