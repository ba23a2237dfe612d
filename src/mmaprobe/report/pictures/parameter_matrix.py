"""All architectures beside each other: how each adds products of each pair of formats."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmaprobe import formats
from mmaprobe.catalog.lookup import architectures
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Add, Datapath, Exact, Fma, Fused, walk
from mmaprobe.parameters.files import Entry
from mmaprobe.parameters.lookup import load
from mmaprobe.report.datapath.phrases import describe, in_few_letters
from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save

COLUMNS = (
    ("f64", "f64"), ("f32", "f32"), ("tf32", "f32"), ("bf16", "f32"), ("f16", "f32"), ("f16", "f16"), ("e4m3", "f32"),
    ("e4m3fnuz", "f32"), ("e5m2", "f32"), ("e2m1", "f32"), ("s8", "s32"),
)  # fmt: skip
"""Formats of A and B, and of the result."""
KINDS = {
    "few": ("#f4b6a6", "aligned, fewer bits than an f32"),
    "aligned": ("#f8e0a3", "aligned sum, cut"),
    "rounded": ("#bcdff2", "rounded additions"),
    "exact": ("#c6e5c9", "every bit"),
    "none": ("#f3f5f7", "no such unit, or nothing known"),
}
"""What a cell is filled with; its text says the same."""
SINGLE = 23
"""Fraction bits of an f32."""
LINES = 2
"""Ways of one architecture that a cell names; of more the number."""
CELL = 1.28
"""Inches that a cell is wide."""
ROW = 0.52
"""Inches that a row is high."""
NAMES = 2.3
"""Inches for the names of architectures."""
NAMED = 5
"""Architectures of a row that are named."""
CELL_LETTERS = 20
"""Letters of a line of a cell."""
LETTERS = 30
"""Letters of a line of names."""


@dataclass(frozen=True)
class MatrixCell:
    """What an architecture does with a pair of formats: a line a way, the kind of the least precise one, whether all of
    it was measured on silicon and none of it is a mere prediction."""

    lines: tuple[str, ...] = ()
    kind: str = "none"
    measured: bool = False
    predicted: bool = False


@dataclass(frozen=True)
class MatrixRow:
    """Architectures that do all the same, and what that is."""

    architectures: tuple[str, ...]
    cells: tuple[MatrixCell, ...]


def matrix() -> list[MatrixRow]:
    """Every architecture of which anything is known, those that do the same together."""
    rows: dict[tuple[MatrixCell, ...], list[str]] = {}
    for name in architectures():
        try:
            entries = list(load(name).entries.values())
        except UsageError:
            continue
        cells = tuple(_cell(entries, a, d) for a, d in COLUMNS)
        if any(cell.lines for cell in cells):
            rows.setdefault(cells, []).append(name)
    return [MatrixRow(tuple(names), cells) for cells, names in rows.items()]


def _cell(entries: Sequence[Entry], a: str, d: str) -> MatrixCell:
    wanted = [each for each in entries if each.datapath.a == each.datapath.b == a and each.datapath.d == d]
    if not wanted:
        return MatrixCell()
    kinds = {_kind(each.datapath) for each in wanted}
    lines = tuple(dict.fromkeys(_line(each.datapath) for each in wanted))
    bases = {each.basis for each in wanted}
    return MatrixCell(
        lines, next(kind for kind in KINDS if kind in kinds), bases == {"measured"}, bases == {"predicted"}
    )


def _kind(path: Datapath) -> str:
    sums = [node for node in walk(path.tree) if isinstance(node, (Fused, Exact, Add, Fma))]
    cuts = [node.last_place for node in sums if isinstance(node, Fused) and node.last_place is not None]
    if cuts:
        return "few" if min(cuts) < SINGLE and formats.get(path.d).fraction_bits >= SINGLE else "aligned"
    return "rounded" if any(isinstance(node, (Add, Fma)) for node in sums) else "exact"


def _line(path: Datapath) -> str:
    """``F=25 RZ``: the bits that are kept, and how the result is rounded."""
    words = describe(path)
    precision = in_few_letters(words["precision"]).replace(" each", "").replace("products ", "p ")
    rounding = (
        words["rounding"].rpartition("result ")[2].partition(",")[0].replace(" bits then", ",").replace(" at", "")
    )
    short = {"every bit": "exact"}.get(precision, precision)
    return f"{short} {rounding}" if formats.get(path.d).is_float else f"{short}, {rounding}"


def _shown(cell: MatrixCell) -> str:
    """The lines of a cell, cut to what it has room for."""
    more = [f"and {len(cell.lines) - LINES + 1} more"] * (len(cell.lines) > LINES)
    shown = (*cell.lines[: LINES - len(more)], *more)
    return "\n".join(line for each in shown for line in textwrap.wrap(each, CELL_LETTERS))


def _names(row: MatrixRow) -> str:
    """As many names as there is room for, and how many more there are."""
    few = row.architectures if len(row.architectures) <= NAMED else row.architectures[: NAMED - 1]
    left = len(row.architectures) - len(few)
    return "\n".join(textwrap.wrap(", ".join(few) + (f" and {left} more" if left else ""), LETTERS))


def draw_matrix(rows: Sequence[MatrixRow], path: Path) -> None:
    """The matrix with what a cell says, its kind as colour."""
    width, height = NAMES + CELL * len(COLUMNS) + 0.4, 1.75 + ROW * len(rows)
    figure = new_figure(path, width, height)
    from matplotlib.patches import Patch, Rectangle

    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    axes.text(0.25, 0.35, "How each architecture adds products", fontsize=13, fontweight="bold", color=INK, va="center")
    said = (
        "F: fraction bits kept below the largest exponent; a format: each addition is rounded to it (p: each product)"
    )
    said += "; then how the result is rounded; bold: measured on silicon; italic: predicted"
    axes.text(0.25, 0.65, said, fontsize=8.5, color=SOFT, va="center")
    for column, (a, d) in enumerate(COLUMNS):
        axes.text(NAMES + CELL * (column + 0.5), 1.0, f"{a} → {d}", fontsize=9, color=INK, ha="center", va="center")
    for number, row in enumerate(rows):
        y = 1.2 + ROW * number
        axes.text(0.25, y + ROW / 2, _names(row), fontsize=8, color=INK, va="center")
        for column, cell in enumerate(row.cells):
            x = NAMES + CELL * column
            axes.add_patch(Rectangle((x, y), CELL - 0.04, ROW - 0.04, facecolor=KINDS[cell.kind][0], linewidth=0))
            axes.text(
                x + CELL / 2 - 0.02, y + ROW / 2, _shown(cell), fontsize=7.5, color=INK, ha="center", va="center",
                fontweight="bold" if cell.measured else "normal", fontstyle="italic" if cell.predicted else "normal",
            )  # fmt: skip
    patches = [Patch(facecolor=colour, label=label) for colour, label in KINDS.values()]
    axes.legend(
        handles=patches, ncols=len(KINDS), loc="lower left", bbox_to_anchor=(0.01, 0.0), frameon=False, fontsize=8.5
    )
    save(figure, path, "--out")
