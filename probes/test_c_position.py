"""Where does C enter?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_c_position(agreed: Callable[[str], Finding]) -> None:
    answer = agreed("c_position").answer
    assert answer["enters"] in ("first", "last", "inside", "with all", "absent")
