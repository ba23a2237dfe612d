"""Which bits of which term survive, as a picture: a row a term, a square a bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmaprobe.report.datapath.window import TermBits, Window
from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save
from mmaprobe.report.pictures.palette import COLOURS

BIT = 0.13
"""Inches that a bit is wide and high."""
ROW = 0.42
"""Inches from one row to the next."""
HEAD = 0.8
"""Inches above the rows of a sum."""
MARGIN = 0.4
"""Inches at the sides."""
LETTER = 0.066
"""Inches that a letter of the text beside the bits takes."""
LOOKS: dict[str, dict[str, Any]] = {
    "kept": {"facecolor": COLOURS[0], "edgecolor": COLOURS[0]},
    "seen, decides the rounding": {"facecolor": "#fbe3b5", "edgecolor": COLOURS[5], "hatch": "////"},
    "lost": {"facecolor": "none", "edgecolor": SOFT, "linestyle": ":"},
}
"""What a bit looks like by what becomes of it."""


def draw_windows(title: str, subtitle: str, windows: Sequence[Window], path: Path) -> None:
    """The sums of a datapath, the innermost first, one below the other."""
    spans = [window.span for window in windows]
    across = max(high - low + 1 for high, low in spans)
    words = LETTER * max(len(row.words) for window in windows for row in window.rows)
    width = max(2 * MARGIN + across * BIT + words, 8.0)
    height = 1.5 + sum(HEAD + ROW * len(window.rows) for window in windows)
    figure = new_figure(path, width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    axes.text(MARGIN, height - 0.4, title, fontsize=13, fontweight="bold", color=INK, va="center")
    axes.text(MARGIN, height - 0.72, subtitle, fontsize=9, color=SOFT, va="center")
    y = height - 1.0
    for window in windows:
        y = _window(axes, window, y)
    from matplotlib.patches import Patch

    patches = [Patch(label=name, **look) for name, look in LOOKS.items()]
    axes.legend(handles=patches, ncols=len(LOOKS), loc="lower left", bbox_to_anchor=(MARGIN / width, 0.0),
                frameon=False, fontsize=8.5)  # fmt: skip
    save(figure, path, "--out")


def _window(axes: Any, window: Window, y: float) -> float:
    """The rows of one sum; where the next one begins."""
    high, low = window.span
    axes.text(MARGIN, y - 0.2, window.title, fontsize=10, color=INK, va="center")
    y -= HEAD - 0.2
    _places(axes, window, y + 0.1)
    for row in window.rows:
        _bits(axes, row, high, low, y)
        axes.text(MARGIN + (high - low + 1) * BIT + 0.2, y - BIT / 2, row.words, fontsize=8, color=INK, va="center")
        y -= ROW
    if window.last is not None:
        x = MARGIN + (high - window.last + 1) * BIT
        axes.plot([x, x], [y + ROW - BIT - 0.1, y + ROW * len(window.rows) + 0.05], color=COLOURS[1], linestyle="--")
    return y


def _places(axes: Any, window: Window, y: float) -> None:
    """Every eighth place by its number, and the last one that is kept."""
    high, low = window.span
    shown = {place for place in range(low, high + 1) if place % 8 == 0} | ({window.last} if window.last else set())
    for place in sorted(shown):
        near = window.last is not None and place != window.last and abs(place - window.last) < 4
        if not near:
            axes.text(MARGIN + (high - place + 0.5) * BIT, y, str(place), fontsize=7, color=SOFT, ha="center")


def _bits(axes: Any, row: TermBits, high: int, low: int, y: float) -> None:
    from matplotlib.patches import Rectangle

    kinds = [*["kept"] * row.kept, *["seen, decides the rounding"] * row.seen, *["lost"] * row.lost]
    for number, kind in enumerate(kinds):
        place = row.top - number
        if place < low:
            break
        corner = (MARGIN + (high - place) * BIT + 0.01, y - BIT)
        axes.add_patch(Rectangle(corner, BIT - 0.02, BIT, linewidth=0.7, **LOOKS[kind]))
