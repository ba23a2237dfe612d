"""How are bits multiplied?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_bit_products(agreed: Callable[[str], Finding]) -> None:
    found = agreed("bit_products")
    assert found.answer["product"] in ("and", "xor", "absent"), found.text
