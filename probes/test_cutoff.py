"""How far below the largest term does another one leave no trace?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_cutoff(agreed: Callable[[str], Finding]) -> None:
    found = agreed("cutoff")
    assert set(found.answer) == {"products", "c"}, found.text
