"""What the probes' findings mean for the search: which precisions and roundings to try first."""

from __future__ import annotations

from typing import Any

from mmaprobe.derivation.hypotheses import Hints
from mmaprobe.evidence.records import Finding

BEYOND = 24
"""Above a lower bound of the fraction bits so many values are tried, and no limit at all."""


def read_hints(findings: dict[str, Finding]) -> Hints:
    """The fraction bits and roundings that the findings name, with near values; empty where they say nothing.

    A hint only orders the search: when nothing fits it, everything is tried.
    """
    precision = _answer(findings, "accumulator_precision")
    alignment = _answer(findings, "alignment_rounding")
    result = _answer(findings, "result_rounding")
    bits: tuple[int | None, ...] = ()
    kept = precision.get("products")
    if isinstance(kept, int):
        bounded = "products" in precision.get("at_least", ())
        bits = (*range(kept - 1, kept + BEYOND), None) if bounded else tuple(range(max(0, kept - 1), kept + 3))
    zero = _answer(findings, "zero_exponent").get("exponent")
    return Hints(bits, tuple(alignment.get("products") or ()), tuple(result.get("rounding") or ()), zero)


def _answer(findings: dict[str, Finding], question: str) -> dict[str, Any]:
    finding = findings.get(question)
    usable = finding is not None and finding.status in ("exact", "bounded") and isinstance(finding.answer, dict)
    return finding.answer if finding is not None and usable else {}
