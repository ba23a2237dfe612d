"""What is the sign of a zero result?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_signed_zero(agreed: Callable[[str], Finding]) -> None:
    agreed("signed_zero")
