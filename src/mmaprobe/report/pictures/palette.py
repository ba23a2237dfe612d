"""Colours that people with any colour vision tell apart (Okabe and Ito), each with a mark and a line of its own: no
picture needs its colours to be read."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")


def style(number: int) -> dict[str, Any]:
    """Colour, mark and line of one of several lines."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKS[number % len(MARKS)],
        "linestyle": LINES[number % len(LINES)],
    }


def plain(axes: Any) -> None:
    """Axes without a box around them, with a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#d9dee3", linewidth=0.6)
    axes.set_axisbelow(True)
