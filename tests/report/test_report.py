"""Reports of a run: phrases, the terminal table, JSON and JUnit."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console, Group

import mmaprobe
from mmaprobe.errors import CannotWriteError
from mmaprobe.evidence.records import Mismatch, Retest, Witness
from mmaprobe.operands import literal
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Operand,
    Product,
    Products,
    Special,
    Zero,
)
from mmaprobe.report import json as report_json
from mmaprobe.report import junit
from mmaprobe.report.console import PlainConsole
from mmaprobe.report.datapath.order import lanes_text
from mmaprobe.report.datapath.phrases import COLUMNS, describe
from mmaprobe.report.mismatches import mismatch_lines
from mmaprobe.report.run_summary import EXIT_CODES, InstructionRow, RowOutcome, RunSummary
from mmaprobe.report.tables.run import SummaryTable, short_count

F32 = Encode("f32")
FLUSHED = Operand("signed_zero")
VDPBF16 = Datapath(
    "bf16", "bf16", "f32", "f32", 2, Fma(Accumulator(), (1, 0), Encode("f32", subnormals="signed_zero")),
    operand_a=FLUSHED, operand_b=FLUSHED, operand_c=FLUSHED,
    special=Special("global", 0xFFC00000, ("a0", "b0", "a1", "b1", "c")),
)  # fmt: skip
DPPS = Datapath(
    "f32", "f32", None, "f32", 4,
    Add(Add(Products((0,)), Products((1,)), F32), Add(Products((2,)), Products((3,)), F32), F32),
    product=Product(to=Encode("f32", "RZ")), special=Special("local", 0xFFC00000, ("a", "b"), False, True),
)  # fmt: skip
TENSOR = Datapath(
    "f16", "f16", "f32", "f32", 32,
    Fused.alike((Accumulator(), Products(tuple(range(16)))), 25, to=Encode("f32", "RZ")), step=16,
    operand_a=Operand("zero"), special=Special(code=0x7FFFFFFF),
)  # fmt: skip
SATURATING = Datapath(
    "u8", "s8", "s32", "s32", 4,
    Exact((Accumulator(), Products((0, 1, 2, 3))), Encode("s32", overflow="largest")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("datapath", "phrases"),
    [
        (VDPBF16, ("fma 1 then 0", "f32 each", "RNE", "flushed, sign kept", "first NaN of a0 b0 a1 b1 c; 0xffc00000")),
        (DPPS, ("(0+1)+(2+3)", "products f32, f32 each", "products RZ, RNE", "kept",
                "local NaN, a b, signalling first, not quieted; 0xffc00000")),
        (TENSOR, ("2 times: 16 products + c at once", "25 bits below the largest",
         "align RZ, result RZ", "inputs flushed to +0, kept; results kept",
                  "NaN 0x7fffffff")),
        (SATURATING, ("4 products + c exactly", "every bit", "saturates", "-", "-")),
    ],
    ids=["vdpbf16ps", "dpps", "tensor core", "integer"],
)  # fmt: skip
def test_a_datapath_in_a_few_words(datapath: Datapath, phrases: tuple[str, ...]) -> None:
    assert tuple(describe(datapath).values()) == phrases
    assert tuple(describe(datapath)) == COLUMNS


def test_long_chains_single_fmas_and_wrapping_integers() -> None:
    even, odd = tuple(range(0, 32, 2)), tuple(range(1, 32, 2))
    tree = Add(Accumulator(), Add(Fma(Zero(), even, F32), Fma(Zero(), odd, F32), F32), F32)
    assert describe(Datapath("bf16", "bf16", "f32", "f32", 32, tree))["order"] == "c+(fma[0, 2 .. 30]+fma[1, 3 .. 31])"
    assert describe(Datapath("f32", "f32", "f32", "f32", 1, Fma(Accumulator(), (0,), F32)))["order"] == "fma"
    wrapping = replace(SATURATING, tree=Exact((Products((0, 1, 2, 3)),), Encode("s32", overflow="wrap")), c=None)
    assert describe(wrapping)["rounding"] == "wraps"
    assert lanes_text((0, 3, 4, 5, 6)) == "0, 3, 4, 5, 6"
    every = tuple(f"{side}{lane}" for lane in range(8) for side in "ab")
    listed = describe(replace(VDPBF16, k=8, step=2, special=Special("global", 1, (*every, "c"))))["specials"]
    assert listed == "first NaN of a0 b0 a1 .. c; 0x00000001"


LONG = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
EQUAL = InstructionRow("x86.vdpbf16ps", "equal", describe(VDPBF16), 10_000_000, 0, 1.25, "same")
WRONG = InstructionRow(LONG, "mismatch", describe(TENSOR), 1_250_001, 3, 2.0, "changed", "a=0x1 d=0x2\x07")
BROKEN = InstructionRow("x86.pmaddwd", "failed", detail="illegal instruction")
SUMMARY = RunSummary(
    "cpu", {"architecture": "x86-64+intel"}, "abc123", "0.1.0", 7, (EQUAL, WRONG, BROKEN),
    (("x86.tdpbf16ps", "needs amx-bf16"),), "evidence/abc123", 3.5,
)  # fmt: skip


def rendered(summary: RunSummary, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(SummaryTable(summary))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 160, 200])
def test_the_table_fits_and_loses_nothing(width: int) -> None:
    text = rendered(SUMMARY, width)
    assert max(map(len, text.splitlines())) <= width
    squeezed = "".join(text.split())
    for row in SUMMARY.rows:
        assert row.instruction in squeezed or width >= 150  # a wide table folds an id within its column
    for piece in ("10M", "1,250,001", "failed", "1.2s", "needsamx-bf16", "evidence/abc123", "11,250,001vectorscompared",
                  "illegalinstruction", "notwhattheshippedparameterssay", "notaproofforall"):  # fmt: skip
        assert piece in squeezed, piece
    if width < 150:
        assert "subnormals flushed, sign kept" in " ".join(text.split())


def test_what_is_not_here_is_a_line_a_reason_and_never_a_wall() -> None:
    """Named: six instructions of each of three reasons; the rest are counted."""
    missing = [(f"one{n}", "needs amx-tile") for n in range(9)] + [(f"two{n}", f"reason {n}") for n in range(50)]
    text = rendered(replace(SUMMARY, not_here=tuple(missing)), 200)
    assert [line.rstrip() for line in text.splitlines() if "not here" in line] == [
        "not here: one0, one1, one2, one3, one4, one5 and 3 more: needs amx-tile",
        "not here: two0: reason 0",
        "not here: two1: reason 1",
        "not here: 48 more; --json gives every reason",
    ]


def test_counts_lose_nothing() -> None:
    assert [short_count(n) for n in (0, 999, 1000, 1250000, 1234567, 10**9)] == [
        "0", "999", "1 k", "1.25 M", "1,234,567", "1 G",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["equal"], 0),
        (["equal", "inconclusive"], 4),
        (["equal", "unwritten", "inconclusive"], 6),
        (["mismatch", "unwritten"], 1),
        (["changed", "equal"], 1),
        (["changed", "unwritten", "inconclusive"], 1),
        (["mismatch", "failed"], 5),
        (["mismatch", "failed", "internal"], 70),
    ],
)
def test_the_exit_code_is_the_worst_in_the_stated_order(outcomes: list[RowOutcome], code: int) -> None:
    rows = tuple(InstructionRow(str(i), outcome, vectors=1) for i, outcome in enumerate(outcomes))
    assert replace(SUMMARY, rows=rows).exit_code == code
    assert set(EXIT_CODES) >= set(outcomes)


def test_a_changed_datapath_fails_by_itself() -> None:
    row = InstructionRow("x", "changed", vectors=1, parameters="changed", changes=("a: 1 -> 2", "b: 3 -> 4"))
    changed = replace(SUMMARY, rows=(row,))
    assert (changed.exit_code, replace(changed, check=True).exit_code) == (1, 1)
    assert changed.remarks == ("x is not what is shipped: a: 1 -> 2; b: 3 -> 4",)
    said = junit.to_junit(changed)
    assert '<failure type="changed" message="changed: 0 of 1 vectors differ; not what is shipped: a: 1 -' in said
    assert report_json.to_json(changed)["instructions"][0]["changes"] == row.changes


def test_what_is_new_or_missing_fails_only_where_that_was_asked_for() -> None:
    new = replace(SUMMARY, rows=(InstructionRow("x", "equal", vectors=1, parameters="new"),))
    missing = replace(SUMMARY, rows=(EQUAL,), not_here=(("y", ""), ("z", "needs amx-bf16")))
    for summary, kind, said in (
        (new, "new", "new, nothing is shipped for it: x"), (missing, "missing", "missing, and nobody says why: y"),
    ):  # fmt: skip
        checked = replace(summary, check=True)
        assert (summary.exit_code, checked.exit_code) == (0, 1)
        assert summary.remarks == (said,)
        assert "<failure" not in junit.to_junit(summary)
        assert f'<failure type="{kind}"' in junit.to_junit(checked)
        suite = ElementTree.fromstring(junit.to_junit(checked).partition("\n")[2])
        assert (suite.get("failures"), suite.get("skipped")) == ("1", "1")


def test_fewer_instructions_than_demanded_and_a_budget_below_the_minimum_are_4() -> None:
    one = replace(SUMMARY, rows=(EQUAL, InstructionRow("y", "equal", parameters="same")))
    few = replace(one, least=2)
    below = replace(one, unreached=1, ended="the budget was spent; ...")
    assert [each.exit_code for each in (one, few, below)] == [0, 4, 4]
    assert few.remarks == ("1 instruction compared, fewer than --least 2",)
    for each in (few, below):
        assert 'name="the whole run"' in junit.to_junit(each)
    assert replace(below, rows=()).exit_code == 4
    assert replace(below, failure=130).exit_code == 130


def test_nothing_compared_is_not_equal() -> None:
    assert replace(SUMMARY, rows=(InstructionRow("i", "equal"),)).exit_code == 4
    assert replace(SUMMARY, rows=()).exit_code == 3
    assert replace(SUMMARY, rows=(), not_here=()).exit_code == 4


def test_json_holds_every_fact(tmp_path: Path) -> None:
    report_json.write(SUMMARY, tmp_path / "summary.json")
    read: dict[str, Any] = json.loads((tmp_path / "summary.json").read_text())
    assert (read["schema"], read["vectors"], read["mismatches"], read["exit_code"]) == (1, 11_250_001, 3, 5)
    assert read["instructions"][0]["phrases"]["order"] == "fma 1 then 0"
    assert read["not_here"] == [{"instruction": "x86.tdpbf16ps", "reason": "needs amx-bf16"}]
    with pytest.raises(CannotWriteError, match="--json"):
        report_json.write(SUMMARY, tmp_path / "summary.json" / "x")


def test_junit_says_failure_error_and_skipped(tmp_path: Path) -> None:
    junit.write(SUMMARY, tmp_path / "junit.xml")
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {
        "x86.vdpbf16ps": [], LONG: ["failure"], "x86.pmaddwd": ["error"], "x86.tdpbf16ps": ["skipped"],
    }  # fmt: skip
    failure = suite.find(".//failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("mismatch: 3 of 1,250,001 vectors differ", "a=0x1 d=0x2?")


def test_what_a_device_says_is_no_markup_and_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """In tables, lines and headings alike: escapes are shown, brackets and colons stay what they are."""
    from mmaprobe.cli.terminal import out, show

    said = "x[/red] [bold]y[/bold] :smile: \x1b]0;title\x07\x1b[2J\u202e"
    show([{"device": said}], False, ("device",))
    out().print(said)
    shown = capsys.readouterr().out
    assert shown.count(r"x[/red] [bold]y[/bold] :smile: \x1b]0;title") == 2
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown


SAID = "x[/red] [bold]y[/bold] :smile: \x1b]0;title\x07\x1b[2J\u202e\r\tz\nnext"
SHOWN = r"x[/red] [bold]y[/bold] :smile: \x1b]0;title\x07\x1b[2J\u202e\r\tz\nnext"


@pytest.mark.parametrize("bar", ["run", "survey", "step", "kernel", "calls"])
def test_what_a_device_says_is_one_line_of_a_bar(bar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bars too, where an escape that grew after its width was taken, or a second line, would displace the others."""
    from mmaprobe.report import progress

    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    for name, value in (("FORCE_COLOR", "1"), ("COLUMNS", "160"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    if bar == "run":
        with progress.RunProgress() as bars:
            bars.begin(1, 1)
            bars.bars.refresh()
            bars.at(SAID, None)
    elif bar == "survey":
        with progress.RunProgress() as survey:
            survey.begin(1, None)
            survey.bars.refresh()
            survey.at(f"{SAID}: ", None)
    elif bar == "step":
        with progress.RunProgress() as steps:
            steps.step("survey", SAID)
            steps.at(SAID, 90.0)
    elif bar == "calls":
        with progress.CallsProgress(9) as calls:
            calls(SAID, 1)
    else:
        with progress.KernelProgress(2) as kernels:
            kernels(SAID)
    told = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert SHOWN[:60] in told
    assert not {"\x1b", "\x07", "\u202e", "\t"} & set(told)
    assert not [line for line in told.splitlines() if line.startswith("next")]


def test_the_bars_of_a_run() -> None:
    """What it is at and how far, the time left, the vectors; of how many where somebody knows."""
    from mmaprobe.report import progress

    with progress.RunProgress() as bars:
        bars.step("instructions", "each in turn")
        bars.begin(21, 2 * 10**8)
        bars.at("x86.dpps: structure", 90.0)
        bars.derived("x86.dpps")
        bars.compared(10**6)
        derive, compare = bars.bars.tasks
    assert derive.description == "instructions: x86.dpps: structure"
    assert derive.fields["count"] == "1 of 21 instructions, 1:30 left"
    assert compare.fields["count"].startswith("1 M of 200 M vectors")
    assert (derive.completed, derive.total, compare.completed, compare.total) == (1, 21, 10**6, 2 * 10**8)
    with progress.RunProgress() as bars:
        bars.begin(7, None)
        bars.compared(2000)
    assert bars.bars.tasks[1].fields["count"] == "2 k vectors"


def test_a_log_has_a_line_after_a_minute_then_ever_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 60 s, 120 more, 240 more; one line each, of both bars where both are there."""
    from mmaprobe.report import progress

    clock, said = [0.0], io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with progress.KernelProgress(900) as kernels, progress.RunProgress() as run:
        kernels.bars.get_time = run.bars.get_time = lambda: clock[0]
        run.begin(3, 10**9)
        for second in range(0, 430, 10):
            clock[0] = second
            kernels(f"mma.{second}")
        for second in (430, 500):
            clock[0] = second
            run.at("x86.dpps\x1b: structure", None)
            run.compared(10**6)
    lines = said.getvalue().splitlines()
    assert [line.partition(" kernels")[0] for line in lines[:3]] == [
        "mmaprobe: mma.60: 7 of 900", "mmaprobe: mma.180: 19 of 900", "mmaprobe: mma.420: 43 of 900"
    ]  # fmt: skip
    assert lines[3].startswith("mmaprobe: x86.dpps\\x1b: structure: 0 of 3 instructions; comparing: 1 M of 1 G vectors")
    assert len(lines) == 4


def test_bars_tell_rate_and_time_left_on_a_narrow_terminal() -> None:
    """Of a million vectors a second 195 million take 3:15; what each bar is at stands above it, whole."""
    from mmaprobe.report import progress

    clock = [0.0]
    with progress.RunProgress() as run, progress.CountProgress(10**7) as count, progress.KernelProgress(8) as kernels:
        for each in (run, count, kernels):
            each.bars.get_time = lambda: clock[0]
        run.begin(21, 2 * 10**8)
        run.at("x86.vfmadd231ph{daz,ftz,rounding=rz}: structure of the sum, what single terms become", 90.0)
        for _ in range(5):
            clock[0] += 1
            run.compared(10**6)
            count(10**6)
            kernels("mma")
        shown = io.StringIO()
        Console(file=shown, width=80, color_system=None).print(Group(*run.bars.get_renderables()))
    assert count.bars.tasks[0].fields["count"] == "5 M of 10 M vectors, 1 M/s, 0:05 left"
    assert kernels.bars.tasks[0].fields["count"] == "5 of 8 kernels, 0:03 left"
    first, more, derived, what, compared = shown.getvalue().splitlines()
    assert f"{first} {more}" == "x86.vfmadd231ph{daz,ftz,rounding=rz}: structure of the sum, what single terms become"
    assert what == "comparing"
    assert "0 of 21 instructions, 1:30 left" in derived
    assert "5 M of 200 M vectors, 1 M/s, 3:15 left" in compared


def test_an_explanation_is_no_markup_and_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headline, titles, cells and classes: whatever a file says of a datapath."""
    from mmaprobe.report.datapath import explain

    said = SAID.partition("\r")[0]
    monkeypatch.setattr(explain, "headline", lambda path: said)
    monkeypatch.setattr(explain, "node_line", lambda node: said)
    monkeypatch.setattr(explain, "classes_of", lambda path: {"k": said})
    made = mmaprobe.model("sm_90a", "mma.m16n8k8.f32.f16.f16.f32")
    vector = literal.parse_vector(made.instruction, ["1"] * 17)
    told = explain.text(made.datapath, vector, 400)
    told = " ".join(told.split())
    assert told.count("x[/red] [bold]y[/bold] :smile:") >= 3
    assert not {"\x1b", "\x07", "\u202e"} & set(told)


def test_a_mismatch_that_is_right_when_asked_again_does_not_read_as_a_right_one() -> None:
    """An answer beside the same expected value would look like no mismatch at all."""
    told = Mismatch(Witness((1,), (2,), 3, 0xFFD2), 0xFFD2, "recipe", stable=False)
    head, _, answer = mismatch_lines(told)
    assert head == "mismatch (NOT STABLE on a retest): recipe"
    assert answer.strip() == "0xffd2 when asked again, as expected; not all its answers to this vector are"
    gone = replace(told, expected=0xFFD3, retests=(Retest(64, 0),), format="f16")
    head, _, *bits = mismatch_lines(gone)
    assert head == "mismatch (GONE: right 64 of 64 times when asked again): recipe"
    assert [line.split()[1] for line in bits[:2]] == ["0xffd2", "0xffd3"]


@pytest.mark.parametrize("length", [20, 50, 90, 140])
def test_an_id_is_never_broken(length: int) -> None:
    """However long: beside the phrases, or on a line of its own above them."""
    name = "mma." + "x" * (length - 4)
    phrases = dict.fromkeys(COLUMNS, "some words of a phrase that may be broken")
    row = InstructionRow(name, "equal", phrases, 1000)
    for width in (80, 160):
        held = io.StringIO()
        PlainConsole(width=width, file=held).print(SummaryTable(RunSummary("cpu", {}, "run", "0.1.0", 1, (row,))))
        assert name in held.getvalue()
