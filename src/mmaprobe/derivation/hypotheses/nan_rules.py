"""The NaN rules that give a measured order of the operands: one order for all, or choices at the nodes of the tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

from mmaprobe.derivation.hypotheses.grammar import with_rule
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
    walk,
)
from mmaprobe.parameters.rewrite import map_node

Priority = tuple[str, ...]


def rules_of_order(datapath: Datapath, places: Mapping[str, int], codes: Iterable[int]) -> Iterator[Datapath]:
    """The datapath with every rule by which quiet NaNs win in this order (equal places: no matter), with each code of
    an invalid operation."""
    order = tuple(sorted(places, key=lambda name: places[name]))
    found = [(datapath, "global", order), *((path, "local", names) for path, names in _local(datapath, places))]
    for code in codes:
        for path, kind, names in found:
            for quiet in (True, False):
                for first in (False, True):
                    yield from with_rule(path, kind, code, names, quiet, first)


def _local(datapath: Datapath, places: Mapping[str, int]) -> Iterator[tuple[Datapath, Priority]]:
    """The ways to write the datapath, with orders of a, b and acc, whose choices at the nodes agree with the order."""
    ends = (len(places), -1) if len(places) < 2 * datapath.k + (datapath.c is not None) else (len(places),)
    trees = dict.fromkeys((datapath.tree, _as_adds(datapath.tree), _as_chains(datapath.tree)))
    for tree, end in product(trees, ends):
        path = _arranged(replace(datapath, tree=tree), places, end)
        names = ("a", "b", "acc") if any(isinstance(node, Fma) for node in walk(tree)) else ("a", "b")
        for priority in permutations(names):
            mine = [places[name] for name in local_order(path, priority) if name in places]
            if mine == sorted(mine):
                yield path, priority


def preferred(datapath: Datapath) -> Sequence[str]:
    """The operands in the order in which quiet NaNs win; none where no payload travels."""
    special = datapath.special
    return local_order(datapath, special.priority) if special.nan == "local" else special.priority


def local_order(datapath: Datapath, priority: Priority) -> list[str]:
    """The operands in the order in which quiet ones win where every node takes the first of its own."""
    acc: list[str] = ["c"] if datapath.c is not None else []
    sides = [name for name in priority if name != "acc"]
    for lanes in datapath.steps:
        acc = _order_of(datapath.tree, lanes, sides, priority, acc)
    return acc


def _order_of(node: Node, lanes: tuple[int, ...], sides: list[str], priority: Priority, acc: list[str]) -> list[str]:
    def of(inner: Node) -> list[str]:
        return _order_of(inner, lanes, sides, priority, acc)

    if isinstance(node, Accumulator):
        return acc
    if isinstance(node, Products):
        return [f"{side}{lanes[lane]}" for lane in node.lanes for side in sides]
    if isinstance(node, Add):
        return of(node.x) + of(node.y)
    if isinstance(node, Fma):
        total = of(node.acc)
        for lane in node.lanes:
            parts = {"a": [f"a{lanes[lane]}"], "b": [f"b{lanes[lane]}"], "acc": total}
            total = [name for part in priority for name in parts[part]]
        return total
    return [name for part in _parts(node) for name in of(part)]


def _parts(node: Node) -> list[Node]:
    """The operands of a sum of several."""
    if isinstance(node, Fused):
        return [term.of for term in node.terms]
    return list(node.terms) if isinstance(node, Exact) else []


# --- the same sums, their operands in the measured order


class _Ranks:
    """When the best operand of a part of the tree wins, step by step."""

    def __init__(self, datapath: Datapath, places: Mapping[str, int], end: int) -> None:
        self.datapath, self.places, self.end = datapath, places, end

    def product(self, lane: int, step: int) -> int:
        """The place of the better factor of a lane of a step."""
        return place_of(self.datapath.steps[step][lane], self.places, self.end)

    def best(self, node: Node, step: int) -> int:
        if isinstance(node, Accumulator):
            return self.places.get("c", len(self.places)) if step == 0 else self.best(self.datapath.tree, step - 1)
        own = [self.product(lane, step) for lane in getattr(node, "lanes", ())]
        inner = [node.acc] if isinstance(node, Fma) else [node.x, node.y] if isinstance(node, Add) else _parts(node)
        return min([*own, *(self.best(part, step) for part in inner)], default=len(self.places))

    def sorted(self, nodes: Sequence[Node]) -> list[int]:
        """The numbers of nodes in the order in which they win, in the first step that shows it."""
        for step in range(len(self.datapath.steps)):
            ranks = [self.best(node, step) for node in nodes]
            if len(set(ranks)) == len(ranks):
                break
        return sorted(range(len(nodes)), key=lambda number: ranks[number])


def place_of(lane: int, places: Mapping[str, int], end: int) -> int:
    """The place of the better factor of a lane; ``end`` where neither can be a NaN."""
    return min((places[name] for name in (f"a{lane}", f"b{lane}") if name in places), default=end)


def _arranged(datapath: Datapath, places: Mapping[str, int], end: int) -> Datapath:
    """The same sums with the operands of additions, and terms and lanes of longer sums, in the measured order; products
    whose factors cannot be NaNs at ``end``."""
    whole = list(datapath.order or range(datapath.k))
    size = datapath.step_length
    for positions in _free(datapath.tree):
        for start in range(0, datapath.k, size):
            mine = [whole[start + lane] for lane in positions]
            mine.sort(key=lambda lane: (place_of(lane, places, end), lane))
            for lane, value in zip(positions, mine, strict=True):
                whole[start + lane] = value
    moved = replace(datapath, order=None if whole == sorted(whole) else tuple(whole))
    ranks = _Ranks(moved, places, end)
    return replace(moved, tree=map_node(moved.tree, lambda node: _in_order(node, ranks)))


def _free(tree: Node) -> Iterator[list[int]]:
    """The lanes of every sum whose terms may be taken in any order."""
    for node in walk(tree):
        lanes = sorted(lane for part in _parts(node) if isinstance(part, Products) for lane in part.lanes)
        if lanes:
            yield lanes


def _in_order(node: Node, ranks: _Ranks) -> Node:
    if isinstance(node, Add):
        x, y = ((node.x, node.y)[number] for number in ranks.sorted((node.x, node.y)))
        return replace(node, x=x, y=y)
    if isinstance(node, Fused):
        terms = [replace(term, of=part) for term in node.terms for part in _single(term.of)]
        return replace(node, terms=tuple(_joined([terms[i] for i in ranks.sorted([term.of for term in terms])])))
    if isinstance(node, Exact):
        parts = [Term(part) for whole in node.terms for part in _single(whole)]
        found = _joined([parts[i] for i in ranks.sorted([part.of for part in parts])])
        return replace(node, terms=tuple(term.of for term in found))
    return node


def _single(node: Node) -> list[Node]:
    return [Products((lane,)) for lane in node.lanes] if isinstance(node, Products) else [node]


def _joined(terms: list[Term]) -> list[Term]:
    """Neighbouring lanes by the same rules as one term again."""
    found: list[Term] = []
    for term in terms:
        last = found[-1].of if found else None
        lanes = isinstance(last, Products) and isinstance(term.of, Products)
        if lanes and replace(found[-1], of=term.of) == term:
            found[-1] = replace(term, of=Products((*last.lanes, *term.of.lanes)))  # type: ignore[union-attr]
        else:
            found.append(term)
    return found


# --- a chain as additions, and additions as a chain


def _as_adds(tree: Node) -> Node:
    def change(node: Node) -> Node:
        if not isinstance(node, Fma):
            return node
        total = node.acc
        for lane in node.lanes:
            total = Add(total, Products((lane,)), node.to)
        return total

    return map_node(tree, change)


def _as_chains(tree: Node) -> Node:
    def change(node: Node) -> Node:
        parts = [node.x, node.y] if isinstance(node, Add) else _parts(node) if isinstance(node, Exact) else []
        to: Encode | None = getattr(node, "to", None)
        last = [part for part in parts if isinstance(part, Products) and len(part.lanes) == 1]
        if len(parts) != 2 or not last or to is None:
            return node
        acc = parts[1 - parts.index(last[-1])]
        if isinstance(acc, Products) and len(acc.lanes) != 1:
            return node
        lanes = last[-1].lanes
        if isinstance(acc, Fma) and acc.to == to:
            return Fma(acc.acc, (*acc.lanes, *lanes), to)
        return Fma(acc, lanes, to)

    return map_node(tree, change)
