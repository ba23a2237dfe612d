"""Which elements of B does the metadata name?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_sparsity(agreed: Callable[[str], Finding]) -> None:
    found = agreed("sparsity")
    assert found.answer is None or found.answer["unnamed"] in ("ignored", "seen"), found.text
