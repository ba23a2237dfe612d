"""Does the device give the same bits again?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_determinism(agreed: Callable[[str], Finding]) -> None:
    assert agreed("determinism").answer["deterministic"]
