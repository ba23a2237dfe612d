"""Does an output depend on its own row, column and C alone?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_independence(agreed: Callable[[str], Finding]) -> None:
    assert agreed("independence").answer["independent"]
