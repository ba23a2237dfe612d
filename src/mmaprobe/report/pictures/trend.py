"""Night by night as a picture: vectors compared, mismatches and changes of each unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save

PANELS = (("vectors", "vectors compared"), ("mismatches", "mismatches"), ("changes", "changes since the night before"))
"""What each panel shows, from the top."""
NIGHT = 0.35
"""Inches from one night to the next."""
NARROWEST = 7.0
"""Inches that a picture is wide at least."""
PANEL = 2.0
"""Inches that a panel is high."""
HEADROOM = 0.08
"""Of a panel's height above its largest value, and below 0, so that a dot is seen whole."""


def draw_trend(nights: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the rows of ``baselines.trend.trend``, a line a unit, into ``path`` (.png or .svg).

    UsageError for another suffix, NotHereError without matplotlib, CannotWriteError where it cannot be written.
    """
    units = list(dict.fromkeys(str(row["unit"]) for row in nights))
    dates = sorted({str(row["begun"]) for row in nights})
    place = {date: number for number, date in enumerate(dates)}
    figure = new_figure(path, max(NARROWEST, NIGHT * len(dates) + 2), PANEL * len(PANELS) + 1.6)
    every = figure.subplots(len(PANELS), 1, sharex=True)
    for axes, (key, title) in zip(every, PANELS, strict=True):
        most = max((row[key] or 0 for row in nights), default=0)
        for unit in units:
            told = [row for row in nights if str(row["unit"]) == unit and row[key] is not None]
            axes.plot([place[str(row["begun"])] for row in told], [row[key] for row in told], marker="o", label=unit)
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        axes.set_ylim(-HEADROOM * max(most, 1), (1 + HEADROOM) * max(most, 1))
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(labelsize=7, colors=SOFT)
        axes.spines[["top", "right"]].set_visible(False)
    every[-1].set_xticks(range(len(dates)), [date[:16].replace("T", " ") for date in dates], rotation=60, ha="right")
    every[0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    save(figure, path, "--plot")
