"""D coloured by class: which elements a product adds in the same order, by its schedule or by its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.devices.products import MatrixProduct
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import GemmKernel, Schedule
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.elements import ask_equal_rows, classes, draw_rows
from mmaprobe.report.pictures.canvas import INK, PAPER, new_figure, save
from mmaprobe.report.pictures.palette import COLOURS
from mmaprobe.report.tables.schedules import order_words
from mmaprobe.showing import counted
from mmaprobe.validation.products.comparing import named
from mmaprobe.validation.products.partial_sums import NO_KERNELS, schedule_of

SPREADS = (0, 8, 20)
"""Powers of two over which the values of a call are spread that asks a product for its classes."""
MOST_CLASSES = len(COLOURS)
"""Classes with a colour of their own, the largest; all others are one."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIDE = 6.0
"""Inches of the longer side of D."""
LEAST_SIDE = 1.6
"""Inches of the shorter one at least."""
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||", "++++")
TICK = 0.7
"""Inches from one number along a side to the next at least."""
LETTER = 0.068
"""Inches that a letter of the legend takes."""
LINE = 0.27
"""Inches of a line of the legend."""
WORDS = 1.36
"""Inches from the left to what a class is."""
REST = "#dfe3e8"
"""Colour of all classes without one of their own."""


@dataclass(frozen=True)
class ElementClasses:
    """The class of each element of D (M, N), 0 the largest, and what is said of each class."""

    title: str
    number: NDArray[np.intp]
    words: tuple[str, ...]

    def share(self, of: int) -> float:
        """Of all elements those of a class."""
        return float((self.number == of).mean())


def classes_of(product: MatrixProduct, seed: int = 0) -> ElementClasses:
    """The classes of a product at its shape: of a schedule by its kernels, of any other by calls of equal rows and
    columns, in which elements of one order are equal."""
    (m, n, k), schedule = product.shape, schedule_of(product)
    title = f"{product.name.partition('?')[0]} at {named(product.shape)}"
    calls, rng = ProductCalls(product, len(SPREADS)), np.random.default_rng(seed)
    if calls.of_integers:
        raise UsageError(NO_KERNELS)
    if schedule is not None:
        return _by_kernels(schedule, (m, n, k), title)
    asked = [ask_equal_rows(calls, m, n, *draw_rows(calls, k, rng, spread)) for spread in SPREADS]
    found = classes(asked)
    words = tuple("elements that answer alike" for _ in range(int(found.max()) + 1))
    return ElementClasses(f"{title}, {counted(calls.count, 'call')}", found, words)


def _by_kernels(schedule: Schedule, shape: tuple[int, int, int], title: str) -> ElementClasses:
    m, n, k = shape
    known: dict[GemmKernel, int] = {}
    number = np.zeros((m, n), np.intp)
    for kernel, rows, columns in schedule.areas(m, n, k):
        number[np.ix_(rows, columns)] = known.setdefault(kernel, len(known))
    order = np.argsort(-np.bincount(number.ravel(), minlength=len(known)), kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    kernels = list(known)
    words = tuple(f"{kernels[each].name}: {order_words(kernels[each])}" for each in order)
    return ElementClasses(title, rank[number], words)


def draw_classes(found: ElementClasses, path: Path) -> None:
    """D with a colour, a hatch and a letter for each class, row 0 on top, and what each is below."""
    m, n = found.number.shape
    scale = SIDE / max(m, n)
    high, wide = max(m * scale, LEAST_SIDE), max(n * scale, LEAST_SIDE)
    rows = _legend(found)
    below, head, left = 0.3 + LINE * len(rows), 1.0, 0.75
    letters = max(len(found.title), max(len(text) for *_, text in rows))
    width = max(left + wide + 0.4, WORDS + LETTER * letters + 0.2)
    height = head + high + below
    figure = new_figure(path, width, height)
    axes = figure.add_axes((left / width, below / height, wide / width, high / height))
    _areas(axes, found)
    axes.set(xlim=(0, n), ylim=(m, 0), aspect="auto")
    axes.set_xlabel("column of D", fontsize=8.5, color=INK, labelpad=7)
    axes.set_ylabel("row of D", fontsize=8.5, color=INK)
    axes.xaxis.set_ticks(_ticks(n, int(wide / TICK)))
    axes.yaxis.set_ticks(_ticks(m, int(high / TICK)))
    axes.xaxis.set_label_position("top")
    axes.tick_params(labelsize=8, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False)
    figure.text(0.2 / width, 1 - 0.25 / height, found.title, fontsize=11, color=INK, va="center")
    _draw_legend(figure, rows, width, height)
    save(figure, path, "--out")


def _ticks(length: int, most: int) -> list[int]:
    """Places to number, so many at most and 0 besides: every 1, 2, 4, 8, 16, ... of them."""
    step = 1
    while length > step * most:
        step *= 2
    return list(range(0, length + 1, step))


def _areas(axes: Any, found: ElementClasses) -> None:
    """Rectangles of elements of one class: runs of columns that equal rows in a row have."""
    from matplotlib.patches import Rectangle

    m, n = found.number.shape
    tops = [0, *(np.flatnonzero((found.number[1:] != found.number[:-1]).any(1)) + 1), m]
    largest: dict[int, tuple[float, float, float, float]] = {}
    for top, bottom in pairwise(tops):
        row = found.number[top]
        lefts = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1), n]
        for left, right in pairwise(lefts):
            of = int(row[left])
            place = (float(left), float(top), float(right - left), float(bottom - top))
            colour = COLOURS[of] if of < MOST_CLASSES else REST
            axes.add_patch(Rectangle(place[:2], *place[2:], facecolor=colour, edgecolor=PAPER, linewidth=0.4,
                                     hatch=HATCHES[of] if of < MOST_CLASSES else None))  # fmt: skip
            if of not in largest or min(place[2] / n, place[3] / m) > min(largest[of][2] / n, largest[of][3] / m):
                largest[of] = place
    for of, (left, top, wide, high) in largest.items():
        if of < MOST_CLASSES and min(wide / n, high / m) > 0.035:
            axes.text(left + wide / 2, top + high / 2, LETTERS[of], ha="center", va="center", fontsize=9, color=INK,
                      bbox={"facecolor": PAPER, "edgecolor": "none", "boxstyle": "round,pad=0.15"})  # fmt: skip


def _legend(found: ElementClasses) -> list[tuple[str, str, str]]:
    """Letter, share and words of each class; all beyond the last colour are one line."""
    rows = [(LETTERS[of], f"{found.share(of):.1%}", words) for of, words in enumerate(found.words[:MOST_CLASSES])]
    others = len(found.words) - MOST_CLASSES
    if others > 0:
        share = 1 - sum(found.share(of) for of in range(MOST_CLASSES))
        rows.append(("", f"{share:.1%}", counted(others, "other class")))
    return rows


def _draw_legend(figure: Any, rows: Sequence[tuple[str, str, str]], width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    for of, texts in enumerate(rows):
        y = LINE * (len(rows) - of) - 0.02
        colour, hatch = (COLOURS[of], HATCHES[of]) if of < MOST_CLASSES else (REST, None)
        corner, size = (0.2 / width, (y - 0.08) / height), (0.28 / width, 0.17 / height)
        figure.add_artist(Rectangle(corner, *size, facecolor=colour, edgecolor=PAPER, linewidth=0, hatch=hatch,
                                    transform=figure.transFigure))  # fmt: skip
        for x, text, side in zip((0.58, 1.22, WORDS), texts, ("left", "right", "left"), strict=True):
            figure.text(x / width, y / height, text, fontsize=8.5, color=INK, va="center", ha=side)
