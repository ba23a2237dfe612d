"""Which exponent does a product show to an alignment?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_product_label(agreed: Callable[[str], Finding]) -> None:
    found = agreed("product_label")
    assert found.answer["label"] in ("encoded", "operands", "normalised", None), found.text
