"""One change to a datapath, spelled as text: ``tree.to.rounding=RNE``, ``step=8``, ``tree.x.swap=true``."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.datapath import Add, Datapath, Exact, Fma, Fused, Node, Products
from mmaprobe.parameters.moves import MOVES, moved
from mmaprobe.parameters.table import from_table, set_field, to_table


def mutate(datapath: Datapath, field: str, text: str, own: bool = False) -> Datapath:
    """The datapath with ``field``, a dotted path into its TOML form, set to the value that ``text`` spells.

    The value is a TOML value or plain text; ``none`` where a field may be
    absent; a format's name stands for an Encode to it.  Some changes are more
    than a field (``own`` as in ``set_field``): ``step`` moves the tree's lanes along, ``swap`` at an Add
    exchanges its operands, and those of ``moves.MOVES`` change the structure.
    UsageError for an unknown field, with the near ones, and for a value that
    the datapath refuses.
    """
    if not isinstance(field, str) or not isinstance(text, str):
        raise UsageError(f"a change is a field and a value, both text: step=8; got {brief(field)} and {brief(text)}")
    if field in MOVES:
        return moved(datapath, field, text)
    value = _value(text)
    if field == "step" and isinstance(value, int):
        return with_step(datapath, value)
    if field.rpartition(".")[2] == "swap" and value is True:
        return _swap(datapath, field.split(".")[:-1])
    try:
        return set_field(datapath, field, value, own)
    except UsageError as error:
        if isinstance(value, str):
            raise
        try:
            return set_field(datapath, field, text, own)
        except UsageError:
            raise error from None


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _swap(datapath: Datapath, path: list[str]) -> Datapath:
    table = to_table(datapath, full=True)
    node: Any = table
    try:
        for key in path:
            node = node[int(key)] if isinstance(node, list) else node[key]
        node["x"], node["y"] = node["y"], node["x"]
    except (KeyError, IndexError, ValueError, TypeError):
        raise UsageError(f"no add at {brief('.'.join(path))} whose operands could be swapped") from None
    return from_table(table)


def with_step(datapath: Datapath, step: int) -> Datapath:
    """The datapath with steps of ``step`` lanes: the tree loses its last lanes, or repeats them.

    A repeated lane joins the node of the lane that it repeats.  UsageError
    where a part of the tree would be left without lanes.
    """
    old = datapath.step_length
    if step < 1 or (step > old and step % old):
        raise UsageError(f"steps of {old} lanes cannot become steps of {step}")
    if datapath.k % step:
        raise UsageError(f"a step of {step} lanes does not divide K = {datapath.k}")
    tree = _relane(datapath.tree, old, step)
    if tree is None:
        raise UsageError(f"steps of {step} lanes leave a part of the tree empty")
    return replace(datapath, tree=tree, step=step)


def _relane(node: Node, old: int, new: int) -> Node | None:
    """The node with the lanes of a step of another length; None where nothing is left of it."""
    if isinstance(node, Products):
        lanes = _stretch(node.lanes, old, new)
        return Products(lanes) if lanes else None
    if isinstance(node, Fma):
        acc = _relane(node.acc, old, new)
        lanes = _stretch(node.lanes, old, new)
        return replace(node, acc=acc, lanes=lanes) if acc and lanes else acc
    if isinstance(node, Add):
        x, y = _relane(node.x, old, new), _relane(node.y, old, new)
        return replace(node, x=x, y=y) if x and y else None
    if isinstance(node, Fused):
        terms = [replace(term, of=of) for term in node.terms if (of := _relane(term.of, old, new))]
        return replace(node, terms=tuple(terms)) if terms else None
    if isinstance(node, Exact):
        nodes = [kept for term in node.terms if (kept := _relane(term, old, new))]
        return replace(node, terms=tuple(nodes)) if nodes else None
    return node


def _stretch(lanes: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    if new <= old:
        return tuple(lane for lane in lanes if lane < new)
    return tuple(lane + shift for shift in range(0, new, old) for lane in lanes)
