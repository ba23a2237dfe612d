"""Which products of a step are summed together: every regrouping of a tree that makes sense, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import (
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
    lanes_of,
    walk,
)
from mmaprobe.parameters.rewrite import map_node


def grouping(datapath: Datapath) -> Iterator[tuple[str, Datapath]]:
    found: dict[str, Datapath] = {}
    for value, tree in _regrouped(datapath.tree, root_encode(datapath)):
        with suppress(UsageError):  # a group of lanes of two scale blocks
            found.setdefault(value, replace(datapath, tree=tree))
    yield from found.items()
    yield from scaled_elsewhere(datapath)


def scaled_elsewhere(datapath: Datapath) -> Iterator[tuple[str, Datapath]]:
    """Each product scaled in place of the exact sums of scale blocks, or these in place of each product."""
    scale = datapath.scale
    with suppress(UsageError):  # a step of a part of a scale block, a scaled sum that is not a term
        if scale is not None and scale.where == "group":
            tree = map_node(datapath.tree, _products_in_place)
            yield "products scaled", replace(datapath, tree=tree, scale=replace(scale, where="product"))
        elif scale is not None:
            tree = map_node(datapath.tree, partial(_blocks_in_place, lanes=datapath.steps[0], size=scale.size))
            yield "blocks scaled", replace(datapath, tree=tree, scale=replace(scale, where="group"))


def _products_in_place(node: Node) -> Node:
    """A sum of the products of its scaled sums, those that are cut alike in one term."""
    if not isinstance(node, (Fused, Exact)):
        return node
    rest: list[Any] = []
    scaled: dict[Any, list[int]] = {}
    for (of, _), term in zip(children_in_place(node), node.terms, strict=True):
        if isinstance(of, Exact) and of.scaled:
            cut = replace(term, of=Zero()) if isinstance(term, Term) else None
            scaled.setdefault(cut, []).extend(lane for below in walk(of) for lane in lanes_of(below))
        else:
            rest.append(term)
    for cut, lanes in scaled.items():
        products = Products(tuple(sorted(lanes)))
        rest.append(products if cut is None else replace(cut, of=products))
    return replace(node, terms=tuple(rest))  # type: ignore[arg-type]


def _blocks_in_place(node: Node, lanes: tuple[int, ...], size: int) -> Node:
    """A sum of an exact, scaled sum of each scale block in place of its products; ``lanes``: those of a step."""
    if not isinstance(node, (Fused, Exact)):
        return node
    made = node
    for i, (part, _) in reversed(list(enumerate(children_in_place(node)))):
        if isinstance(part, Products):
            blocks: dict[int, list[int]] = {}
            for lane in part.lanes:
                blocks.setdefault(lanes[lane] // size, []).append(lane)
            made = _spread(made, i, [Exact((Products(tuple(each)),), scaled=True) for each in blocks.values()])
    return made


def root_encode(datapath: Datapath) -> Encode:
    to = getattr(datapath.tree, "to", None)
    assert isinstance(to, Encode)
    return to


def _regrouped(node: Node, to: Encode) -> Iterator[tuple[str, Node]]:
    """(name, node) for every regrouping of the node itself, then of what is below it."""
    if isinstance(node, (Fused, Exact)):
        yield from _split_sum(node, to)
        yield from _other_groups(node)
    if isinstance(node, Fma):
        yield from _split_chain(node)
    if isinstance(node, Add):
        yield from _other_adds(node)
    for below, put in children_in_place(node):
        yield from ((name, put(made)) for name, made in _regrouped(below, getattr(node, "to", None) or to))


def children_in_place(node: Node) -> Iterator[tuple[Node, Callable[[Node], Node]]]:
    """Each operand, and what the node is with another one in its place."""
    if isinstance(node, Fma):
        yield node.acc, lambda made: replace(node, acc=made)
    if isinstance(node, Add):
        yield node.x, lambda made: replace(node, x=made)
        yield node.y, lambda made: replace(node, y=made)
    if isinstance(node, (Fused, Exact)):
        for i, part in enumerate(node.terms):
            of = part.of if isinstance(part, Term) else part
            yield of, lambda made, i=i: _with_term(node, i, made)  # type: ignore[misc]


def _with_term(node: Fused | Exact, i: int, made: Node) -> Node:
    if isinstance(node, Fused):
        return replace(node, terms=(*node.terms[:i], replace(node.terms[i], of=made), *node.terms[i + 1 :]))
    return replace(node, terms=(*node.terms[:i], made, *node.terms[i + 1 :]))


def _splits(lanes: tuple[int, ...]) -> Iterator[tuple[str, list[tuple[int, ...]]]]:
    n = len(lanes)
    if n >= 4:
        yield "halves", [lanes[: n // 2], lanes[n // 2 :]]
        yield "even and odd", [lanes[::2], lanes[1::2]]
    if n > 4 and n % 2 == 0:
        yield "pairs", [lanes[i : i + 2] for i in range(0, n, 2)]


def _split_sum(node: Fused | Exact, to: Encode) -> Iterator[tuple[str, Node]]:
    """The products of a sum in groups: summed exactly, aligned among themselves, or each group rounded."""
    if isinstance(node, Exact) and node.scaled:
        return
    for i, (part, _) in enumerate(children_in_place(node)):
        if not isinstance(part, Products):
            continue
        for name, groups in _splits(part.lanes):
            yield f"{name}, exact", _spread(node, i, [Exact((Products(lanes),)) for lanes in groups])
            yield f"{name}, rounded", _spread(node, i, [_summed(node, i, lanes, to) for lanes in groups])
            if isinstance(node, Fused) and node.terms[i].fraction_bits is not None:
                yield f"{name}, cut", _spread(node, i, [_summed(node, i, lanes, None) for lanes in groups])


def _summed(node: Fused | Exact, i: int, lanes: tuple[int, ...], to: Encode | None) -> Node:
    if isinstance(node, Exact):
        return Exact((Products(lanes),), to)
    return replace(node, terms=(replace(node.terms[i], of=Products(lanes)),), to=to)


def _spread(node: Fused | Exact, i: int, parts: Sequence[Node]) -> Fused | Exact:
    """Term i in several."""
    if isinstance(node, Fused):
        terms = tuple(replace(node.terms[i], of=part) for part in parts)
        return replace(node, terms=(*node.terms[:i], *terms, *node.terms[i + 1 :]))
    return replace(node, terms=(*node.terms[:i], *parts, *node.terms[i + 1 :]))


def _other_groups(node: Fused | Exact) -> Iterator[tuple[str, Node]]:
    """Groups of products inside a sum merged, all or two by two, or each in halves; each of them exact where it is cut,
    cut where it is exact."""
    groups = [(i, part) for i, (part, _) in enumerate(children_in_place(node)) if _is_group(part)]
    if len(groups) > 1:
        yield "merged", _merged(node, [groups])
    if len(groups) > 2 and len(groups) % 2 == 0:
        yield "merged two by two", _merged(node, [groups[i : i + 2] for i in range(0, len(groups), 2)])
    if groups and all(len(_lanes_below(part)) % 2 == 0 for _, part in groups):
        yield "groups halved", _halved(node, groups)
    for name, kind in (("groups exact", Fused), ("groups cut", Exact)):
        changed: Node = node
        for i, part in groups:
            if isinstance(part, kind):
                changed = _with_term(changed, i, _other_kind(part, node.terms[i]))  # type: ignore[arg-type]
        if changed != node:
            yield name, changed


def _merged(node: Fused | Exact, together: list[list[tuple[int, Node]]]) -> Fused | Exact:
    """Each list of groups, with their places in the sum, as one group in the place of the first."""
    gone: set[int] = set()
    for (first, group), *others in together:
        lanes = sorted(lane for _, part in ((first, group), *others) for lane in _lanes_below(part))
        node = _with_term(node, first, _of_lanes(group, tuple(lanes)))  # type: ignore[assignment]
        gone |= {i for i, _ in others}
    return replace(node, terms=tuple(term for i, term in enumerate(node.terms) if i not in gone))  # type: ignore[arg-type]


def _halved(node: Fused | Exact, groups: list[tuple[int, Node]]) -> Fused | Exact:
    """Each group in two, of the first and the second half of its lanes."""
    for i, group in reversed(groups):
        lanes = sorted(_lanes_below(group))
        half = len(lanes) // 2
        node = _spread(node, i, [_of_lanes(group, tuple(some)) for some in (lanes[:half], lanes[half:])])
    return node


def _lanes_below(node: Node) -> list[int]:
    return [lane for below in walk(node) for lane in lanes_of(below)]


def _is_group(node: Node) -> bool:
    sums = isinstance(node, (Fused, Exact)) and node.to is None
    return sums and all(isinstance(part, Products) for part, _ in children_in_place(node))


def _of_lanes(group: Node, lanes: tuple[int, ...]) -> Node:
    """A group with one term: these lanes."""
    if isinstance(group, Fused):
        return replace(group, terms=(replace(group.terms[0], of=Products(lanes)),))
    assert isinstance(group, Exact)
    return replace(group, terms=(Products(lanes),))


def _other_kind(group: Node, above: Term | Node) -> Node:
    if isinstance(group, Fused):
        return Exact(tuple(term.of for term in group.terms))
    assert isinstance(group, Exact)
    if group.scaled or not isinstance(above, Term):
        return group
    return Fused.alike(group.terms, above.fraction_bits, above.rounding, above.zero_exponent)


def _split_chain(node: Fma) -> Iterator[tuple[str, Node]]:
    for name, (first, second) in ((name, groups) for name, groups in _splits(node.lanes) if len(groups) == 2):
        yield name, Add(replace(node, lanes=first), Fma(Zero(), second, node.to), node.to)


def _other_adds(node: Add) -> Iterator[tuple[str, Node]]:
    """Additions of products: one after the other, one sum of all; two chains made one or cut elsewhere."""
    parts = (node.x, node.y)
    if all(isinstance(part, Fma) and isinstance(part.acc, Zero) for part in parts):
        lanes = sorted(lane for part in parts for lane in lanes_of(part))
        yield "merged", Fma(Zero(), tuple(lanes), node.to)
        for name, groups in _splits(tuple(lanes)):
            if len(groups) == 2:
                first, second = (Fma(Zero(), each, node.to) for each in groups)
                yield name, Add(first, second, node.to)
    if not all(isinstance(part, (Add, Products)) for part in walk(node)):
        return
    leaves = [part for part in walk(node) if isinstance(part, Products)]
    yield "fused", Exact((Products(tuple(sorted(lane for leaf in leaves for lane in leaf.lanes))),), node.to)
    if len(leaves) > 2:
        yield "one after the other", _one_by_one(leaves, node.to)
        yield "one after the other, from the last", _one_by_one(leaves[::-1], node.to)


def _one_by_one(leaves: list[Products], to: Encode) -> Node:
    total: Node = leaves[0]
    for leaf in leaves[1:]:
        total = Add(total, leaf, to)
    return total
