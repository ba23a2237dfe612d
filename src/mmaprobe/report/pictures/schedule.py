"""How a schedule adds one element: K cut into ranges and these joined, steps dealt to accumulators and these joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import Accumulators, GemmKernel
from mmaprobe.report.pictures.canvas import INK, PAPER, SOFT, new_figure, save
from mmaprobe.report.pictures.palette import COLOURS
from mmaprobe.report.tables.schedules import order_words

MOST_RANGES = 24
"""Ranges that are drawn at most."""
NAMED_RANGES = 14
"""Ranges of which each has its lanes in words; of more only its number."""
FIRST = 24
"""Steps that are drawn of a range: so many of its first ones."""
LAST = 8
"""And so many of its last ones."""
WIDE = 10.0
"""Inches that a picture is wide."""
LEFT = 1.15
"""Inches to the left of the steps, for the names of accumulators."""
RIGHT = 1.9
"""Inches to the right of them, for the sum of accumulators."""
LEVEL = 0.24
"""Inches of a level of additions."""
CELL = 0.3
"""Inches that an accumulator's row is high."""
BAND = 0.5
"""Inches that a range is high."""
GAP = 0.55
"""Inches between the ranges and the accumulators."""
PALE = (3, 4, 5)
"""Colours on which white is not read well."""
DIGIT = 0.65
"""Of its size what a digit is wide."""

Joined = tuple[float, int]


@dataclass(frozen=True)
class Addition:
    """A rounded addition of two terms, which lie at ``left`` and ``right`` along a side and at these levels."""

    left: float
    right: float
    levels: tuple[int, int]
    level: int


def additions(places: Sequence[float], pairwise: bool, start: float | None = None) -> list[Addition]:
    """The additions that join terms at these places, in a chain or pairwise; a sum lies between its terms, a level
    above the higher one.  ``start`` is where the value lies that all begins from."""
    found = list[Addition]()
    terms: list[Joined] = [(place, 0) for place in places]
    begin: list[Joined] = [] if start is None else [(start, 0)]
    if not pairwise:
        terms, begin = begin + terms, []
    while len(terms) > 1:
        some = [terms[i : i + 2] for i in range(0, len(terms), 2)]
        pairs = some if pairwise else [terms[:2], *([each] for each in terms[2:])]
        terms = [pair[0] if len(pair) == 1 else _add(found, pair[0], pair[1]) for pair in pairs]
    if begin:
        _add(found, begin[0], terms[0])
    return found


def _add(found: list[Addition], one: Joined, two: Joined) -> Joined:
    level = max(one[1], two[1]) + 1
    found.append(Addition(one[0], two[0], (one[1], two[1]), level))
    return (one[0] + two[0]) / 2, level


def draw_schedule(title: str, kernel: GemmKernel, k: int, path: Path) -> None:
    """A kernel at K, a range of it step by step; UsageError where K has more ranges than a picture shows."""
    ranges = kernel.ranges.of(k)
    if not 0 < len(ranges) <= MOST_RANGES:
        raise UsageError(f"K = {k} is cut into {len(ranges)} ranges; a picture shows 1 to {MOST_RANGES}: another k")
    start = None if kernel.join.start == "first" else 0.5
    shift = 0 if start is None else 1
    joins = additions([shift + i + 0.5 for i in range(len(ranges))], kernel.join.order == "pairwise", start)
    own = kernel.accumulators
    rows = len(_rows(own))
    tree = _height(joins)
    lower = CELL * rows + 0.5
    height = 0.8 + tree + BAND + GAP + lower
    figure = new_figure(path, WIDE, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDE), ylim=(0, height))
    axes.axis("off")
    axes.text(0.2, height - 0.25, title, fontsize=11, color=INK, va="center")
    axes.text(0.2, height - 0.52, order_words(kernel), fontsize=8.5, color=SOFT, va="center")
    _ranges(axes, kernel, ranges, joins, lower + GAP + BAND)
    longest = max(map(len, ranges))
    number = max(i for i, each in enumerate(ranges) if 2 * len(each) >= longest)
    _dealt(axes, kernel, ranges[number], number, lower + 0.1)
    save(figure, path, "--out")


