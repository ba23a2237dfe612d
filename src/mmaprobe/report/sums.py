"""What was found about the order of a long sum, in lines for a person."""

from __future__ import annotations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.sum_tree import Tree, from_json
from mmaprobe.report.notation import notation

SHOWN = 2000
"""Characters of the notation; a tree without repetition is long, and whole in the JSON form."""


def lines(instruction: Instruction, found: Finding, device: str) -> list[str]:
    """Status, calls, the tree in ``notation`` and how many additions a product goes through."""
    head = [f"{device}: {found.status}, {found.tiles:,} calls: {found.text}"]
    if found.answer is None:
        return head
    tree = from_json(found.answer, instruction.k)
    text = str(notation(tree))
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]} ... ({len(text):,} characters; --json has the whole tree)"
    return [*head, f"tree: {text}", f"additions on the way of a term: {depths(tree)}"]


def depths(tree: Tree) -> str:
    """The fewest and the most additions between a leaf and the result."""
    every = tree.depths[: tree.leaves]
    low, high = min(every), max(every)
    return f"{low}" if low == high else f"{low} to {high}"
