"""Draw the pictures of docs/words.md: ``python docs/word_pictures.py`` writes them into docs/images/words.

They are drawn as those of a report's page are, in its colours, by light and in the dark; a unit's are of its model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from mmaprobe.catalog.lookup import instruction
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.report.datapath.window import windows
from mmaprobe.report.page.drawing import Drawing
from mmaprobe.report.page.tree_drawing import draw_tree
from mmaprobe.report.page.window_drawing import draw_window

IMAGES = Path(__file__).parent / "images" / "words"
CELL = 24
"""Units from one cell to the next."""
TALL = 18
"""Units that a cell is high."""
BIT = 11
"""Units from one bit to the next."""
NAME = 12
"""Units from a line of text to what stands below it."""


def of(architecture: str, name: str) -> Datapath:
    """What an instruction computes."""
    return datapath_for(architecture, instruction(name, architecture))


def cells(canvas: Drawing, x: float, y: float, words: list[str], kind: str) -> float:
    """Cells beside each other; where the next one would begin."""
    for word in words:
        canvas.box(x, y, CELL - 2, TALL, f"leaf {kind}")
        canvas.text(x + CELL / 2 - 1, y + TALL - 5, word, "cell")
        x += CELL
    return x


def bits(canvas: Drawing, x: float, y: float, kinds: str) -> None:
    """A bit a letter: ``k`` kept, ``s`` seen by the rounding, ``l`` lost; a space is none."""
    for number, letter in enumerate(kinds):
        if letter != " ":
            kind = {"k": "kept", "s": "seen", "l": "lost"}[letter]
            canvas.box(x + number * BIT, y, BIT - 1, NAME, f"bit {kind}", 1)


def vector() -> str:
    """One row of A, one column of B, an element of C, and the element of D that they make."""
    canvas = Drawing("vector", "A vector", "K elements of a and b, multiplied in pairs, and c, make one d")
    canvas.text(1, NAME, "a, a row of A")
    cells(canvas, 1, NAME + 4, ["a0", "a1", "a2", "a3"], "product")
    canvas.text(1, 50, "b, a column of B")
    cells(canvas, 1, 54, ["b0", "b1", "b2", "b3"], "product")
    canvas.text(124, 32, "c")
    cells(canvas, 124, 36, ["c"], "c")
    canvas.line(154, 45, 196, 45)
    canvas.text(202, 32, "d = a0·b0 + ... + c")
    cells(canvas, 202, 36, ["d"], "carried")
    return canvas.close(78)


def tile() -> str:
    """The rows and columns of which each pair makes an element of D."""
    canvas = Drawing("tile", "A tile", "A row of A and a column of B make one element of D")
    canvas.text(1, 88, "A, M x K")
    canvas.text(110, NAME, "B, K x N")
    canvas.text(226, 132, "D, M x N")
    for row in range(4):
        for column in range(3):
            chosen = "product" if row == 1 else "zero"
            canvas.box(1 + 22 * column, 96 + 16 * row, 20, 14, f"leaf {chosen}")
    for row in range(3):
        for column in range(5):
            chosen = "product" if column == 3 else "zero"
            canvas.box(110 + 22 * column, NAME + 8 + 16 * row, 20, 14, f"leaf {chosen}")
    for row in range(4):
        for column in range(5):
            chosen = "carried" if (row, column) == (1, 3) else "zero"
            canvas.box(110 + 22 * column, 96 + 16 * row, 20, 14, f"leaf {chosen}")
    return canvas.close(162)


def step() -> str:
    """Ampere's sixteen products, in two steps."""
    return draw_tree(of("sm_80", "mma.m16n8k16.f32.f16.f16.f32"), "step")


def window() -> str:
    """Hopper's window."""
    (found,) = windows(of("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"))
    return draw_window(found, "window")


def carry() -> str:
    """Four terms of the same size need two bits above them."""
    canvas = Drawing("carry", "Carry bits", "The sum of four terms of five bits takes two bits more at the top")
    for row in range(4):
        bits(canvas, 1 + 2 * BIT, 2 + 15 * row, "kkkkk")
        canvas.text(100, 12 + 15 * row, f"term {row}")
    canvas.line(1, 64, 90, 64)
    bits(canvas, 1, 68, "sskkkkk")
    canvas.text(100, 78, "their sum: two carry bits on top")
    return canvas.close(84)


