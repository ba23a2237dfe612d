"""A word means one thing: no two records share a name, and a number in the code says what it bounds."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HOUSE = Path(__file__).parents[2] / "src" / "mmaprobe"
MAKERS = {"amd": "MAKER", "nvidia": "MAKER"}
"""Folders that hold the same things, each of its maker of GPUs; who names them names the maker."""


@cache
def files() -> dict[str, ast.Module]:
    """The modules of the package, read."""
    return {str(path.relative_to(HOUSE)): ast.parse(path.read_text(encoding="utf-8")) for path in HOUSE.rglob("*.py")}


def test_no_two_records_share_a_name() -> None:
    homes = defaultdict(set)
    for file, tree in files().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add("/".join(MAKERS.get(part, part) for part in file.split("/")))
    assert {name: some for name, some in homes.items() if len(some) > 1} == {}


def test_a_number_has_a_line_that_says_what_it_bounds() -> None:
    assert [line for file, tree in files().items() for line in silent(file, tree)] == []


def silent(file: str, tree: ast.Module) -> Iterator[str]:
    """The numbers of a module that share a line, or have no docstring below."""
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.Assign):
            several = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            values = node.value.elts if several else [node.value]
            if all(map(number, values)) and (len(values) > 1 or len(node.targets) > 1 or not says(below)):
                yield f"{file}:{node.lineno}: {ast.unparse(node)}"


def number(value: ast.expr) -> bool:
    """Whether an expression is a number that is written out: ``-1``, ``1 << 20``, ``12.5``."""
    if isinstance(value, ast.BinOp):
        return number(value.left) and number(value.right)
    if isinstance(value, ast.UnaryOp):
        return number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def says(node: ast.stmt | None) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
