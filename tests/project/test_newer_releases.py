"""What newer releases of Python and NumPy than these tests run on take differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MASKS = ("sign_mask", "infinity_code", "nan_code", "quiet_bit", "largest")
"""Numbers of a format, which have 64 bits where it has."""


def _files(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def _bare(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in MASKS


@pytest.mark.long
def test_a_choice_takes_no_mask_as_it_is() -> None:
    """NumPy from 2.5 on makes an int64 of a Python number in ``np.where``, and raises where that is too small."""
    found = [
        f"{name}:{call.lineno}"
        for name, tree in _files("src", "tests", "benchmarks", "docs", "validation")
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "where"
        and any(map(_bare, call.args[1:]))
    ]
    assert found == []


def test_no_protocol_is_asked_for_by_isinstance() -> None:
    """From Python 3.12 on that overlooks what a device hands on by ``__getattr__``; ``devices.base.has`` does not."""
    sources = sorted((ROOT / "src" / "mmaprobe").rglob("*.py"))
    assert [path.name for path in sources if "runtime_checkable" in path.read_text(encoding="utf-8")] == []
