"""The summation order of a datapath in words that need no other page: what is added together, and what after that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
)
from mmaprobe.showing import counted

FEW = 4
"""Lanes that are named one by one; of more their number or their range is said. No answer depends on it."""

AT_ONCE, EXACTLY = " at once", " exactly"


def summation_order(datapath: Datapath) -> str:
    """What is added with what, at most 80 columns of every datapath that ships.

    ``(0+1)+(2+3)`` are rounded additions of products; ``fma 1 then 0`` is a chain of multiply-adds onto c.  What is
    added in one go, with one rounding after it, is ``at once`` where terms are aligned to the largest and cut, and
    ``exactly`` where none is: ``16 products + c at once``, ``4 products + c exactly``.  Sums whose results are terms of
    another stand before it: ``2 groups of 8 products, each at once; then both sums; then c``.  A datapath of several
    steps does that in each, c being the result so far: ``2 times: 8 products + c at once``.
    """
    steps = len(datapath.steps)
    text = _outermost(datapath.tree)
    return (f"{steps} times: " if steps > 1 else "") + ("fma" if text == "fma 0" else text)


def lanes_text(lanes: Sequence[int]) -> str:
    """Lane numbers, a long arithmetic progression shortened: ``0, 2 .. 30``."""
    gaps = {second - first for first, second in pairwise(lanes)}
    if len(lanes) > FEW and len(gaps) == 1:
        return f"{lanes[0]}, {lanes[1]} .. {lanes[-1]}"
    return ", ".join(map(str, lanes))


def _outermost(node: Node) -> str:
    return f"{_operand(node.x)}+{_operand(node.y)}" if isinstance(node, Add) else _order(node)


def _operand(node: Node) -> str:
    """An operand of a rounded addition, in brackets where it is a sum itself."""
    return f"({_outermost(node)})" if isinstance(node, (Add, Fused, Exact)) else _order(node)


def _order(node: Node) -> str:
    if isinstance(node, Accumulator):
        return "c"
    if isinstance(node, Zero):
        return "0"
    if isinstance(node, Products):
        return "+".join(map(str, node.lanes)) if len(node.lanes) <= FEW else counted(len(node.lanes), "product")
    if isinstance(node, Fma):
        chain = f" {' then '.join(map(str, node.lanes))}" if len(node.lanes) <= FEW else f"[{lanes_text(node.lanes)}]"
        onto = "" if isinstance(node.acc, (Accumulator, Zero)) else f"{_order(node.acc)} then "
        return f"{onto}fma{chain}"
    if isinstance(node, Add):
        return _operand(node)
    return _sum(node)


def _sum(node: Fused | Exact) -> str:
    """The sums among the terms first, equal ones counted; then what is added to their results."""
    terms = [term.of if isinstance(term, Term) else term for term in node.terms]
    sums = [term for term in terms if not isinstance(term, (Products, Accumulator, Zero))]
    lanes = sum(len(term.lanes) for term in terms if isinstance(term, Products))
    leaves = [counted(lanes, "product")] * bool(lanes) + ["c"] * any(isinstance(term, Accumulator) for term in terms)
    if not sums:
        return " + ".join(leaves) + _how(node) * (len(terms) > 1 or lanes > 1)
    if len(terms) == 1:  # handed on: rounded again, and nothing is added
        return _order(sums[0]) + (f"; then to {node.to.format}" if node.to else "")
    before = "; ".join(_groups(sums))
    if len(sums) == 1:
        return f"{before}; then {' + '.join(leaves)}"
    how = "" if before.endswith(_how(node)) else _how(node)
    return f"{before}; then {' + '.join(['both sums' if len(sums) == 2 else 'all sums', *leaves])}{how}"


def _how(node: Fused | Exact) -> str:
    return AT_ONCE if isinstance(node, Fused) else EXACTLY


def _groups(sums: Sequence[Node]) -> Iterator[str]:
    """``2 groups of 8 products, each at once``."""
    for text, alike in groupby(map(_order, sums)):
        count = len(list(alike))
        how = next((word for word in (AT_ONCE, EXACTLY) if text.endswith(word)), "")
        yield text if count == 1 else f"{count} groups of {text.removesuffix(how)}" + (f", each{how}" if how else "")
