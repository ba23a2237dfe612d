"""What commands do alike: version, help, JSON with a schema number, tables that fit, output that cannot be written."""

from __future__ import annotations

import builtins
import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

import mmaprobe
from cases.command_tree import commands
from mmaprobe import __main__ as program
from mmaprobe.catalog.names import say
from mmaprobe.cli import main, terminal
from mmaprobe.cli.terminal import app
from mmaprobe.report import progress
from mmaprobe.report.console import PlainConsole
from mmaprobe.report.tables.listing import table

EXPLAIN = ["explain", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32", "a=1", "b=1", "c=0"]


EVERY = dict(commands(typer.main.get_command(app)))


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mmaprobe {mmaprobe.__version__}\n"
    assert main(["-h"]) == 0
    said = capsys.readouterr().out
    assert "--show-completion" in said
    for name in EVERY:
        assert main([*name.split(), "-h"]) == 0
        assert "Usage: " in capsys.readouterr().out


def test_a_group_without_a_command_is_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["gemm"], ["parameters"]):
        main([*words, "--help"])
        said = capsys.readouterr().out
        assert main(words) == 2
        assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("name", sorted(name for name, each in EVERY.items() if any(p.required for p in each.params)))
def test_a_command_without_its_words_says_in_a_line_what_is_missing(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(name.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(("mmaprobe: Missing argument ", "mmaprobe: Missing option "))
    assert said.endswith(f"; see mmaprobe {name} --help\n")
    assert said.count("\n") == 1


def test_every_command_has_json() -> None:
    assert len(EVERY) > 28
    assert [name for name, each in EVERY.items() if not any("--json" in option.opts for option in each.params)] == []


@pytest.mark.parametrize(
    "command",
    ["plans", "devices", "doctor", "instructions gfx942", "instructions", "parameters show gfx942", " ".join(EXPLAIN),
     "vectors show mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32/cancel.2/1/0@0,0", "diff sm_80 sm_86"],
)  # fmt: skip
def test_a_document_has_the_number_of_its_schema(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*command.split(), "--json"])
    assert json.loads(capsys.readouterr().out)["schema"] == 1


@pytest.mark.parametrize("command", ["instructions sm_999", "explain sm_90a nope 1", "diff sm_80", "nonsense"])
def test_an_error_is_a_document_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*command.split(), "--json"])
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["schema"], document["exit_code"]) == (1, code)
    assert said.err == f"mmaprobe: {document['error']}\n"


def test_a_command_that_ends_early_has_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> int:
        terminal.emit({"plans": 3})
        raise KeyboardInterrupt

    monkeypatch.setattr("mmaprobe.campaigns.plan.plan_names", interrupted)
    assert main(["plans", "--json"]) == 130
    assert json.loads(capsys.readouterr().out) == {"plans": 3, "schema": 1}


def run(*words: str, **given: Any) -> subprocess.CompletedProcess[str]:
    called = [sys.executable, "-m", "mmaprobe", *words]
    return subprocess.run(called, stderr=subprocess.PIPE, text=True, check=False, timeout=120, **given)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_output_that_its_encoding_has_not_is_one_line(encoding: str) -> None:
    done = run(*EXPLAIN, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONIOENCODING": encoding})
    assert done.returncode == 6
    assert done.stderr.count("\n") == 1
    assert f"its encoding {encoding} has no " in done.stderr


@pytest.mark.parametrize("words", [["plans"], ["plans", "--json"], ["--help"]])
def test_output_that_is_full_or_closed_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = run(*words, stdout=full)
    assert (done.returncode, done.stderr) == (6, "mmaprobe: cannot write to standard output: No space left on device\n")
    closed = run(*words, preexec_fn=lambda: os.close(1))
    assert (closed.returncode, closed.stderr) == (6, "mmaprobe: cannot write to standard output: it is closed\n")


@pytest.mark.long
def test_errors_that_cannot_be_written_keep_their_code() -> None:
    words = [sys.executable, "-m", "mmaprobe", "explain", "sm_90a", "nope", "1"]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, preexec_fn=lambda: os.close(2))
    assert (done.returncode, done.stdout) == (2, "")
    with open("/dev/full", "w") as full:
        assert subprocess.run(words, stderr=full, check=False).returncode == 2


def test_an_interrupt_while_it_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = builtins.__import__

    def interrupted(name: str, *rest: Any, **more: Any) -> Any:
        if name == "mmaprobe.cli":
            raise KeyboardInterrupt
        return load(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert program.main() == 130
    assert capsys.readouterr().err == "mmaprobe: interrupted\n"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_by_the_way_break_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("MMAPROBE_SEED", raising=False)
    monkeypatch.setattr(sys, "stderr", Screen())
    say.cache_clear()
    instruction = "wgmma.m64n32k32.f32.e4m3.e4m3"
    assert main(["validate", "model:sm_90a", "model:sm_90a", instruction, "-n", "3", "--nan", "any"]) == 0
    said = sys.stderr.getvalue()
    told = [line for line in said.replace("\x1b[2K", "\n").splitlines() if "wgmma" in line]
    assert "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3" in told
    assert all(len(line) <= 80 for line in told)
    assert "the same vectors again: mmaprobe validate --seed" in " ".join(said.split())


def shown(rows: list[dict[str, Any]], width: int) -> str:
    out = io.StringIO()
    PlainConsole(file=out, width=width).print(table(rows, tuple(rows[0])))
    return out.getvalue()


ID = "wgmma.mma_async.sync.aligned.m64n{8..256:8}k16.f32.f16.f16{a=regs}"


def test_a_table_wraps_texts_and_no_id() -> None:
    rows = [{"instruction": ID, "what": "one of the words of a text that goes on and on", "ids": 1536}]
    said = shown(rows, 100)
    assert said.startswith("instruction")
    assert ID in said
    assert "1,536" in said
    assert max(map(len, said.splitlines())) <= 100


def test_what_is_too_wide_is_a_card_a_row() -> None:
    rows = [
        {"instruction": ID, "what": "words of a text that goes on", "empty": "", "ids": number} for number in (1, 2)
    ]
    lines = shown(rows, 40).splitlines()
    assert [line for line in lines if not line.startswith(" ") and line] == [ID, ID]
    assert "  what   words of a text that goes on" in lines
    assert not any("empty" in line for line in lines)


@given(
    st.lists(st.tuples(st.text("ab.", min_size=1, max_size=40), st.text("xy ", max_size=80)), min_size=1, max_size=4),
    st.integers(10, 120),
)
@example([("aaaa", " xxxx")], 10)
def test_no_word_is_ever_broken(rows: list[tuple[str, str]], width: int) -> None:
    said = shown([{"id": one, "text": other} for one, other in rows], width)
    for one, other in rows:
        assert one in said
        assert set(other.split()) <= set(said.split())


def test_what_a_bar_is_at_stands_above_it_where_the_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    identifier = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    bars = progress.RunProgress()
    bars.begin(66, 1_320_000)
    bars.step("instructions", "every one")
    bars.at(f"{identifier}: structures that agree with what was told", 7.0)
    bars.compared(20_000)
    out = io.StringIO()
    PlainConsole(file=out, width=80).print(bars.bars.get_renderable())
    lines = out.getvalue().splitlines()
    said = " ".join(out.getvalue().split())
    assert f"instructions: {identifier}: structures that agree with what was told" in said
    assert any("0 of 66 instructions, 0:07 left" in line for line in lines)
    assert any("20 k of 1.32 M vectors" in line for line in lines)
    assert "…" not in said
    assert all(len(line) <= 80 for line in lines)
