"""Can a larger operand give a smaller result?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_monotonicity(agreed: Callable[[str], Finding]) -> None:
    found = agreed("monotonicity")
    assert found.answer["monotone"] in (True, False), found.text
