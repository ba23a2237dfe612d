"""A vector as the command line takes it."""

from __future__ import annotations

from itertools import groupby

from mmaprobe.evidence.records import Witness


def vector_text(vector: Witness) -> str:
    """A vector as the command line takes it: a.. b.. c."""
    parts = [f"a={_codes(vector.a)}", f"b={_codes(vector.b)}"]
    if vector.c is not None:
        parts.append(f"c={vector.c:#x}")
    for name in ("scale_a", "scale_b", "metadata"):
        if getattr(vector, name):
            parts.append(f"{name}={_codes(getattr(vector, name))}")
    if vector.random is not None:
        parts.append(f"random={vector.random:#x}")
    return " ".join(parts)


def _codes(values: tuple[int, ...]) -> str:
    """Lanes as the command line takes them: ``x*n`` for a run."""
    runs = [(code, len(list(group))) for code, group in groupby(values)]
    return ",".join(f"{code:#x}" if count == 1 else f"{code:#x}*{count}" for code, count in runs)
