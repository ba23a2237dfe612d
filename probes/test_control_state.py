"""What of the control register does the instruction obey?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_control_state(agreed: Callable[[str], Finding]) -> None:
    found = agreed("control_state")
    assert set(found.answer.values()) <= {"obeyed", "ignored"}, found.text
