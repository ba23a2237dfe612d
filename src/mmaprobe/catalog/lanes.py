"""Lane lists as text: ``0..15``, ``0..30:2``, ``1,0``, ``0..30:2,1..31:2``."""

from __future__ import annotations

import re

from mmaprobe.errors import UsageError, brief

MOST_LANES = 1 << 16
"""Lanes of one list at most: 256 times the largest K of the catalog, so that a wrong file ends soon."""
_ITEM = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?")


def parse_lanes(text: str) -> tuple[int, ...]:
    """The lanes that ``text`` names, in the order written; ``a..b:s`` counts down where b < a.

    Raises UsageError naming the part that cannot be read.
    """
    lanes: list[int] = []
    for part in text.replace(" ", "").split(","):
        found = _ITEM.fullmatch(part)
        if not found:
            raise UsageError(f"lanes {brief(text)}: cannot read {brief(part)}; write 0..15, 0..30:2 or 1,0")
        first, last, step = (int(g) if g else None for g in found.groups())
        assert first is not None
        last, step = first if last is None else last, step or 1
        more = range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
        if len(lanes) + len(more) > MOST_LANES:
            raise UsageError(f"lanes {brief(text)}: over {MOST_LANES} of them")
        lanes += more
    return tuple(lanes)


def format_lanes(lanes: tuple[int, ...]) -> str:
    """The shortest text that ``parse_lanes`` reads back: runs of three or more become ranges."""
    parts: list[str] = []
    start = 0
    while start < len(lanes):
        stop = start + 1
        step = lanes[stop] - lanes[start] if stop < len(lanes) else 0
        while step and stop < len(lanes) and lanes[stop] - lanes[stop - 1] == step:
            stop += 1
        if stop - start >= 3:
            parts.append(f"{lanes[start]}..{lanes[stop - 1]}" + (f":{abs(step)}" if abs(step) > 1 else ""))
        else:
            stop = start + 1
            parts.append(str(lanes[start]))
        start = stop
    return ",".join(parts)