def _added(kernel: GemmKernel, count: int) -> list[int]:
    """Numbers of the ranges in the order in which their sums are added."""
    numbers = list(range(count))
    return numbers[-1:] + numbers[:-1] if kernel.join.order == "last_first" else numbers


def _height(joins: Sequence[Addition]) -> float:
    return LEVEL * (max([each.level for each in joins], default=0) + 2)


def _ranges(axes: Any, kernel: GemmKernel, ranges: Sequence[range], joins: Sequence[Addition], top: float) -> None:
    """A box a range, in the order in which they are added, and above them the additions."""
    shift = 0 if kernel.join.start == "first" else 1
    each = (WIDE - 0.4) / (len(ranges) + shift)
    if shift:
        what = "+0" if kernel.join.start == "zero" else "C"
        _box(axes, 0.2, top - BAND, each, BAND, what, PAPER, INK)
    for place, number in enumerate(_added(kernel, len(ranges))):
        lanes, x, colour = ranges[number], 0.2 + each * (place + shift), COLOURS[number % 2]
        said = f"P{number}"
        if len(ranges) <= NAMED_RANGES:
            said = f"P{number}\n{lanes.start} to {lanes.stop - 1}" if each > 0.85 else f"P{number}\n{lanes.start}"
        _box(axes, x, top - BAND, each, BAND, said, colour, PAPER)
    for join in joins:
        _join(axes, join, lambda place, level: (0.2 + each * place, top + LEVEL * level), True)
    end = joins[-1] if joins else Addition(shift + 0.5, shift + 0.5, (0, 0), 0)
    middle, crest = 0.2 + each * (end.left + end.right) / 2, top + LEVEL * end.level
    axes.plot([middle, middle], [crest, crest + 0.8 * LEVEL], color=INK, linewidth=1)
    said = f"the sum, {kernel.join.format}"
    axes.text(middle, crest + 0.9 * LEVEL, said, fontsize=8.5, color=INK, ha="center", va="bottom")


