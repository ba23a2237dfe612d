"""Where does a product become infinite, and are small ones added up?"""

from __future__ import annotations

from collections.abc import Callable

from mmaprobe.evidence.records import Finding


def test_product_range(agreed: Callable[[str], Finding]) -> None:
    found = agreed("product_range")
    assert found.answer is None or found.answer["small"] in ("added", "cut", "absent", None), found.text
