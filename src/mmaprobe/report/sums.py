"""What was found about the order of a long sum, in lines for a person."""

from __future__ import annotations

from collections import Counter
from typing import Any

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
    tree = from_json(found.answer["tree"], instruction.k)
    text = str(notation(tree))
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]} ... ({len(text):,} characters; --json has the whole tree)"
    more = [] if found.answer["steps"] is None else steps(instruction, found.answer["steps"])
    return [*head, f"tree: {text}", f"additions on the way of a term: {depths(tree)}", *more]


def depths(tree: Tree) -> str:
    """The fewest and the most additions between a leaf and the result."""
    every = tree.depths[: tree.leaves]
    low, high = min(every), max(every)
    return f"{low}" if low == high else f"{low} to {high}"


def steps(instruction: Instruction, form: dict[str, Any]) -> list[str]:
    """What the additions keep, and how products enter them."""
    bits = form["bits"]
    kept = f"additions keep {bits} bits" if bits is not None else "what additions keep was not found"
    for other, count in Counter(item["bits"] for item in form["other_bits"]).items():
        kept += f"; {count} {'were not told' if other is None else f'keep {other}'}"
    if instruction.modifier.get("operands") == "1":
        return [kept]
    rounded, unknown = len(form["rounded_products"]), len(form["open_products"])
    whole = instruction.k - rounded - unknown
    widest = 2 * max(instruction.formats()[name].fraction_bits + 1 for name in ("a", "b"))
    parts = [f"{whole} enter unrounded"] if whole else []
    parts += [f"{rounded} are rounded before they are added"] if rounded else []
    parts += [f"{unknown} were not told"] if unknown else []
    text = f"products: {', '.join(parts)}"
    if bits is not None and widest <= bits and whole:
        text += f" (they have at most {widest} bits: whether multiply and add are fused cannot be told, nor matters)"
    return [kept, text]
