"""Is a fused sum normalised only at its end?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_normalisation(agreed: Callable[[str], Finding]) -> None:
    found = agreed("normalisation")
    assert found.answer["delayed"] in (True, False, None), found.text
