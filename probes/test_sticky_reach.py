"""How far below a result does the smallest term still count?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_sticky_reach(agreed: Callable[[str], Finding]) -> None:
    found = agreed("sticky_reach")
    assert found.answer is None or found.answer["tie"] or found.answer["borrow"], found.text
