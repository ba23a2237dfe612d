"""Make variants of a datapath: the same change at every Encode, operand or node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mmaprobe.parameters.datapath import Add, Datapath, Encode, Exact, Fma, Fused, Node

Change = Callable[[Encode], Encode]


def map_node(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with ``change`` applied to every node, children first."""
    if isinstance(node, Fma):
        node = replace(node, acc=map_node(node.acc, change))
    elif isinstance(node, Add):
        node = replace(node, x=map_node(node.x, change), y=map_node(node.y, change))
    elif isinstance(node, Fused):
        node = replace(node, terms=tuple(replace(term, of=map_node(term.of, change)) for term in node.terms))
    elif isinstance(node, Exact):
        node = replace(node, terms=tuple(map_node(term, change) for term in node.terms))
    return change(node)


def with_encode(node: Node, change: Change) -> Node:
    """The node with its own Encode changed; unchanged where it has none."""
    if isinstance(node, (Fma, Add, Fused, Exact)) and node.to is not None:
        return replace(node, to=change(node.to))
    return node


def map_encodes(datapath: Datapath, change: Change) -> Datapath:
    """The datapath with ``change`` applied to every Encode, of products and of the result too."""

    def at(node: Node) -> Node:
        return with_encode(node, change)

    product = datapath.product
    if product.to is not None:
        product = replace(product, to=change(product.to))
    result = None if datapath.result is None else change(datapath.result)
    return replace(datapath, tree=map_node(datapath.tree, at), product=product, result=result)


def map_fused(datapath: Datapath, change: Callable[[Fused], Fused]) -> Datapath:
    """The datapath with ``change`` applied to every fused node."""

    def at(node: Node) -> Node:
        return change(node) if isinstance(node, Fused) else node

    return replace(datapath, tree=map_node(datapath.tree, at))


def encodes(datapath: Datapath) -> list[Encode]:
    """Every Encode of the datapath, the root's last."""
    found: list[Encode] = []

    def collect(to: Encode) -> Encode:
        found.append(to)
        return to

    map_encodes(datapath, collect)
    return found
