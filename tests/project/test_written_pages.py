"""Pages that are made from the code are current, and what a page calls by its path is there."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.probing import QUESTIONS

ROOT = Path(__file__).parents[2]
ARCHITECTURE = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
PATH = re.compile(r"(?:[\w.+-]+/)+[\w.+-]*|\.?[\w-]+\.(?:py|toml|md|cpp|hpp|cuh)")
GUIDES = ("docs/architecture.md", "CONTRIBUTING.md")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["architecture", "probes"])
def test_the_page_is_what_the_script_writes(name: str) -> None:
    before = text(f"docs/{name}.md")
    assert runpy.run_path(str(ROOT / "docs" / f"{name}.py"))["page"](before) == before, f"run: python docs/{name}.py"


def test_what_the_probes_find_has_a_row_a_question() -> None:
    found = (
        text("docs/probes.md").partition("<!-- written by tests/recovery/findings.py -->")[2].partition("<!-- end")[0]
    )
    rows = re.findall(r"(?m)^\| `(\w+)` ", found)
    assert tuple(rows) == QUESTIONS, "run: python tests/recovery/findings.py --write"


def test_the_diagram_says_every_import_and_none_twice() -> None:
    imports, shown = ARCHITECTURE["imports"](), {}
    for one, other in re.findall(r"(?m)^  (\w+) --> (\w+)$", text("docs/architecture.md")):
        shown.setdefault(one, set()).add(other)
    edges: dict[str, set[str]] = {room: shown.get(room, set()) for room in imports}
    reached = ARCHITECTURE["reached"]
    for room, direct in imports.items():
        assert reached(edges, room) == reached(imports, room), room
        assert edges[room] <= direct, room
        assert not any(reached(edges, other) & edges[room] for other in edges[room]), f"{room}: a shortcut"


def named(path: str) -> set[str]:
    """What a Python file defines: ``name``, and ``Class.name`` inside of a class."""
    found: set[str] = set()
    for node in ast.parse(text(path)).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("page", GUIDES)
def test_what_a_guide_calls_by_its_path_is_there(page: str) -> None:
    """``path/file.py`` and ``path/file.py:function``, from the root or from ``src/mmaprobe``; <words> stand for any."""
    missing = []
    for span in re.findall(r"`([^`\n]+)`", text(page)):
        path, _, name = span.partition(":")
        if not PATH.fullmatch(path) or "<" in span:
            continue
        here = next((home for home in (ROOT, ROOT / "src" / "mmaprobe") if (home / path).exists()), None)
        if here is None or (name and name not in named(str((here / path).relative_to(ROOT)))):
            missing.append(span)
    assert not missing


def test_contributing_explains_every_step_of_ci() -> None:
    steps = [quoted or plain for quoted, plain in re.findall(r'(?m)^step (?:"([^"]+)"|(\w+)) \w+$', text(".ci/run"))]
    section = text("CONTRIBUTING.md").partition("## What CI checks")[2].partition("\n## ")[0]
    assert re.findall(r"(?m)^\| `([\w ]+)` \|", section) == steps
    sessions = set(re.findall(r"(?m)^@nox\.session\ndef (\w+)", text("noxfile.py")))
    assert set(re.findall(r"`nox -s (\w+)", section)) <= sessions
