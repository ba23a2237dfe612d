"""How does the last sum become the result?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_result_rounding(agreed: Callable[[str], Finding]) -> None:
    found = agreed("result_rounding")
    assert found.answer is None or found.answer["rounding"] or found.answer["at_least"], found.text
