"""The derivation holds no list of known values: no table of fraction bits, steps or zero exponents, no architecture.

A collection of integers written out is a table of somebody's answers unless it is small
and made of what every format shares; ranges, and numbers computed from formats, are free.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.catalog import lookup

PACKAGE = Path(mmaprobe.__file__).parent
ROOMS = ("derivation", "equivalence", "survey")
FILES = {
    ".".join(("mmaprobe", *path.relative_to(PACKAGE).with_suffix("").parts)): path
    for room in ROOMS
    for path in sorted((PACKAGE / room).rglob("*.py"))
}
GENERIC = {-2, -1, 0, 1, 2, 3, 4, 8, 16, 32, 64}
"""Neighbouring integers and powers of two, which are nobody's measured values."""
FORBIDDEN = (
    "mmaprobe.parameters.lookup", "mmaprobe.parameters.files", "mmaprobe.parameters.shared",
    "mmaprobe.parameters.composition", "mmaprobe.devices.model.", "mmaprobe.devices.mutant", "mmaprobe.api",
    "importlib", "tomllib",
)  # fmt: skip
ONE_DATAPATH = "mmaprobe.devices.model.DatapathDevice"
"""One datapath as a device, which opens no file."""
FAMILIES = ("volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna", "rdna", "zen", "intel", "amd", "nvidia")


def constants(tree: ast.AST) -> set[int]:
    """The integers written directly in a collection (a minus sign and dict keys and values included)."""
    parts = [tree.elts] if isinstance(tree, (ast.Tuple, ast.List, ast.Set)) else []
    if isinstance(tree, ast.Dict):
        parts = [[key for key in tree.keys if key is not None], tree.values]
    return {value for part in parts for node in part if (value := integer(node)) is not None}


def integer(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = integer(node.operand)
        return None if value is None else -value
    plain = isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
    return node.value if plain else None  # type: ignore[attr-defined, no-any-return]


def suspicious(source: str) -> list[str]:
    """Collections of integers, not each named, of which some are not generic; strings that name an architecture."""
    names = {name.partition("+")[0].lower() for name in lookup.architectures()}
    found = []
    nodes = list(ast.walk(ast.parse(source)))
    named = [node.value for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)]
    for node in nodes:
        numbers = constants(node) if node not in named else set()
        if len(numbers) > 2 and numbers - GENERIC:
            found.append(f"line {node.lineno}: {sorted(numbers)}")  # type: ignore[attr-defined]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = {word.strip(".,:;`'\"()").lower() for word in node.value.split()}
            hits = words & (names | set(FAMILIES))
            hits |= {word for word in words if word.endswith(".toml")}
            found += [f"line {node.lineno}: {hit!r}" for hit in sorted(hits)]
    return found


@pytest.mark.parametrize("name", FILES)
def test_no_list_of_known_values(name: str) -> None:
    assert suspicious(FILES[name].read_text()) == []


def imported(path: Path) -> set[str]:
    """Every module that a file imports, and every name that it takes from one."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
    return names


def test_no_parameter_file_is_in_reach_while_deriving() -> None:
    """Of all that ``derive`` uses in these rooms; what compares and writes afterwards may see what is shipped."""
    todo, reached = ["mmaprobe.derivation.deriving"], set()
    while todo:
        module = todo.pop()
        reached.add(module)
        names = imported(FILES[module])
        todo += [name for name in names & FILES.keys() if name not in reached]
        wrong = {name for name in names if name.startswith(FORBIDDEN)} - {ONE_DATAPATH}
        assert not wrong, f"{module} imports {wrong}"
    assert {"mmaprobe.derivation.search.stages", "mmaprobe.derivation.certify"} <= reached


@pytest.mark.parametrize(("source", "count"), [
    ("BITS = (13, 23, 24, 25, 35)", 1), ("ZERO = {'volta': -131, 'turing': -132, 'ampere': -133}", 1),
    ("STEPS = [1, 2, 4, 8, 16, 32]", 0), ("def f(x):\n    'As sm_90a does it.'", 1), ("X = (-1, 0, 1)", 0),
    ("F = range(3, 61)", 0), ("z = {-131, -132, -133}", 1), ("PAIR = (13, 23)", 0),
    ("FIRST, SECOND, THIRD = 48, 40, 96", 0),
])  # fmt: skip
def test_what_counts_as_a_list_of_known_values(source: str, count: int) -> None:
    assert bool(suspicious(source)) == bool(count)
