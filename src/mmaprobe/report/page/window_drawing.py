"""Which bits of which term survive, drawn: a row a term, a square a bit."""

from __future__ import annotations

import textwrap

from mmaprobe.report.datapath.window import TermBits, Window
from mmaprobe.report.page.drawing import LETTER, WIDTH, Drawing

SQUARE = 12
"""Units that a row of bits is high."""
WIDEST = 9.0
"""Units that a bit is wide at most."""
BELOW = 38
"""Units from one row to the next, its line of text included."""
WORDS = 15
"""Units from one line of text to the next."""
GAP = 3
"""Units between a row's text and its bits."""


def draw_window(window: Window, name: str) -> str:
    """The window as inline SVG: squares of the classes ``kept``, ``seen`` and ``lost``."""
    canvas = Drawing(name, f"Bits that survive. {window.title}", "\n".join(row.words for row in window.rows))
    high, low = window.span
    across = min(WIDEST, (WIDTH - 2) / (high - low + 1))
    y = 0.0
    for row in window.rows:
        for line in textwrap.wrap(row.words, int(WIDTH / LETTER)):
            y += WORDS
            canvas.text(1, y - 3, line)
        y += GAP
        _bits(canvas, row, high, low, across, y)
        if window.last is not None:
            x = 1 + (high - window.last + 1) * across
            canvas.line(x, y - 2, x, y + SQUARE + 2, "edge")
        y += BELOW - WORDS - GAP
    return canvas.close(y)


def _bits(canvas: Drawing, row: TermBits, high: int, low: int, across: float, y: float) -> None:
    """The bits of a term from its leading one down to the lowest place that is shown."""
    for number in range(row.size):
        place = row.top - number
        if place < low:
            break
        kind = "kept" if number < row.kept else "seen" if number < row.kept + row.seen else "lost"
        canvas.box(1 + (high - place) * across, y, max(across - 1, 1), SQUARE, f"bit {kind}", 1)
