"""Which exponent does a zero term show to the alignment?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_zero_exponent(agreed: Callable[[str], Finding]) -> None:
    agreed("zero_exponent")
