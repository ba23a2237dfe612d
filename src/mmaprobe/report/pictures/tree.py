"""Summation trees as PNG or SVG (needs the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.report.datapath.tree import Branch
from mmaprobe.report.pictures.canvas import INK, PAPER, SOFT, new_figure, save

FILL = {
    "fused": "#0b7285",
    "fma": "#5f3dc4",
    "add": "#a61e4d",
    "exact": "#2b8a3e",
    "unknown": "#495057",
    "chain": "#0b7285",
    "pair": "#a61e4d",
    "pairwise": "#a61e4d",
    "folded": "#5f3dc4",
    "product": "#d0ebff",
    "c": "#ffe066",
    "zero": "#f1f3f5",
    "step": "#f1f3f5",
}
ROW = 1.2
"""Inches from one row of boxes to the next."""
LEAF = 0.4
"""Inches that a leaf is wide at least."""
GAP = 0.09
"""Inches between two boxes."""
NODE_HEIGHT = 0.56
"""Inches that a node's box is high."""
LEAF_HEIGHT = 0.38
"""Inches that a leaf's box is high."""
STRIP = 2.9
"""Inches of the strip below that shows how deep each lane lies."""
LANES_SHOWN = 20
"""Trees of more lanes show groups of products as one leaf."""


@dataclass
class Box:
    """A branch with its place: centre ``x``, row ``depth``, width, all in inches."""

    branch: Branch
    title: str
    x: float
    depth: int
    width: float
    below: list[Box] = field(default_factory=list)

    @property
    def leaf(self) -> bool:
        return not self.below

    @property
    def deepest(self) -> int:
        return max([self.depth, *(box.deepest for box in self.below)])


