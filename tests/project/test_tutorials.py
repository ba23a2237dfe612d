"""The pages that people start with: their Python runs, and the site has every page and every command.

Their commands run as those of all pages do (``test_commands_of_pages``).
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from typer.main import get_command

from cases.shown_commands import files
from mmaprobe.cli.terminal import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("words", "findings", "api", "tutorials/fp8_gemm")
"""Those without commands; of the others the Python runs after the commands."""


@pytest.mark.parametrize("name", PAGES)
def test_the_python_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / f"{name}.md").read_text("utf-8")
    for file, text in files(page).items():
        Path(file).write_text(text, "utf-8")
    python = doctest.testfile(str(DOCS / f"{name}.md"), module_relative=False)
    assert python.failed == 0
    assert python.attempted > 0 or ">>>" not in page


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
