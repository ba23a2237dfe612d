"""docs/gemm.md runs, and has a word on every field of the record."""

from __future__ import annotations

import doctest
from dataclasses import fields
from pathlib import Path

import pytest

from mmaprobe.parameters import epilogue, integer_sums
from mmaprobe.parameters import schedule as records

PAGE = Path(__file__).parents[2] / "docs" / "gemm.md"
RECORDS = (
    "Schedule", "Scope", "Region", "Bands", "GemmKernel", "Ranges", "Accumulators", "GemmStep", "Promotion", "Join",
    "Input", "Scaling", "Compute", "IntegerSums", "LaneGroups", "Rescale",
)  # fmt: skip


def test_the_page_runs() -> None:
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert done.failed == 0
    assert done.attempted > 5


@pytest.mark.parametrize("record", RECORDS)
def test_every_field_is_on_the_page(record: str) -> None:
    text = PAGE.read_text("utf-8")
    found = next(getattr(room, record) for room in (records, epilogue, integer_sums) if hasattr(room, record))
    assert [each.name for each in fields(found) if f"`{each.name}" not in text] == []
