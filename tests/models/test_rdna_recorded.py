"""Recorded results of RDNA against the models: every bit of every row."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.parameters.mutate import mutate

FOLDER = Path(os.environ.get("MMAPROBE_ROWS", "no rows"))
INTEGERS = FOLDER / "integer_wmma.json"
ROWS: list[dict[str, Any]] = json.loads(INTEGERS.read_text())["rows"] if INTEGERS.is_file() else []
NAMES = sorted({row["instruction"] for row in ROWS})

pytestmark = pytest.mark.needs("rows")


@cache
def factors(a: str, b: str) -> dict[int, tuple[int, int]]:
    """For every product of two formats codes that have it."""
    values = [
        [
            (code, code - (fmt.code_limit if fmt.signed and code >> fmt.bits - 1 else 0))
            for code in range(fmt.code_limit)
        ]
        for fmt in (formats.get(a), formats.get(b))
    ]
    return {x * y: (i, j) for (i, x), (j, y) in product(*values)}


def clamped(row: dict[str, Any]) -> tuple[Datapath, Batch]:
    """The shipped datapath, with the signs that the products need, and operands that have them."""
    for signs in ("110", "100", "010", "000"):
        made = instruction(f"{row['instruction']}{{clamp,neg_lo={signs}}}", row["arch"])
        path = datapath_for(row["arch"], made)
        known = factors(path.a, path.b)
        if all(each in known for each in row["products"]):
            a, b = zip(*(known[each] for each in row["products"]), strict=True)
            types = [formats.get(name).dtype for name in (path.a, path.b)]
            c = np.array([int(row["c"], 16)], np.uint32)
            return path, Batch(*(np.array([x], of) for x, of in zip((a, b), types, strict=True)), c)
    raise AssertionError(f"no signs give the products of {row}")


def wrong(rows: Sequence[dict[str, Any]], *changes: str) -> int:
    """How many of the rows the shipped datapath, so changed, gets wrong."""
    count = 0
    for row in rows:
        path, vector = clamped(row)
        for change in changes:
            path = mutate(path, *change.split("="))
        count += int(evaluate(path, vector)[0]) != int(row["d"], 16)
    return count


@pytest.mark.parametrize("name", NAMES)
def test_an_integer_sum_is_limited_after_each_of_two_steps(name: str) -> None:
    """The rows are those that one limit at the end gets wrong."""
    rows = [row for row in ROWS if row["instruction"] == name]
    k = len(rows[0]["products"])
    assert len(rows) == 12
    assert wrong(rows) == 0
    assert wrong(rows, f"step={k}") == 12
    if k == 32:
        assert wrong(rows, "order=none") > 0  # of blocks of eight the even ones come first


def test_no_row_is_left_out_and_each_is_a_basis() -> None:
    assert len(ROWS) == 72
    assert len(NAMES) == 6
    for name in NAMES:
        made = instruction(f"{name}{{clamp,neg_lo=110}}", "gfx1201")
        assert basis_for("gfx1201", made) == "recorded"
        assert basis_for("gfx1200", made) == "predicted"
