"""The pages that people start with do what they show: commands print what stands below them, Python blocks run.

A block of ``console`` is run from top to bottom, all of a page in one folder: a command ends with 0 unless
``$ echo $?`` with another number follows; a line below it must be in what it prints, where ``...`` stands for anything.
A block of ``python`` that begins with a file's name is that file.  What needs a GPU is in blocks of ``sh``: they do not
run.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from mmaprobe.cli import main
from mmaprobe.cli.terminal import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "start",
    "words",
    "findings",
    "commands",
    "api",
    *sorted(f"tutorials/{path.stem}" for path in DOCS.glob("tutorials/*.md")),
)
NO_COMMANDS = {"words", "findings", "api", "tutorials/fp8_gemm"}


def commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a page, and the lines below it."""
    for block in re.findall(r"(?ms)^```console\n(.*?)^```", page):
        for command in re.split(r"(?m)^\$ ", block)[1:]:
            line, *said = command.splitlines()
            yield line, said


def pattern(line: str) -> str:
    """A shown line, any spaces as one and ``...`` as anything."""
    return r"\s+".join(".*" if word == "..." else re.escape(word) for word in line.split())


def check(steps: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]) -> int:
    """Run them all; how many ran."""
    ran = 0
    for (line, said), (following, code) in zip(steps, [*steps[1:], ("", [])], strict=False):
        if line == "echo $?":
            continue
        program, *arguments = shlex.split(line)
        assert program == "mmaprobe", line
        ended = main(arguments)
        out, err = capsys.readouterr()
        assert ended == (int(code[0]) if following == "echo $?" else 0), f"{line}: {err or out}"
        for shown in said:
            assert re.search(pattern(shown), out), f"{line}: {shown!r} is not in\n{out}"
        ran += 1
    return ran


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_shows(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    page = (DOCS / f"{name}.md").read_text("utf-8")
    for text in re.findall(r"(?ms)^```python\n(# \w+\.py\n.*?)^```", page):
        Path(text.split()[1]).write_text(text, "utf-8")
    assert (check(list(commands(page)), capsys) == 0) == (name in NO_COMMANDS)
    python = doctest.testfile(str(DOCS / f"{name}.md"), module_relative=False)
    assert python.failed == 0
    assert python.attempted > 0 or ">>>" not in page


def test_a_page_that_shows_what_is_not_so_is_red(capsys: pytest.CaptureFixture[str]) -> None:
    for said in (["no such line"], ["x86.dpps ... no such word"]):
        with pytest.raises(AssertionError, match="is not in"):
            check([("mmaprobe instructions x86-64", said)], capsys)
    with pytest.raises(AssertionError, match="unknown architecture"):
        check([("mmaprobe instructions sm_9", [])], capsys)


def test_every_command_is_on_its_page() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    assert [name for name in get_command(app).commands if f"`mmaprobe {name}" not in page] == []  # type: ignore[attr-defined]


def test_every_page_is_on_the_site() -> None:
    listed = set(
        re.findall(
            r"(?m)^([\w/]+)$", "".join(re.findall(r"(?ms)^```\{toctree\}(.*?)^```", (DOCS / "index.md").read_text()))
        )
    )
    written = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    made = {name for name in listed if name.startswith("made/")}
    assert written - {name for name in written if name.startswith(("made/", "recipes/"))} == (listed - made) | {"index"}
    assert made == {"made/questions", "made/architectures", "made/two_units"}
