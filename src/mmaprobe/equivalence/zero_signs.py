"""Whether the sign of a zero that a part of a datapath makes can show in the result."""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.equivalence.spans import Span
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Encode, Exact, Fma, Fused, Node, Products, walk


def sign_is_hidden(datapath: Datapath, place: str, spans: dict[str, Span]) -> bool:
    """True where a zero's sign at ``place`` (``tree.y.to``, ``product.to``, an operand) is lost in every sum it enters.

    In a sum with another term that is never -0 a zero result is +0 whatever the
    sign (but when rounding down), and where a node's zeros are positive too.
    ``spans`` bounds the terms; KeyError for one that it lacks.
    """
    if complements(datapath):
        return False
    hidden = list(_hidden(datapath.tree, "tree", False, spans, None))
    if place in OPERANDS:
        found = [lost for _, kind, lost in hidden if kind == OPERANDS[place]]
    else:
        holder = place.removesuffix(".to")
        found = [lost for path, _, lost in hidden if path == holder != place]
    return bool(found) and all(found)


OPERANDS = {"product.to": "product", "operand_a": "product", "operand_b": "product", "operand_c": "c"}
"""The leaves whose zeros a change at these places touches."""


def _hidden(
    node: Node, path: str, lost: bool, spans: dict[str, Span], above: Encode | None
) -> Iterator[tuple[str, str, bool]]:
    """(path, kind, whether the sign of its zeros is lost) of every node, and of the products inside an fma."""
    kind = {Products: "product", Accumulator: "c"}.get(type(node), "sum")
    yield path, kind, lost
    if not isinstance(node, (Fma, Add, Fused, Exact)):
        return
    to = node.to or above
    positive = to is not None and to.zero == "positive"
    never_down = to is not None and to.rounding != "RD" and not isinstance(node, Fused)
    parts = _parts(node, path)
    for key, part in parts:
        several = isinstance(part, Products) and len(part.lanes) > 1
        others = [spans[other] for other, _ in parts if other != key or several]
        safe = never_down and any(not span.minus_zero for span in others)
        yield from _hidden(part, key, lost or positive or safe, spans, to)
    if isinstance(node, Fma):
        safe = never_down and not spans[f"{path}.chain"].minus_zero
        yield f"{path}.product", "product", lost or positive or safe


def complements(datapath: Datapath) -> bool:
    """Whether a sum complements terms by their signs, those of zeros too: then every zero's sign may show."""
    return any(isinstance(node, Fused) and node.is_complemented for node in walk(datapath.tree))


def _parts(node: Node, path: str) -> list[tuple[str, Node]]:
    if isinstance(node, Add):
        return [(f"{path}.x", node.x), (f"{path}.y", node.y)]
    if isinstance(node, Exact):
        return [(f"{path}.terms.{i}", part) for i, part in enumerate(node.terms)]
    if isinstance(node, Fused):
        return [(f"{path}.terms.{i}.of", term.of) for i, term in enumerate(node.terms)]
    return [(f"{path}.acc", node.acc)] if isinstance(node, Fma) else []