def _dealt(axes: Any, kernel: GemmKernel, lanes: range, number: int, top: float) -> None:
    """The steps of a range in the rows of the accumulators that they go to."""
    width = kernel.step.width
    own, steps = kernel.accumulators, -(-len(lanes) // width)
    shown: list[int | None] = list(range(steps))
    if steps > FIRST + LAST + 1:
        shown = [*range(FIRST), None, *range(steps - LAST, steps)]
    each = min((WIDE - LEFT - RIGHT) / len(shown), 0.45)
    order = _rows(own)
    names = ["one by one" if i is None else f"x{i}" for i in order]
    dealt = own.dealt(steps)
    of = {int(step): row for row, i in enumerate(order) if i is not None for step in dealt[i]}
    promoted = _promoted(kernel, steps)
    axes.text(0.2, top, _head(kernel, lanes, number, width), fontsize=8.5, color=INK, va="center")
    for row, name in enumerate(names):
        axes.text(LEFT - 0.12, _row(top, row), name, fontsize=8.5, color=INK, va="center", ha="right")
        axes.plot([LEFT, LEFT + each * len(shown)], [_row(top, row)] * 2, color="#d9dee3", linewidth=0.8, zorder=0)
    for column, step in enumerate(shown):
        x = LEFT + each * column
        if step is None:
            axes.text(
                x + each / 2, _row(top, (len(names) - 1) / 2), "…", fontsize=9, color=SOFT, ha="center", va="center"
            )
            continue
        row = of[step] if step in of else order.index(None)
        y = _row(top, row)
        colour = row % len(COLOURS)
        size = min(7.0, 72 * each / (DIGIT * len(str(step)) + 0.4))
        _box(axes, x, y - 0.11, each, 0.22, str(step), COLOURS[colour], INK if colour in PALE else PAPER, size)
        if step in promoted:
            axes.plot([x + each] * 2, [y - 0.15, y + 0.15], color=INK, linewidth=2.2)
    _sum_of_accumulators(axes, kernel, LEFT + each * len(shown) + 0.1, top)


def _rows(own: Accumulators) -> list[int | None]:
    """Accumulators in the order of the rows, those that are added side by side; None where the steps are that go to
    none of them."""
    first, second = own.terms()
    if own.rest == "before":
        return [*first, None, *second]
    return [*first, *second, *([None] * (own.rest == "after"))]


def _row(top: float, row: float) -> float:
    return top - 0.4 - CELL * row


def _head(kernel: GemmKernel, lanes: range, number: int, width: int) -> str:
    step = "one product" if width == 1 else f"{width} products"
    text = f"range {number} (k {lanes.start} to {lanes.stop - 1}): which accumulator a step, {step}, goes to"
    promotion = kernel.promotion
    return text + (f"; at a bar it is added to a second one, {promotion.format}" if promotion else "")


def _promoted(kernel: GemmKernel, steps: int) -> set[int]:
    """Steps after which an accumulator is promoted."""
    if kernel.promotion is None:
        return set()
    every = kernel.promotion.every
    dealt = kernel.accumulators.dealt(steps)
    return {int(own[i]) for own in dealt for i in range(len(own)) if (i + 1) % every == 0 or i == len(own) - 1}


def _sum_of_accumulators(axes: Any, kernel: GemmKernel, x: float, top: float) -> None:
    """The additions that join accumulators, from left to right, and their sum."""
    own = kernel.accumulators
    joins = _joins(own)
    levels = max([each.level for each in joins], default=0)
    wide = min(0.3, (RIGHT - 0.75) / (levels + 1))
    for join in joins:
        _join(axes, join, lambda place, level: (_row(top, place), x + wide * level), False)
    end = joins[-1] if joins else Addition(0, 0, (0, 0), 0)
    y, edge = _row(top, (end.left + end.right) / 2), x + wide * levels
    axes.plot([edge, edge + 0.2], [y, y], color=INK, linewidth=1)
    axes.text(edge + 0.25, y, f"P, {own.format}", fontsize=8.5, color=INK, va="center")


def _joins(own: Accumulators) -> list[Addition]:
    """The additions of accumulators, and of what goes to none of them, by their rows."""
    found, order = list[Addition](), _rows(own)
    first, second = ([order.index(i) for i in term] for term in own.terms())
    total = _summed(found, first, own.join != "chain")
    if own.rest == "before":
        total = _add(found, total, (order.index(None), 0))
    if second:
        total = _add(found, total, _summed(found, second, own.join != "chain"))
    if own.rest == "after":
        _add(found, total, (order.index(None), 0))
    return found


def _summed(found: list[Addition], rows: Sequence[int], pairwise: bool) -> Joined:
    """The sum of these rows, whose additions are found then."""
    own = additions(rows, pairwise)
    found += own
    return ((own[-1].left + own[-1].right) / 2, own[-1].level) if own else (rows[0], 0)


def _join(axes: Any, join: Addition, place: Any, upward: bool) -> None:
    """A bracket from two terms to their sum, with a plus."""
    corners = [place(join.left, join.levels[0]), place(join.left, join.level), place(join.right, join.level),
               place(join.right, join.levels[1])]  # fmt: skip
    middle = place((join.left + join.right) / 2, join.level)
    points = [each if upward else each[::-1] for each in corners]
    axes.plot([x for x, _ in points], [y for _, y in points], color=INK, linewidth=1, solid_joinstyle="miter")
    x, y = middle if upward else middle[::-1]
    axes.text(x, y, "+", fontsize=7, color=PAPER, ha="center", va="center_baseline",
              bbox={"facecolor": INK, "edgecolor": "none", "boxstyle": "circle,pad=0.12"})  # fmt: skip


def _box(
    axes: Any, x: float, y: float, width: float, height: float, text: str, colour: str, ink: str, size: float = 7.0
) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=PAPER, linewidth=0.8))
    axes.text(x + width / 2, y + height / 2, text, fontsize=size, color=ink, ha="center", va="center")
