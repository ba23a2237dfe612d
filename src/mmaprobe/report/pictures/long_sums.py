"""What was found about the order of a long sum, in lines for a person and as a picture."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.long_sums.tree_arrays import TreeArrays, from_json
from mmaprobe.report.datapath.tree import Branch
from mmaprobe.report.pictures.notation import Piece, Run, notation
from mmaprobe.report.pictures.tree import draw
from mmaprobe.showing import counted

ACROSS = 6
"""Unlike terms of one sum that a picture shows at most."""
DOWN = 6
"""Levels that a picture shows at most."""
BOXES = 36
"""Boxes without further ones below that a picture shows at most."""

READ_AS = {
    "chain": "one after another",
    "pairwise": "neighbours, then the pairs of them",
    "folded": "halves onto each other",
    "fused": "all before one rounding",
    "unknown": "in an order that was not found",
}
"""How each word of the notation adds."""

SHOWN = 2000
"""Characters of the notation; a tree without repetition is long, and whole in the JSON form."""


def lines(instruction: Instruction, found: Finding, device: str) -> list[str]:
    """Status, calls, the tree in ``notation`` and how many additions a product goes through."""
    head = [f"{device}: {found.status}, {counted(found.tiles, 'call')}: {found.text}"]
    if found.answer is None:
        return head
    tree = from_json(found.answer["tree"], instruction.k)
    text = str(notation(tree))
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]} ... ({counted(len(text), 'character')}; --json has the whole tree)"
    more = [] if found.answer["steps"] is None else steps(instruction, found.answer["steps"])
    return [*head, f"tree: {text}", _legend(text), f"additions on the way of a term: {depths(tree)}", *more]


def _legend(text: str) -> str:
    """How the words of a notation are read, those that occur."""
    said = [f"{word}: {how}" for word, how in READ_AS.items() if re.search(rf"\b{word}\b", text)]
    return "; ".join(["read as: (n by s): n terms that begin s lanes apart", *said])


def depths(tree: TreeArrays) -> str:
    """The fewest and the most additions between a leaf and the result."""
    every = tree.depths[: tree.leaves]
    low, high = min(every), max(every)
    text = f"{low}" if low == high else f"{low} to {high}"
    return f"{text}, those of an unknown order counted once" if tree.unknown else text


def steps(instruction: Instruction, form: dict[str, Any]) -> list[str]:
    """What the additions keep, and how products enter them."""
    bits = form["bits"]
    kept = (
        f"additions keep {counted(bits, 'bit')}" if bits is not None else "how many bits additions keep was not found"
    )
    for other, count in Counter(item["bits"] for item in form["other_bits"]).items():
        kept += f"; {count} {'were not told' if other is None else f'keep {other}'}"
    if instruction.modifier.get("operands") == "1":
        return [kept]
    rounded, unknown = len(form["rounded_products"]), len(form["open_products"])
    whole = instruction.k - rounded - unknown
    widest = 2 * max(instruction.formats()[name].fraction_bits + 1 for name in ("a", "b"))
    parts = [f"{whole} enter unrounded"] if whole else []
    parts += [f"{rounded} are rounded before they are added"] if rounded else []
    parts += [f"of {unknown} it was not found whether they are rounded first"] if unknown else []
    text = f"products: {', '.join(parts)}"
    if bits is not None and widest <= bits and whole:
        text += f" (they have at most {widest} bits: whether multiply and add are fused cannot be told, nor matters)"
    return [kept, text]


def draw_sum(instruction: Instruction, found: Finding, device: str, path: Path) -> None:
    """Draw the tree with repeated parts once, and the additions on the way of each lane; errors as ``tree.draw``."""
    tree = from_json(found.answer["tree"], instruction.k)
    about = f"{instruction.a} → {instruction.d}, K = {instruction.k}; {found.status}, {counted(found.tiles, 'call')}"
    if found.answer["steps"] is not None:
        about = "; ".join([about, *steps(instruction, found.answer["steps"])]).partition(" (")[0]
    draw([(device, about, _drawn(notation(tree)))], path, tree.depths[: instruction.k])


def _drawn(piece: Piece) -> Branch:
    """As many levels as fit a page."""
    levels = [branch(piece, down=down) for down in range(1, DOWN + 1)]
    return next((tree for tree in reversed(levels) if _ends(tree) <= BOXES), levels[0])


def _ends(tree: Branch) -> int:
    return sum(map(_ends, tree.children)) or 1


def branch(piece: Piece, first: int = 0, down: int = DOWN) -> Branch:
    """A piece as a tree to draw: of equal parts the first in full, of lanes the first two and the last."""
    if not piece.runs:
        return Branch("product", lanes=(first,))
    if down == 0:
        return Branch("step", f"{counted(_terms(piece), 'term')}")
    children: list[Branch] = []
    for run in piece.runs[:ACROSS]:
        children += _copies(run, first, down - 1)
    if len(piece.runs) > ACROSS:
        children.append(Branch("step", f"… {len(piece.runs) - ACROSS} more"))
    return Branch(piece.shape, _detail(piece), tuple(children))


def _detail(piece: Piece) -> str:
    run = piece.runs[0]
    if len(piece.runs) > 1:
        return (
            f"{counted(len(piece.runs), 'part')}, in this order"
            if piece.shape == "chain"
            else counted(len(piece.runs), "part")
        )
    if len(run.pattern) > 1:
        return f"{run.repeats} × {', '.join(map(str, run.pattern))}; {run.stride} apart"
    return f"{run.count}, {abs(run.stride)} apart"


def _copies(run: Run, first: int, down: int) -> list[Branch]:
    """Some of the copies of a run: lanes as they come, of larger parts one."""
    starts = [first + start for start in run.firsts()]
    if not run.piece.runs:
        ahead = max(2, len(run.pattern)) if len(run.pattern) <= 4 else 2
        shown = [branch(run.piece, start) for start in starts[:ahead]]
        if len(starts) > ahead + 1:
            shown.append(Branch("step", "…"))
        return shown + [branch(run.piece, start) for start in starts[ahead:][-1:]]
    shown = [branch(run.piece, starts[0], down)]
    if len(starts) > 2:
        shown.append(Branch("step", f"{len(starts) - 1} more, from p{starts[1]} to p{starts[-1]}"))
    elif len(starts) == 2:
        shown.append(Branch("step", f"1 more, from p{starts[1]}"))
    return shown


def _terms(piece: Piece) -> int:
    return sum(run.count * _terms(run.piece) for run in piece.runs) if piece.runs else 1
