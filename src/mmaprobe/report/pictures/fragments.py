"""Where the elements of an operand lie: an element a square, its lane as colour and number, its register below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe.catalog.fragment import Fragment
from mmaprobe.errors import UsageError
from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save

SQUARE = 0.36
"""Inches that an element is wide and high."""
MOST = 64
"""Rows and columns that are drawn at most."""
DARK = 0.5
"""Of the scale of lanes, below which a colour is dark and is written on in white."""
LABELS = 0.8
"""Inches for the axes and the title on a side."""
NARROWEST = 7.5
"""Inches that a picture is wide at least."""
LEGEND = 1.6
"""Inches to the right, for the scale of lanes."""


def draw_fragment(title: str, fragment: Fragment, path: Path) -> None:
    """The matrix of an operand; UsageError where it is not one of at most ``MOST`` rows and columns."""
    index = fragment.coordinates()
    if len(index) != 2 or max(fragment.shape) > MOST:
        axes_said = ", ".join(f"{name} of {size}" for name, size in fragment.axes)
        raise UsageError(f"{title}: a picture has two indices of at most {MOST}; this has {axes_said}")
    (down, across), (rows, columns) = index, fragment.shape
    width, height = max(LABELS + SQUARE * columns + LEGEND, NARROWEST), 2 * LABELS + SQUARE * rows
    figure = new_figure(path, width, height)
    axes = figure.add_axes((LABELS / width, LABELS * 0.75 / height, SQUARE * columns / width, SQUARE * rows / height))
    colours = _colours(fragment.lanes)
    for lane, slot in reversed(np.argwhere(fragment.held()).tolist()):  # of several places the first is seen
        place = int(index[down][lane, slot]), int(index[across][lane, slot])
        _element(axes, place, lane, slot // fragment.per_register, colours[lane])
    axes.set(xlim=(0, columns), ylim=(rows, 0), xlabel=across, ylabel={"m": "m (row)"}.get(down, down))
    axes.set_xticks(np.arange(columns) + 0.5, [str(number) for number in range(columns)], fontsize=7)
    axes.set_yticks(np.arange(rows) + 0.5, [str(number) for number in range(rows)], fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    copies = f"\nEach element lies in {fragment.replication} places; the first is shown." * (fragment.replication > 1)
    axes.set_title(title + copies, loc="left", fontsize=11, color=INK, pad=12)
    _scale(figure, axes, fragment.lanes)
    save(figure, path, "--out")


def _colours(lanes: int) -> Any:
    """A colour a lane, no two the same, from dark to light; told apart by people of any colour vision."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 1, lanes))


def _element(axes: Any, place: tuple[int, int], lane: int, register: int, colour: Any) -> None:
    from matplotlib.patches import Rectangle

    y, x = place
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.8))
    light = float(np.dot(colour[:3], (0.299, 0.587, 0.114))) > DARK
    axes.text(x + 0.5, y + 0.5, f"{lane}\nr{register}", ha="center", va="center", fontsize=6.5,
              color="black" if light else "white", linespacing=1.05)  # fmt: skip


def _scale(figure: Any, axes: Any, lanes: int) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    edges = np.arange(lanes + 1) - 0.5
    scale = ScalarMappable(BoundaryNorm(edges, lanes), ListedColormap(_colours(lanes)))
    bar = figure.colorbar(scale, ax=axes, fraction=0.05, pad=0.03, ticks=range(0, lanes, max(lanes // 16, 1)))
    bar.set_label("lane: the upper number; r: its register, below", fontsize=8, color=SOFT)
    bar.ax.tick_params(labelsize=7)
    bar.ax.minorticks_off()
    bar.ax.invert_yaxis()
