"""Lane lists as text: ``0..15``, ``0..30:2``, ``1,0``, ``0..30:2,1..31:2``."""

from __future__ import annotations

import re

from mmaprobe.errors import UsageError

_ITEM = re.compile(r"(\d+)(?:\.\.(\d+)(?::(\d+))?)?")


def parse_lanes(text: str) -> tuple[int, ...]:
    """The lanes that ``text`` names, in the order written; ``a..b:s`` counts down where b < a.

    Raises UsageError naming the part that cannot be read.
    """
    lanes: list[int] = []
    for part in text.replace(" ", "").split(","):
        found = _ITEM.fullmatch(part)
        if not found:
            raise UsageError(f"lanes {text!r}: cannot read {part!r}; write 0..15, 0..30:2 or 1,0")
        first, last, step = (int(g) if g else None for g in found.groups())
        assert first is not None
        last, step = first if last is None else last, step or 1
        lanes += range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
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
