"""What becomes of container bits that a format has no use for?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_container_bits(agreed: Callable[[str], Finding]) -> None:
    found = agreed("container_bits")
    assert "other" not in found.answer.values(), found.text
