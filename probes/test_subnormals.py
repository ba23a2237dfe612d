"""Where are subnormal numbers kept, and where do they become zero?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_subnormals(agreed: Callable[[str], Finding]) -> None:
    found = agreed("subnormals")
    assert "mixed" not in found.answer.values(), found.text
