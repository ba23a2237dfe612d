"""Write the rooms and their diagram into docs/architecture.md: ``python docs/architecture.py``.

The floors are the layers of pyproject.toml, what a room is for is the first sentence of its docstring, and the arrows
are the imports that stand in the code: those between rooms, without the ones that a longer way says already.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "src" / "mmaprobe"
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- written by docs/architecture.py: {} -->", "<!-- end -->"
FIRST = {
    "baselines": "difference.py", "campaigns": "shard.py", "catalog": "instruction.py", "cli": "__init__.py",
    "derivation": "deriving.py", "devices": "base.py",
    "equivalence": "checker.py", "evidence": "store.py", "formats": "layout.py", "generators": "families.py",
    "models": "stages.py", "operands": "batch.py", "parameters": "datapath.py", "probing": "suite.py",
    "pytest_plugin": "__init__.py",
    "report": "run_summary.py", "runs": "verbs.py", "survey": "survey.py", "toolchain": "kernel_cache.py",
    "validation": "stream.py",
}  # fmt: skip
"""The file of a room to read first, where it has several."""

Edges = dict[str, set[str]]


def floors() -> list[list[str]]:
    """The rooms, floor by floor, the lowest first: what import-linter holds the code to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if "layers" in contract)
    return [layer.split(" | ") for layer in reversed(layers)]


def files(room: str) -> list[Path]:
    """The Python files of a room."""
    return sorted((HOUSE / room).rglob("*.py")) or [HOUSE / f"{room}.py"]


def imported(path: Path) -> Iterator[str]:
    """The rooms that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("mmaprobe."))
        elif isinstance(node, ast.ImportFrom) and node.module == "mmaprobe":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mmaprobe."):
            yield str(node.module).split(".")[1]


def imports() -> Edges:
    """The rooms that each room imports."""
    rooms = [room for floor in floors() for room in floor]
    return {room: {name for path in files(room) for name in imported(path)} & set(rooms) - {room} for room in rooms}


def reached(edges: Edges, room: str) -> set[str]:
    """Every room below, by any way."""
    return edges[room].union(*(reached(edges, other) for other in edges[room]))


def without_shortcuts(edges: Edges) -> Edges:
    """The imports that no longer way says already."""
    return {
        room: {one for one in direct if not any(one in reached(edges, other) for other in direct - {one})}
        for room, direct in edges.items()
    }


def diagram() -> Iterator[str]:
    """The rooms as a graph, the highest floor first."""
    yield "```mermaid\ngraph TD"
    edges = without_shortcuts(imports())
    for floor in reversed(floors()):
        for room in floor:
            yield from (f"  {room} --> {other}" for other in edges if other in edges[room])
    yield "```"


def table() -> Iterator[str]:
    """A row a room, the lowest floor first."""
    yield "| floor | room | what it is for | read first |"
    yield "|---|---|---|---|"
    for number, floor in enumerate(floors(), 1):
        for room in floor:
            first = f"{room}/{FIRST[room]}" if room in FIRST else f"{room}.py"
            yield f"| {number} | `{room}` | {purpose(room)} | `{first}` |"


def purpose(room: str) -> str:
    """The first sentence of a room's docstring."""
    home = HOUSE / room / "__init__.py"
    text = ast.get_docstring(ast.parse((home if home.exists() else HOUSE / f"{room}.py").read_text(encoding="utf-8")))
    assert text, f"{room} says nothing of itself"
    return text.partition("\n\n")[0].replace("\n", " ").replace("``", "`").partition(".  ")[0].rstrip(".") + "."


PARTS = {"the diagram": diagram, "the rooms": table}


def page(text: str) -> str:
    """The page with its parts made anew."""
    for name, lines in PARTS.items():
        before, begin, rest = text.partition(BEGIN.format(name))
        text = before + "\n".join([begin, "", *lines(), "", ""]) + END + rest.partition(END)[2]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