def draw(
    trees: Sequence[tuple[str, str, Branch]], path: Path, depths: Sequence[int] = (), option: str = "--picture"
) -> None:
    """Draw (title, subtitle, tree) side by side into ``path``; its suffix, .png or .svg, says the kind.

    ``depths``: how many additions each lane goes through, a strip below the trees.  ``option`` is the one that names
    the file.
    The file appears whole or not at all.  UsageError for another suffix,
    NotHereError without matplotlib, CannotWriteError where the file cannot be
    written.
    """
    laid: list[Box] = []
    right = 0.0
    for title, subtitle, tree in trees:
        left = right + 0.4
        box, end = _place(tree, left, 0, _lanes(tree) <= LANES_SHOWN)
        laid.append(box)
        right = max(end, left + 0.085 * max(len(title) * 1.4, len(subtitle)))
    rows = max(box.deepest for box in laid)
    strip = STRIP if len(depths) else 0.0
    width, height = max(right + 0.4, 3 * strip), rows * ROW + 2.4 + strip
    figure = new_figure(path, width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    for box, (title, subtitle, _) in zip(laid, trees, strict=True):
        _heading(axes, _left(box), height, title, subtitle)
        _draw(axes, box, height - 1.6)
    terms = "pk: the term of lane k" if len(depths) else "pk: the product of lane k, exact unless it says otherwise"
    axes.text(0.4, 0.2, f"{terms}    C: the accumulator", fontsize=8, color=SOFT, va="center")
    if len(depths):
        _strip(figure, depths, (0.7 / width, 0.95 / height, 1 - 1.1 / width, (strip - 0.85) / height))
    save(figure, path, option)


def _strip(figure: Any, depths: Sequence[int], place: tuple[float, float, float, float]) -> None:
    """A dot a lane: how many additions its product goes through, by height and colour."""
    axes = figure.add_axes(place)
    size = min(30.0, max(0.8, 6000 / len(depths)))
    axes.scatter(range(len(depths)), depths, c=depths, cmap="viridis", s=size, linewidths=0, rasterized=True)
    axes.set_xlim(-0.5, len(depths) - 0.5)
    axes.set_ylim(0, max(depths) * 1.08)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_title("additions on the way of each lane to the result", loc="left", fontsize=9, color=INK)
    axes.set_xlabel("lane", fontsize=8, color=SOFT)
    axes.tick_params(labelsize=8, colors=SOFT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _lanes(branch: Branch) -> int:
    return len(branch.lanes) + sum(map(_lanes, branch.children))


def _left(box: Box) -> float:
    return min([box.x - box.width / 2, *(_left(child) for child in box.below)])


def _place(branch: Branch, left: float, depth: int, every_lane: bool) -> tuple[Box, float]:
    """The branch and everything below it placed from ``left`` on; also where it ends."""
    if not branch.children:
        title = _title(branch)
        width = max(LEAF, 0.085 * len(title) + 0.14)
        return Box(branch, title, left + width / 2, depth, width), left + width
    below: list[Box] = []
    end = left
    for child in _spread(branch.children, every_lane):
        box, end = _place(child, end, depth + 1, every_lane)
        below.append(box)
        end += GAP
    end -= GAP
    width = max(0.079 * len(branch.detail) + 0.3, 0.9)
    centre = (below[0].x + below[-1].x) / 2
    shift = max(0.0, left + width / 2 - centre)
    for box in below:
        _move(box, shift)
    return Box(branch, branch.kind, centre + shift, depth, width, below), max(end + shift, centre + shift + width / 2)


def _spread(children: Sequence[Branch], every_lane: bool) -> list[Branch]:
    """Products as a leaf each, or a few together as one where the tree has many."""
    out: list[Branch] = []
    for child in children:
        each = child.kind == "product" and (every_lane or len(child.lanes) <= 4)
        out += [replace(child, lanes=(k,)) for k in child.lanes] if each else [child]
    return out


def _title(branch: Branch) -> str:
    if branch.kind != "product":
        return {"zero": "0", "c": "C", "step": branch.detail}.get(branch.kind, branch.kind)
    lanes = branch.lanes
    if len(lanes) == 1:
        return f"p{lanes[0]}"
    step = lanes[1] - lanes[0]
    if lanes == tuple(range(lanes[0], lanes[-1] + step, step)):
        return f"p{lanes[0]}, p{lanes[1]} … p{lanes[-1]}" if step != 1 else f"p{lanes[0]} … p{lanes[-1]}"
    return f"p of {format_lanes(lanes)}"


def _move(box: Box, by: float) -> None:
    box.x += by
    for child in box.below:
        _move(child, by)


def _heading(axes: Any, x: float, height: float, title: str, subtitle: str) -> None:
    axes.text(x, height - 0.42, title, fontsize=13, fontweight="bold", color=INK, va="center")
    axes.text(x, height - 0.72, subtitle, fontsize=9, color=SOFT, va="center")


def _draw(axes: Any, box: Box, top: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    y = top - box.depth * ROW
    if box.depth == 0:
        _edge(axes, box.x, y + NODE_HEIGHT / 2, box.x, y + 0.62)
        axes.text(box.x + 0.1, y + 0.52, "d", fontsize=10, style="italic", color=INK, va="center")
    for child in box.below:
        child_height = LEAF_HEIGHT if child.leaf else NODE_HEIGHT
        into = box.x + (child.x - box.x) * min(1.0, 0.8 * box.width / max(abs(_span(box)), box.width))
        _edge(axes, child.x, top - child.depth * ROW + child_height / 2, into, y - NODE_HEIGHT / 2)
        _draw(axes, child, top)
    _notes(axes, box, top)
    height = LEAF_HEIGHT if box.leaf else NODE_HEIGHT
    corner = (box.x - box.width / 2, y - height / 2)
    shape = FancyBboxPatch(
        corner, box.width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor=FILL[box.branch.kind],
        edgecolor="none" if not box.leaf else "#adb5bd", linewidth=0.6, zorder=2,
    )  # fmt: skip
    axes.add_patch(shape)
    style: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3}
    if box.leaf:
        axes.text(box.x, y, box.title, fontsize=8, color=INK, **style)
        return
    two = bool(box.branch.detail)
    axes.text(box.x, y + 0.1 * two, box.title, fontsize=11, fontweight="bold", color=PAPER, **style)
    axes.text(box.x, y - 0.14, box.branch.detail, fontsize=8, color=PAPER, **style)


def _notes(axes: Any, box: Box, top: float) -> None:
    """What happens to the products of a node, below them; to other terms, on their way up."""
    y = top - (box.depth + 1) * ROW
    rounded = [child for child in box.below if child.branch.kind == "product" and child.branch.detail]
    if rounded:
        middle = (rounded[0].x + rounded[-1].x) / 2
        axes.text(middle, y - 0.34, rounded[0].branch.detail, fontsize=7.5, color=SOFT, ha="center", va="center")
    for child in box.below:
        if child.branch.edge and child.branch.kind != "product":
            height = LEAF_HEIGHT if child.leaf else NODE_HEIGHT
            axes.text(
                child.x, y + height / 2 + 0.13, child.branch.edge, fontsize=7.5, color=INK, ha="center", va="center",
                zorder=4, bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip


def _span(box: Box) -> float:
    return box.below[-1].x - box.below[0].x


def _edge(axes: Any, x0: float, y0: float, x1: float, y1: float) -> None:
    """A soft curve from a leaf's top to the underside of its node."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    middle = (y0 + y1) / 2
    curve = Curve([(x0, y0), (x0, middle), (x1, middle), (x1, y1)], [Curve.MOVETO] + [Curve.CURVE4] * 3)
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=SOFT, linewidth=1.1, zorder=1))
