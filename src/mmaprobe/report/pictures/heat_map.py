"""Which bits differ in the mismatches of a run: an instruction a row, a bit a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Mismatch
from mmaprobe.evidence.store import Part
from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save

MOST_ROWS = 40
"""Instructions that are shown, those with the most mismatches first."""
CELL = 0.24
"""Inches that a bit is wide."""
ROW = 0.34
"""Inches that an instruction is high."""
HEAD = 1.0
"""Inches above the rows, for the title."""
FOOT = 1.35
"""Inches below them, for the numbers of the bits and the scale."""
NARROWEST = 8.0
"""Inches that a picture is wide at least."""
LETTER = 0.075
"""Inches that a letter of an id takes."""
DARK = 0.6
"""Of the scale, from which on a cell's number is written in white."""


@dataclass(frozen=True)
class BitRow:
    """Of one instruction the mismatches that evidence holds, how many there were in all, and in how many of those held
    each bit differs, the lowest bit first."""

    instruction: str
    format: str
    held: int
    counted: int
    differ: NDArray[np.int64]


def bit_rows(parts: Mapping[str, Part]) -> list[BitRow]:
    """A row an instruction with mismatches, those with the most first; UsageError where there are none."""
    rows = [_row(part) for part in parts.values() if part.mismatches]
    if not rows:
        raise UsageError("the run holds no mismatches: there is nothing to draw")
    return sorted(rows, key=lambda row: (-row.counted, row.instruction))


def _row(part: Part) -> BitRow:
    pairs = [_pair(each) for each in part.mismatches]
    name = next((each.format for each in part.mismatches if each.format), "")
    try:
        bits = formats.get(name).code_limit.bit_length() - 1
    except UsageError:
        name, bits = "", max((one | other).bit_length() for one, other in pairs)
    differ = [sum((one ^ other) >> bit & 1 for one, other in pairs) for bit in range(max(bits, 1))]
    return BitRow(part.instruction, name, len(pairs), part.mismatch_count, np.array(differ, np.int64))


def _pair(mismatch: Mismatch) -> tuple[int, int]:
    """Both answers to the vector as it was found."""
    return mismatch.vector.d, mismatch.expected


def draw_heat_map(title: str, rows: Sequence[BitRow], path: Path) -> None:
    """The rows as shares of the mismatches held; the number in a cell counts them."""
    shown = list(rows[:MOST_ROWS])
    bits = max(len(row.differ) for row in shown)
    label = max(LETTER * max(len(_words(row)) for row in shown) + 0.4, 2.0)
    width, height = max(label + CELL * bits + 0.4, NARROWEST), HEAD + FOOT + ROW * len(shown)
    figure = new_figure(path, width, height)
    axes = figure.add_axes((label / width, FOOT / height, CELL * bits / width, ROW * len(shown) / height))
    share = np.zeros((len(shown), bits))
    for number, row in enumerate(shown):
        share[number, bits - len(row.differ) :] = row.differ[::-1] / row.held
    image = axes.imshow(np.ma.masked_equal(share, 0), cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
    for (number, column), value in np.ndenumerate(share):
        if value > 0:
            count = str(shown[number].differ[bits - 1 - column])
            ink = "white" if value > DARK else INK
            axes.text(column, number, count, ha="center", va="center", fontsize=7, color=ink)
    axes.set_yticks(range(len(shown)), [_words(row) for row in shown], fontsize=8)
    axes.set_xticks(range(bits), [str(bits - 1 - column) for column in range(bits)], fontsize=7)
    axes.set_xlabel(
        "bit of the result; the number in a cell: in how many of the mismatches held it differs", fontsize=8
    )
    for row in {row.format: row for row in shown}.values():
        _edges(axes, row, bits)
    bar = figure.colorbar(image, cax=figure.add_axes((label / width, 0.45 / height, 2.5 / width, 0.12 / height)),
                          orientation="horizontal")  # fmt: skip
    bar.ax.set_title("share of the mismatches held", fontsize=7.5, loc="left", pad=2)
    bar.ax.tick_params(labelsize=7)
    figure.text(0.2 / width, 1 - 0.35 / height, f"Bits that differ: {title}", fontsize=11, color=INK, va="center")
    save(figure, path, "--out")


def _words(row: BitRow) -> str:
    return f"{row.instruction} ({row.held} of {row.counted:,})"


def _edges(axes: Any, row: BitRow, bits: int) -> None:
    """Where sign, exponent and fraction of a float of the widest format meet."""
    if not row.format or len(row.differ) != bits or not formats.get(row.format).is_float:
        return
    fmt = formats.get(row.format)
    fraction = fmt.padding + fmt.fraction_bits
    ends = {"fraction": (0, fraction), "exponent": (fraction, fraction + fmt.exponent_bits)}
    for name, (low, high) in ends.items():
        axes.axvline(bits - low - 0.5, color=INK, linewidth=1)
        axes.axvline(bits - high - 0.5, color=INK, linewidth=1)
        axes.text(bits - (low + high + 1) / 2, -0.75, name, ha="center", fontsize=8, color=SOFT)
