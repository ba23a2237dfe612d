"""What becomes of a result beyond the largest value?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_overflow(agreed: Callable[[str], Finding]) -> None:
    found = agreed("overflow")
    assert "other" not in found.answer.values(), found.text
