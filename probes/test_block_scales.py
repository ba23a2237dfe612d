"""What do block scales do, and where?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_block_scales(agreed: Callable[[str], Finding]) -> None:
    found = agreed("block_scales")
    assert found.answer is None or found.answer["lanes"] == "in order", found.text