def roundings() -> str:
    """Where a number between two representable ones goes."""
    canvas = Drawing(
        "roundings", "Roundings", "2.5 and -2.5 lie between representable numbers; the arrows show where they go"
    )
    places = {number: 165 + number * 42 for number in range(-3, 4)}
    canvas.line(20, 22, 310, 22)
    for number, x in places.items():
        canvas.line(x, 17, x, 27)
        canvas.text(x - 4 - 3 * (number < 0), 13, str(number))
    goes = {"RZ": (-2, 2), "RA": (-3, 3), "RD": (-3, 2), "RU": (-2, 3), "RNE": (-2, 2), "RNO": (-3, 3)}
    for row, (name, (minus, plus)) in enumerate(goes.items()):
        y = 44 + 18 * row
        canvas.text(1, y + 4, name, "head")
        for start, end in ((-2.5, minus), (2.5, plus)):
            x = 165 + start * 42
            canvas.box(x - 3, y - 3, 6, 6, "node fused", 3)
            canvas.line(x, y, places[end], y, "edge")
    return canvas.close(44 + 18 * len(goes))


def subnormals() -> str:
    """The numbers of a small format near zero."""
    canvas = Drawing(
        "subnormals", "Subnormals", "Below the smallest normal number the spacing stays the same down to zero"
    )
    canvas.line(5, 30, 325, 30)
    for eighth in (*range(8), *range(8, 16), *range(16, 33, 2)):
        x = 5 + eighth * 10
        canvas.line(x, 23 if eighth >= 8 else 26, x, 37 if eighth >= 8 else 34, "wire" if eighth >= 8 else "edge")
    canvas.text(1, 16, "0")
    canvas.text(8, 54, "subnormal")
    canvas.text(85, 54, "normal, from 2^emin on")
    canvas.text(82, 16, "2^emin")
    return canvas.close(62)


def scale() -> str:
    """One scale for four lanes."""
    canvas = Drawing("scale", "Block scales", "Each four elements of a share one scale")
    for block in range(2):
        x = 1 + block * 4.4 * CELL
        canvas.box(x, 2, 4 * CELL - 2, TALL, "leaf carried")
        canvas.text(x + 2 * CELL - 1, TALL - 3, f"scale {block}", "cell")
        cells(canvas, x, TALL + 5, [f"a{4 * block + lane}" for lane in range(4)], "product")
    return canvas.close(46)


def sparsity() -> str:
    """Of each four elements of A two are stored, and the metadata place them."""
    canvas = Drawing("sparsity", "Sparsity", "Of each four elements of A two are stored; metadata say which")
    canvas.text(1, NAME, "A as it is meant")
    x = 1.0
    for word in ("a0", "0", "0", "a3", "0", "a5", "a6", "0"):
        x = cells(canvas, x, NAME + 5, [word], "zero" if word == "0" else "product")
    canvas.text(1, 52, "A as it is stored")
    cells(canvas, 1, 57, ["a0", "a3", "a5", "a6"], "product")
    canvas.text(130, 52, "metadata")
    cells(canvas, 130, 57, ["0,3", "1,2"], "c")
    return canvas.close(80)


def zero_exponent() -> str:
    """A zero whose exponent field is the largest, and a tiny term that falls out of the window."""
    canvas = Drawing("zero-exponent", "Zero exponent", "The zero's exponent moves the window up: the tiny term is cut")
    canvas.text(1, NAME, "a zero takes no part: the tiny term is kept")
    bits(canvas, 1 + 8 * BIT, NAME + 8, "kkkkkk")
    canvas.line(1 + 18 * BIT, NAME + 5, 1 + 18 * BIT, NAME + 23, "edge")
    canvas.text(1, 54, "it shows an exponent: the window is cut from there")
    canvas.box(1, 62, 8 * BIT - 1, NAME, "leaf zero", 1)
    bits(canvas, 1 + 8 * BIT, 62, "kklll" + "l")
    canvas.line(1 + 10 * BIT, 59, 1 + 10 * BIT, 77, "edge")
    return canvas.close(81)


DRAWN: tuple[Callable[[], str], ...] = (
    vector, tile, step, window, carry, roundings, subnormals, zero_exponent, scale, sparsity,
)  # fmt: skip


def style() -> str:
    """What of the page's style is about drawings."""
    text = resources.files("mmaprobe.report.page").joinpath("template", "style.css").read_text("utf-8")
    colours = re.search(r"(?s)\A.*?\n\}\n(?=\* )", text)
    assert colours is not None
    rules = re.findall(r"(?m)^(?:svg (?:text|\.)|\.(?:kept|seen|lost) ).*$", text)
    return colours[0] + "\n".join(rules) + "\n"


def standing_alone(drawing: str) -> str:
    """A drawing of a page as a file of its own."""
    head, body = re.match(r"(?s)(<svg .*?>)(.*)", drawing).groups()  # type: ignore[union-attr]
    own = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="330" ')
    return f"{own}<style>\n{style()}</style>{body}\n"


def pictures() -> dict[str, str]:
    """Every picture by the name of its file."""
    return {f"{each.__name__}.svg": standing_alone(each()) for each in DRAWN}


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pictures().items():
        (IMAGES / name).write_text(text, "utf-8")
