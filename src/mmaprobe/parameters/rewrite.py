"""Make variants of a datapath: the same change at every Encode, operand or node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mmaprobe import formats
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
    walk,
)

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


def explicit(datapath: Datapath) -> Datapath:
    """The same function, each term of an aligned sum with rules of its own and the node with none."""

    def at(node: Fused) -> Fused:
        terms = tuple(
            replace(
                term,
                fraction_bits=_own(term.fraction_bits, node.fraction_bits),
                rounding=_own(term.rounding, node.rounding),
                zero_exponent=_own(term.zero_exponent, node.zero_exponent),
            )
            for term in node.terms
        )
        return replace(node, terms=terms, fraction_bits=None, rounding="RZ", zero_exponent=None)

    return map_fused(datapath, at)


def tidy(datapath: Datapath) -> Datapath:
    """The same function, what most lanes share said at the node."""

    def at(node: Fused) -> Fused:
        main = max(node.terms, key=lambda term: len(term.of.lanes) if isinstance(term.of, Products) else 0)
        fields = {name: getattr(main, name) for name in ("fraction_bits", "rounding", "zero_exponent")}
        if any(
            getattr(term, name) is None and value is not None for term in node.terms for name, value in fields.items()
        ):
            fields = {name: value for name, value in fields.items() if name == "rounding"}
        terms = tuple(_without(term, fields) for term in node.terms)
        return replace(node, terms=terms, **fields)

    return map_fused(explicit(datapath), at)


def simpler(datapath: Datapath) -> list[Datapath]:
    """Datapaths that say less: a rule of the results or products as it is where nothing is said, one value of a field
    for all terms of all aligned sums (each value that some term has)."""
    plain = Encode()
    found = []
    for name in ("first", "subnormals", "tininess", "overflow", "zero", "underflow"):
        rule: dict[str, Any] = {name: getattr(plain, name)}
        found.append(map_encodes(datapath, lambda to, r=rule: replace(to, **r)))  # type: ignore[misc]
        if datapath.product.to is not None:
            found.append(replace(datapath, product=replace(datapath.product, to=replace(datapath.product.to, **rule))))
        found.append(replace(datapath, tree=with_encode(datapath.tree, lambda to, r=rule: replace(to, **r))))  # type: ignore[misc]
        if datapath.result is not None:
            found.append(replace(datapath, result=replace(datapath.result, **rule)))
    found.append(replace(datapath, product=replace(datapath.product, label="encoded")))
    found.append(replace(datapath, product=replace(datapath.product, overflow_exponent=None)))
    return [path for path in dict.fromkeys(found + _tied(datapath)) if path != datapath]


def _tied(datapath: Datapath) -> list[Datapath]:
    nodes = [node for node in walk(explicit(datapath).tree) if isinstance(node, Fused)]
    found: list[Datapath] = []
    for name in ("zero_exponent", "rounding", "fraction_bits"):
        values = dict.fromkeys(getattr(term, name) for node in nodes for term in node.terms)
        if len(values) > 1:
            found += [
                tidy(map_fused(datapath, lambda node, n=name, v=value: _all_terms(node, n, v)))  # type: ignore[misc]
                for value in values
                if value is not None or name == "zero_exponent"
            ]
    return found


def _all_terms(node: Fused, name: str, value: Any) -> Fused:
    own: dict[str, Any] = {name: None}
    shared: dict[str, Any] = {name: value}
    return replace(node, terms=tuple(replace(term, **own) for term in node.terms), **shared)


def _without(term: Term, fields: dict[str, Any]) -> Term:
    """The term without the rules that it shares."""
    gone: dict[str, Any] = {name: None for name, value in fields.items() if getattr(term, name) == value}
    return replace(term, **gone)


def _own(value: Any, inherited: Any) -> Any:
    return inherited if value is None else value


def with_rules(datapath: Datapath, of: Datapath) -> Datapath:
    """The datapath with the operands, signs of zeros, flushing, overflow, zero exponents and NaNs of another."""
    to = encodes(of)[-1]
    zeros = [node.zero_exponent for node in walk(of.tree) if isinstance(node, Fused)] or [None]
    names = ("subnormals", "tininess", "zero", "underflow", "overflow")
    changed = map_encodes(datapath, lambda each: replace(each, **{name: getattr(to, name) for name in names}))
    changed = map_fused(changed, lambda node: replace(node, zero_exponent=zeros[0]))
    return replace(changed, operand_a=of.operand_a, operand_b=of.operand_b, operand_c=of.operand_c, special=of.special)


def spellings(datapath: Datapath) -> list[Datapath]:
    """Datapaths that differ little from this one: C converted to the format of the sums before it is added, chains
    that start with their first product instead of zero, other labels of subnormals, a wider format in between."""
    found = [datapath]
    to = encodes(replace(datapath, result=None))[-1]
    if datapath.c not in (None, to.format):
        found += [replace(path, tree=map_node(path.tree, lambda node: _converted(node, to))) for path in found]
    found += [replace(path, tree=map_node(path.tree, _from_product)) for path in found]
    if any(isinstance(node, Fused) for node in walk(datapath.tree)):
        found += [replace(path, product=replace(path.product, label="operands")) for path in found]
    if datapath.result is not None:
        found += [_between(datapath, name) for name in wider_formats(to.format)]
    return [path for path in dict.fromkeys(found) if path != datapath]


def converted_last(datapath: Datapath) -> list[Datapath]:
    """Of several steps, the datapath whose last sum is converted once more, to the format that it has: the same
    function until something is flushed or overflows there alone."""
    to = getattr(datapath.tree, "to", None)
    if datapath.result is not None or to is None or len(datapath.steps) < 2:
        return []
    return [replace(datapath, result=Encode(to.format, to.rounding))]


def wider_formats(name: str) -> list[str]:
    """Formats that hold every value of a format, with more fraction bits; the narrowest first."""
    of, found = formats.get(name), []
    for fmt in formats.FORMATS.values():
        more = (fmt.fraction_bits - of.fraction_bits, fmt.exponent_bits - of.exponent_bits)
        if fmt.is_float and fmt.nan == "ieee" and fmt.padding == 0 and min(more) >= 0 and more[0]:
            found.append(fmt)
    return [fmt.name for fmt in sorted(found, key=lambda fmt: fmt.fraction_bits)]


def _between(datapath: Datapath, name: str) -> Datapath:
    """The datapath with its sums rounded to another format."""
    tree = map_node(datapath.tree, lambda node: with_encode(node, lambda to: replace(to, format=name)))
    return replace(datapath, tree=tree)


def _converted(node: Node, to: Encode) -> Node:
    return Exact((node,), to) if isinstance(node, Accumulator) else node


def _from_product(node: Node) -> Node:
    if not (isinstance(node, Fma) and isinstance(node.acc, Zero) and len(node.lanes) > 1):
        return node
    return replace(node, acc=Exact((Products(node.lanes[:1]),), node.to), lanes=node.lanes[1:])
