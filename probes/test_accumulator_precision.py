"""How many fraction bits does a term keep beside the largest one?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_accumulator_precision(agreed: Callable[[str], Finding]) -> None:
    agreed("accumulator_precision")
