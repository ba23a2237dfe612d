"""How does a fused sum cut its terms?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_alignment_rounding(agreed: Callable[[str], Finding]) -> None:
    agreed("alignment_rounding")
