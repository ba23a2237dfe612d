"""Has the sum room for its carries?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_carry_bits(agreed: Callable[[str], Finding]) -> None:
    found = agreed("carry_bits")
    assert found.answer is None or found.answer["enough"], found.text
