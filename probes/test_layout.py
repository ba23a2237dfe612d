"""Which elements of A, B and C reach which element of D?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_layout(agreed: Callable[[str], Finding]) -> None:
    found = agreed("layout")
    assert set(found.answer.values()) == {"as named"}, found.text
