"""Summation trees as pictures in words: of a datapath, or of what a probe found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Exact, Fma, Fused, Node, Products, Zero
from mmaprobe.report.datapath.naming import alike, encoding, headline, kind, negation, product, splitting, term_notes

LINKS = 4
"""Chains of more fused multiply-adds are drawn as one node."""


@dataclass(frozen=True)
class Branch:
    """A node of a drawn tree, or a leaf.

    ``kind``: fused, fma, add, exact, unknown, or for leaves product, c, zero,
    step (the steps before, not drawn again).  ``lanes`` are a product leaf's
    lanes of the vector, in order; ``edge`` what happens to the branch on its
    way into the node above.
    """

    kind: str
    detail: str = ""
    children: tuple[Branch, ...] = ()
    lanes: tuple[int, ...] = ()
    edge: str = ""

    @property
    def label(self) -> str:
        """What a line of text says about it."""
        name = products(self.lanes) if self.kind == "product" else {"zero": "0", "step": ""}.get(self.kind, self.kind)
        return " ".join(part for part in (name, self.detail, f"[{self.edge}]" if self.edge else "") if part)


def products(lanes: Sequence[int]) -> str:
    """``a0·b0``, ``a0·b0, a2·b2``, ``a0·b0 … a15·b15`` or, for other patterns, the lanes."""
    if len(lanes) <= 4:
        return ", ".join(map(product, lanes))
    if tuple(lanes) == tuple(range(lanes[0], lanes[0] + len(lanes))):
        return f"{product(lanes[0])} … {product(lanes[-1])}"
    return f"a·b of lanes {format_lanes(tuple(lanes))}"


def from_datapath(datapath: Datapath, steps: int = 2) -> Branch:
    """The tree that a datapath adds along; of more than ``steps`` steps only the last is drawn in full."""
    every = datapath.steps
    start = Branch("c") if datapath.c is not None else Branch("zero")
    if len(every) > steps:
        before = "; ".join(format_lanes(lanes) for lanes in every[:-1])
        first = "start with c" if datapath.c is not None else "start with 0"
        return _branch(datapath.tree, every[-1], Branch("step", f"the same over lanes {before}; {first}"), datapath)
    for lanes in every:
        start = _branch(datapath.tree, lanes, start, datapath)
    return start if datapath.result is None else replace(start, detail=f"{start.detail}, {encoding(datapath.result)}")


def each_step(datapath: Datapath) -> list[Branch]:
    """The tree of every step by itself; from the second on it starts with the result so far."""
    found: list[Branch] = []
    for number, lanes in enumerate(datapath.steps):
        first = Branch("c") if datapath.c is not None else Branch("zero")
        start = first if number == 0 else Branch("step", f"the result of step {number}")
        found.append(_branch(datapath.tree, lanes, start, datapath))
    return found


def _branch(node: Node, lanes: tuple[int, ...], accumulator: Branch, datapath: Datapath) -> Branch:
    def below(child: Node) -> Branch:
        return _branch(child, lanes, accumulator, datapath)

    to = "" if datapath.product.to is None else f"→ {encoding(datapath.product.to)}"
    rounded = ", ".join(part for part in (splitting(datapath), to) if part)
    if isinstance(node, Accumulator):
        return accumulator
    if isinstance(node, Zero):
        return Branch("zero")
    if isinstance(node, Products):
        return Branch("product", rounded, lanes=tuple(lanes[k] for k in node.lanes))
    if isinstance(node, Exact) and node.to is None and len(node.terms) == 1 and not node.scaled:
        return below(node.terms[0])  # one product handed on as it is
    detail = "" if node.to is None else f"→ {encoding(node.to)}"
    if isinstance(node, Fma):
        return _chain(below(node.acc), [lanes[k] for k in node.lanes], detail, rounded)
    if isinstance(node, Fused):
        terms = (replace(below(t.of), edge=note) for t, note in zip(node.terms, term_notes(node), strict=True))
        return Branch("fused", " ".join((*alike(node), *negation(node), detail)).strip(), tuple(terms))
    addends = (node.x, node.y) if isinstance(node, Add) else node.terms
    scales = "× scales " if isinstance(node, Exact) and node.scaled else ""
    return Branch(kind(node), f"{scales}{detail}".strip(), tuple(map(below, addends)))


def _chain(acc: Branch, lanes: Sequence[int], detail: str, rounded: str) -> Branch:
    """Fused multiply-adds, each drawn where they are few."""
    if len(lanes) > LINKS:
        return Branch("fma", f"one after another {detail}", (acc, Branch("product", rounded, lanes=tuple(lanes))))
    for lane in lanes:
        acc = Branch("fma", detail, (acc, Branch("product", rounded, lanes=(lane,))))
    return acc


def from_answer(answer: Any) -> Branch:
    """The tree in a finding of the question ``summation_tree``: lanes, ``"c"`` and nested nodes."""
    if isinstance(answer, int):
        return Branch("product", lanes=(answer,))
    if not isinstance(answer, Mapping):
        return Branch("c" if answer == "c" else "zero")
    if answer["kind"] == "fma":
        return _chain(from_answer(answer["acc"]), answer["lanes"], "", "")
    children: list[Branch] = []
    for child in map(from_answer, answer["terms"]):
        if children and child.kind == children[-1].kind == "product" and answer["kind"] != "add":
            child = replace(child, lanes=children.pop().lanes + child.lanes)
        children.append(child)
    return Branch(answer["kind"], "lossless" if answer.get("lossless") else "", tuple(children))


def text(branch: Branch) -> str:
    """The tree in box-drawing characters, root first."""
    return "\n".join(_lines(branch, "", "")) + "\n"


def datapath_text(datapath: Datapath) -> str:
    """A datapath's formats in one line, then its tree."""
    return f"{headline(datapath)}\n{text(from_datapath(datapath))}"


def _lines(branch: Branch, first: str, rest: str) -> Iterator[str]:
    yield f"{first}{branch.label}"
    for i, child in enumerate(branch.children):
        last = i == len(branch.children) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
