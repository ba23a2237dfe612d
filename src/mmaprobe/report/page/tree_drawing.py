"""A summation tree drawn from the root down the left side, one cell a term, so that it fits a telephone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.datapath.naming import headline
from mmaprobe.report.datapath.tree import Branch, each_step, text
from mmaprobe.report.page.drawing import LETTER, WIDTH, Drawing

INDENT = 15
"""Units from a node to those below it."""
DEEPEST = 8
"""Levels that are indented; what lies deeper stands below the last of them."""
CELL = 24
"""Units that the cell of a term is wide."""
TALL = 18
"""Units that it is high."""
ROW = 20
"""Units from one row to the next."""
LINE = 16
"""Units from one line of text to the next."""


def draw_tree(datapath: Datapath, name: str) -> str:
    """The tree as inline SVG: a cell of the class ``leaf`` for every lane's product, for c and for a zero."""
    steps = each_step(datapath)
    description = "\n".join(text(step) for step in steps)
    drawn = _Tree(Drawing(name, f"Summation tree: {headline(datapath)}", description))
    for number, (step, lanes) in enumerate(zip(steps, datapath.steps, strict=True)):
        if len(steps) > 1:
            drawn.say(0, f"step {number + 1} of {len(steps)}{': the same sum over' * (number > 0)}", "head")
        if number == 0:
            drawn.branch(step, 0)
        else:
            drawn.cells(1, [(f"r{number}", "leaf carried"), *((str(lane), "leaf product") for lane in lanes)])
    return drawn.canvas.close(drawn.y + LINE / 2)


class _Tree:
    """A drawing that grows downwards; ``y`` is where the next row begins."""

    def __init__(self, canvas: Drawing) -> None:
        self.canvas, self.y = canvas, 2.0

    def branch(self, branch: Branch, depth: int) -> None:
        """A node, then all below it; cells of neighbouring leaves stand in one row."""
        if not branch.children:
            self.cells(depth, _leaves(branch))
            self.notes(depth, branch)
            return
        begin = self.y
        words = f"{branch.kind}: {branch.detail}" if branch.detail else branch.kind
        self.say(depth, f"[{branch.edge}] {words}" if branch.edge else words, f"node {branch.kind}")
        waiting: list[tuple[str, str]] = []
        for child in branch.children:
            if child.children or child.edge or child.detail:
                self.cells(depth + 1, waiting)
                waiting = []
                self.branch(child, depth + 1)
            else:
                waiting += _leaves(child)
        self.cells(depth + 1, waiting)
        if depth < DEEPEST:
            x = _left(depth) + 4
            self.canvas.line(x, begin + LINE, x, self.y - 4)

    def say(self, depth: int, words: str, kind: str) -> None:
        """Text in as many lines as it takes; of a node with its mark before it."""
        x = _left(depth)
        node = kind.startswith("node")
        if node:
            self.canvas.box(x, self.y + 3, 9, 9, kind, 4.5)
        letters = int((WIDTH - x - 14 * node) / LETTER)
        for line in textwrap.wrap(words, max(letters, 12)) or [""]:
            self.y += LINE
            self.canvas.text(x + 14 * node, self.y - 4, line, "say" if node else kind)

    def notes(self, depth: int, branch: Branch) -> None:
        """What happens to leaves on their way up."""
        words = "; ".join(part for part in (branch.detail if branch.kind == "product" else "", branch.edge) if part)
        if words:
            self.say(depth, words, "note")

    def cells(self, depth: int, leaves: Sequence[tuple[str, str]]) -> None:
        """One cell a leaf, as many in a row as there is room for."""
        left = _left(depth)
        across = int((WIDTH - left) // CELL)
        for number, (title, kind) in enumerate(leaves):
            row, column = divmod(number, across)
            x, y = left + column * CELL, self.y + row * ROW
            self.canvas.box(x, y, CELL - 2, TALL, kind)
            self.canvas.text(x + CELL / 2 - 1, y + TALL - 5, title, "cell")
        self.y += -(-len(leaves) // across) * ROW + 2 * bool(leaves)


def _left(depth: int) -> float:
    return 1 + INDENT * min(depth, DEEPEST)


def _leaves(branch: Branch) -> list[tuple[str, str]]:
    """Title and class of the cells of a leaf."""
    if branch.kind == "product":
        return [(str(lane), "leaf product") for lane in branch.lanes]
    return [({"zero": "0"}.get(branch.kind, branch.kind), f"leaf {branch.kind}")]
