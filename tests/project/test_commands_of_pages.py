"""Every command that a page shows runs, page by page, and prints what the page shows.

``commands_of_pages.toml`` lists those that run otherwise than they stand there, for want of a GPU or of hours, and why.
Those that name a GPU run as they stand as well: where there is none they end with 3 and a line that names it and what
to do.  Those that need a tool run in a test of their own, where it is.  What another file runs names that file.
"""

from __future__ import annotations

import doctest
import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cases.shown_commands import ROOT, Place, Shown, shown
from mmaprobe.cli.terminal import app
from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError

KEYS = {"shown", "run", "why", "before", "needs", "says", "code", "elsewhere", "by"}
TABLE = tomllib.loads((Path(__file__).parent / "commands_of_pages.toml").read_text("utf-8"))
LONG: list[str] = TABLE.pop("long")
WHOLE: dict[str, str] = TABLE.pop("whole")
ROWS: dict[str, list[dict[str, Any]]] = TABLE
PAGES = [
    name
    for path in sorted((ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")))
    if "made" not in path.parts and any(shown((ROOT / (name := path.relative_to(ROOT).as_posix())).read_text("utf-8")))
]
NEEDY = sorted({(name, row["needs"]) for name, rows in ROWS.items() for row in rows if "needs" in row})
GPU = re.compile(r"\b(cuda|hip)(?:-gemm)?:\d+")
PACK = re.compile(r" --pack \S+")
"""Where there is no GPU a pack is neither loaded nor there."""


def text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def marks(page: str) -> Iterator[pytest.MarkDecorator]:
    if page in LONG:
        yield pytest.mark.long
    if page in WHOLE:
        yield pytest.mark.needs(WHOLE[page])


def row_of(page: str, line: str) -> dict[str, Any]:
    return next((row for row in ROWS.get(page, ()) if row["shown"] == line), {})


@cache
def here(gpu: str) -> bool:
    try:
        open_device(gpu)
    except NotHereError:
        return False
    return True


def without_a_gpu(place: Place, line: str) -> None:
    """A command as it stands, but for its pack, where what it names is not here."""
    named = [f"{found[1]}:{found[0].rpartition(':')[2]}" for found in GPU.finditer(line)]
    if "--all-gpus" in line:
        assert here("cuda") or here("hip") or place.run(line)[0] == 3
    if not named or any(map(here, named)):
        return
    code, printed = place.run(PACK.sub("", line))
    if line.startswith("rocjitsu "):  # an emulator of a GPU, which is not here either
        assert code == 127, printed
        return
    if line.startswith("pytest "):  # which has exit codes of its own: skipped, or asked in vain
        assert code == (4 if "--require-gpu" in line else 0), f"{line}: {code}: {printed}"
        return
    assert code == 3, f"{line}: {code}: {printed}"
    said = printed.splitlines()[-1]
    assert any(name in said for name in named), said
    assert re.search(r"apt-get install|docker run|mmaprobe doctor|pip install", said), f"{said}: and now what?"


def run_page(place: Place, page: str, need: str = "") -> int:
    """Run what a page shows: of what needs something what needs this; how many ran."""
    ran = 0
    for step in shown(text(page)):
        row = row_of(page, step.line)
        if row.get("needs", "") != need or "elsewhere" in row:
            continue
        for line in row.get("before", ()):
            assert place.run(line)[0] in (0, 1), line
        if "run" in row:
            without_a_gpu(place, step.line)
        place.check(Shown(row.get("run", step.line), tuple(row.get("says", step.said)), row.get("code", step.code)))
        ran += 1
    return ran


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "page").mkdir()
    return Place(tmp_path / "page", capsys, monkeypatch)


@pytest.mark.parametrize("page", [pytest.param(name, marks=list(marks(name))) for name in PAGES])
def test_a_page_does_what_it_shows(place: Place, page: str) -> None:
    place.write(text(page))
    every = [row_of(page, step.line) for step in shown(text(page))]
    assert run_page(place, page) == sum(not row.keys() & {"needs", "elsewhere"} for row in every)
    if page.startswith("docs/tutorials/"):  # with what the commands have written
        assert doctest.testfile(str(ROOT / page), module_relative=False).failed == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "need"), [pytest.param(page, need, marks=pytest.mark.needs(need)) for page, need in NEEDY]
)
def test_what_needs_a_tool_does_what_the_page_shows(place: Place, page: str, need: str) -> None:
    place.write(text(page))
    assert run_page(place, page, need) > 0


