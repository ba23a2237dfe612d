"""Is a NaN result one fixed code or an operand's payload, and whose?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_nan_and_infinity(agreed: Callable[[str], Finding]) -> None:
    found = agreed("nan_and_infinity")
    assert found.answer is None or found.answer["rule"] in ("canonical", "propagate"), found.text
