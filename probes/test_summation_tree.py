"""Which terms are added with which?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_summation_tree(agreed: Callable[[str], Finding]) -> None:
    found = agreed("summation_tree")
    assert found.status in ("exact", "bounded"), found.text
    assert found.answer is not None
