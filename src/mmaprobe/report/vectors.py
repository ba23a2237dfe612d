"""A vector as the command line takes it."""

from __future__ import annotations

from mmaprobe.evidence.records import Witness
from mmaprobe.showing import codes_text


def vector_text(vector: Witness) -> str:
    """A vector as the command line takes it: a.. b.. c."""
    parts = [f"a={codes_text(vector.a)}", f"b={codes_text(vector.b)}"]
    if vector.c is not None:
        parts.append(f"c={vector.c:#x}")
    for name in ("scale_a", "scale_b", "metadata"):
        if getattr(vector, name):
            parts.append(f"{name}={codes_text(getattr(vector, name))}")
    if vector.random is not None:
        parts.append(f"random={vector.random:#x}")
    return " ".join(parts)
