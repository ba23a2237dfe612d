"""docs/new_unit.md: its device, its files, its commands and its Python do what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmaprobe.catalog import supplements
from mmaprobe.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "new_unit.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command of the page, and the lines that it must print."""
    for block in blocks("console"):
        for command in re.split(r"(?m)^\$ ", block)[1:]:
            line, *said = command.splitlines()
            yield line, said


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page."""
    for text in (*blocks("python"), *blocks("toml")):
        if text.startswith("# "):
            (tmp_path / text.split()[1]).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.long
def test_every_command_of_the_page(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each in a process that knows nothing of those before, but for their files."""
    assert {path.name for path in files.iterdir()} == {"acme.py", "sr.py", "acme2.toml"}
    for line, said in commands():
        with pytest.MonkeyPatch.context() as fresh:
            fresh.setattr(supplements, "_ADDED", [])
            program, *arguments = shlex.split(line)
            assert program == "mmaprobe"
            found = [each.replace("process:python ", f"process:{shlex.quote(sys.executable)} ") for each in arguments]
            assert main(found) == 0, f"{line}: {capsys.readouterr().err}"
        printed = words(capsys.readouterr().out).replace(shlex.quote(sys.executable), "python")
        for expected in said:
            assert words(expected) in printed, line
    python = doctest.DocTestParser().get_doctest(PAGE, {}, "new_unit.md", None, None)
    assert doctest.DocTestRunner().run(python).failed == 0
