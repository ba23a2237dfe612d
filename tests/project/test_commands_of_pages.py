"""Every command that a page shows is one that there is, with options and arguments that it takes, also where running it
needs a GPU, an emulator or hours; the pages that people start with are run (test_tutorials)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mmaprobe.cli.terminal import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
    if "made" not in path.parts
)


def shown(page: str) -> Iterator[list[str]]:
    """The words of each command of ours in the blocks of a page, those behind a backslash or another program too."""
    for block in re.findall(r"(?ms)^```(?:console|sh|bash)\n(.*?)^```", page):
        for line in block.replace("\\\n", " ").splitlines():
            told = re.search(r"(?:^\$ |^|[;&|] |\bnumactl .* |\bcuda-gdb .* )mmaprobe (?=[a-z-])(.*)", line)
            if told:
                yield shlex.split(re.split(r" (?:[|;]|&&|>|2>)", told[1])[0], comments=True)


def parsed(words: list[str]) -> Any:
    """The context of a command, which is not run; an error of click where it would not be taken."""
    command: Any = get_command(app)
    name = "mmaprobe"
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"{name} has no {words[0]}"
        name, command, words = words[0], command.commands[words[0]], words[1:]
    return command.make_context(name, list(words))


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_are_taken(page: str) -> None:
    for words in shown((ROOT / page).read_text("utf-8")):
        try:
            parsed(words)
        except Exception as error:  # click's, of which there are two in the world
            pytest.fail(f"{page}: mmaprobe {shlex.join(words)}: {getattr(error, 'message', error)}")


def test_pages_show_more_than_a_hundred_commands() -> None:
    assert sum(len(list(shown((ROOT / page).read_text("utf-8")))) for page in PAGES) > 100


@pytest.mark.parametrize("line", ["nonsense", "run --devce cpu", "plot three sm_90a x --out y", "gemm diff only_one"])
def test_a_command_that_there_is_not_is_found(line: str) -> None:
    (words,) = shown(f"```console\n$ mmaprobe {line} | head\n```\n")
    assert words == line.split()
    with pytest.raises(Exception, match=r"nonsense|--devce|three|(?i:missing)"):
        parsed(words)