def test_the_table_is_of_what_the_pages_show() -> None:
    """No row is of a command that no page has; each says why, or the file that runs it, where it stands."""
    assert set(PAGES) >= {*ROWS, *LONG, *WHOLE}
    for page, rows in ROWS.items():
        lines = [step.line for step in shown(text(page))]
        for row in rows:
            assert row["shown"] in lines, f"{page} does not show {row['shown']!r}"
            assert {"shown"} < row.keys() <= KEYS, row
            assert ("run" in row) == ("why" in row), row
            assert row.keys() == {"shown", "elsewhere", "by"} or not row.keys() & {"elsewhere", "by"}, row
            if "elsewhere" in row:
                assert row["by"] in text(row["elsewhere"]), row
        assert len({row["shown"] for row in rows}) == len(rows)


def test_most_commands_run_as_they_stand() -> None:
    every = [row_of(page, step.line) for page in PAGES for step in shown(text(page))]
    as_shown = sum("run" not in row and "elsewhere" not in row for row in every)
    assert len(every) > 160
    assert as_shown > 110
    assert sum("elsewhere" in row for row in every) < 15


def ours(line: str) -> Iterator[list[str]]:
    """The words of each command of ours in a line, behind another program too."""
    for command in re.split(r" (?:\|\|?|;|&&|2?>) ?", line):
        told = re.search(r"(?:^| )mmaprobe (?=[a-z-])(.*)", command)
        if told:
            yield shlex.split(told[1])


def parsed(words: list[str]) -> Any:
    """The context of a command, which is not run; an error of click where it would not be taken."""
    command: Any = get_command(app)
    name = "mmaprobe"
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"{name} has no {words[0]}"
        name, command, words = words[0], command.commands[words[0]], words[1:]
    return command.make_context(name, list(words))


@pytest.mark.parametrize("page", sorted(ROWS))
def test_what_runs_otherwise_is_taken_as_it_stands(page: str) -> None:
    """Every option and argument of it, also where running it needs a GPU or hours."""
    for row in ROWS[page]:
        for words in ours(row["shown"]):
            try:
                parsed(words)
            except Exception as error:  # click's, of which there are two in the world
                pytest.fail(f"{page}: mmaprobe {shlex.join(words)}: {getattr(error, 'message', error)}")


@pytest.mark.parametrize("line", ["nonsense", "run --devce cpu", "plot three sm_90a x --out y", "gemm diff only_one"])
def test_a_command_that_there_is_not_is_found(line: str) -> None:
    (words,) = ours(f"mmaprobe {line} | head")
    assert words == line.split()
    with pytest.raises(Exception, match=r"nonsense|--devce|three|(?i:missing)"):
        parsed(words)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("$ mmaprobe instructions x86-64\nno such line", "is not in"),
        ("$ mmaprobe instructions x86-64\nx86.dpps ... no such word", "is not in"),
        ("$ mmaprobe instructions sm_9", "unknown architecture"),
        ("$ mmaprobe instructions x86-64\n$ echo $?\n3", "0, not 3"),
        ("$ cat there\nis\n$ cat there\nis not", "is not in"),
    ],
)
def test_a_page_that_shows_what_is_not_so_is_red(place: Place, block: str, said: str) -> None:
    *first, last = shown(f"```console\n{block}\n```\n")
    for step in first:
        place.check(step)
    with pytest.raises(AssertionError, match=said):
        place.check(last)


def test_a_line_runs_as_in_a_shell(place: Place) -> None:
    page = """
```console
$ mmaprobe instructions x86-64 | \\
  grep -c dpps > count; cat count  # a remark
1
$ A=1 bash -c 'exit $A'
$ echo $?
1
```
"""
    steps = list(shown(page))
    assert [step.line for step in steps] == [
        "mmaprobe instructions x86-64 |    grep -c dpps > count; cat count", "A=1 bash -c 'exit $A'"
    ]  # fmt: skip
    for step in steps:
        place.check(step)


def test_where_there_is_no_gpu_its_command_ends_with_3(place: Place) -> None:
    """And a command that ends otherwise is red."""
    without_a_gpu(place, "mmaprobe run --device cuda:99 --pack nowhere")
    with pytest.raises(AssertionError, match=": 2: "):
        without_a_gpu(place, "mmaprobe run --device cuda:99 --instruction nonsense")
