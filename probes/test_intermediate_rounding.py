"""Are products exact, and how are partial sums rounded?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_intermediate_rounding(agreed: Callable[[str], Finding]) -> None:
    agreed("intermediate_rounding")
