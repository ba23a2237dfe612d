"""The summation structures a derivation tries: trees over the lanes of a step, and the steps of K."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
)

Build = Callable[[Encode], Node]
ACC = Accumulator()
MOST_GROUPS = 4
"""Groups that the products of a step are summed in, at most."""
MOST_IN_TURN = 16
"""Steps whose groups are summed from zero before c joins, at most."""
MOST_MODULUS = 8
"""Lanes are taken by their remainder modulo at most this."""


@dataclass(frozen=True)
class Structure:
    """One way to add up K products and c.

    ``build`` makes the tree of a step from the Encode of every rounding in it;
    ``rounded`` says that products are rounded before they are added; ``fused``
    that it is made of aligned sums, whose precision is still to be chosen, each
    of ``piece`` lanes (0: of a step); ``apart`` that the sum so far is added to c
    by an operation of its own; ``scaled`` that block scales apply to whole
    groups of products; ``placed`` that its ``order`` is the only one to try.
    """

    name: str
    step: int
    build: Build
    order: tuple[int, ...] | None = None
    rounded: bool = False
    fused: bool = False
    piece: int = 0
    apart: bool = False
    scaled: bool = False
    placed: bool = False


def rounded_structures(k: int, has_c: bool) -> Iterator[Structure]:
    """Chains, trees and exact sums whose every operation rounds to a format, lanes as they come."""
    for step in _divisors(k):
        if step < k and not has_c:
            continue
        for name, build, rounded in _trees(step, has_c):
            yield Structure(f"{name} over {step}", step, build, rounded=rounded)


def fused_structures(k: int, has_c: bool) -> Iterator[Structure]:
    """Aligned sums of a step's products, with c inside or added after; ``build`` leaves the precision open."""
    for step in _divisors(k):
        products = Term(Products(tuple(range(step))))
        if step == k and not has_c:
            yield Structure(f"fused over {step}, nothing else", step, _fused((products,)), fused=True)
        yield Structure(f"fused over {step}", step, _fused((Term(ACC), products)), fused=True)
        if has_c:
            yield Structure(f"fused, c after over {step}", step, _after(products), fused=True, apart=True)
            if step < k:
                name = f"fused from zero over {step}, c last"
                yield Structure(
                    name, k, _last(step, k, _parts(step, 1, False), Products), fused=True, piece=step, apart=True
                )


def scaled_structures(k: int, has_c: bool, size: int) -> Iterator[Structure]:
    """Aligned sums of exact sums of products, each multiplied by the scales of its scale block of ``size`` lanes."""
    for step in _divisors(k):
        for group in _divisors(size) if step % size == 0 else ():
            parts = _parts(step, step // group, False)
            groups = [Term(_scaled(lanes)) for lanes in parts]
            name = f"scaled sums of {group} over {step}"
            if step == k and not has_c:
                yield Structure(f"{name}, nothing else", step, _fused(tuple(groups)), fused=True, scaled=True)
            yield Structure(name, step, _fused((Term(ACC), *groups)), fused=True, scaled=True)
            if has_c:
                yield Structure(f"{name}, c after", step, _after(*groups), fused=True, apart=True, scaled=True)
                if 1 < k // step <= MOST_IN_TURN:
                    build = _last(step, k, parts, _scaled)
                    yield Structure(f"{name} from zero, c last", k, build, fused=True, apart=True, scaled=True)


def _scaled(lanes: tuple[int, ...]) -> Node:
    return Exact((Products(lanes),), scaled=True)


def grouped_structures(k: int, has_c: bool) -> Iterator[Structure]:
    """Aligned sums in two stages: the products of a step, in one group or several, and then C."""
    for step in _divisors(k):
        for count in range(1, MOST_GROUPS + 1):
            for apart in (False, True) if 1 < count < step else (False,):
                parts = _parts(step, count, apart)
                if len(parts) != count:
                    continue
                name = f"{count} groups over {step}{', apart' if apart else ''}"
                if count > 1:
                    yield Structure(name, step, _in_groups(parts, has_c, False), fused=True)
                if has_c:
                    yield Structure(f"{name}, then c", step, _in_groups(parts, has_c, True), fused=True)
                if has_c and count > 1 and 1 < k // step <= MOST_IN_TURN:
                    build = _last(step, k, parts, _group)
                    yield Structure(f"{name} from zero, c last", k, build, fused=True, apart=True)


def _group(lanes: tuple[int, ...]) -> Node:
    return Fused.alike((Products(lanes),), None)


def _parts(step: int, count: int, apart: bool) -> list[tuple[int, ...]]:
    """The lanes in so many parts, the last the shortest where they do not divide."""
    size = -(-step // count)
    parts = [tuple(range(i, step, count)) if apart else tuple(range(i * size, (i + 1) * size)) for i in range(count)]
    return [kept for part in parts if (kept := tuple(lane for lane in part if lane < step))]


def _in_groups(lanes: list[tuple[int, ...]], has_c: bool, then: bool) -> Build:
    """Each group an aligned sum handed on; ``then``: their sum handed on once more before c joins."""
    groups = [_group(part) for part in lanes]
    c = (ACC,) if has_c else ()

    def build(to: Encode) -> Node:
        whole: tuple[Node, ...] = tuple(groups)
        if then and len(groups) > 1:
            whole = (Fused.alike(groups, None),)
        return Fused.alike((*whole, *c), None, to=to)

    return build


def _last(step: int, k: int, parts: Sequence[tuple[int, ...]], node: Callable[[tuple[int, ...]], Node]) -> Build:
    """The parts of each step, as they are or in nodes of their own, added to a sum that begins with zero; then c."""

    def build(to: Encode) -> Node:
        total: Node = Zero()
        for start in range(0, k, step):
            terms = [node(tuple(start + lane for lane in part)) for part in parts]
            total = Fused.alike((total, *terms), None, to=to)
        return Add(total, ACC, to)

    return build


def _fused(terms: tuple[Term, ...]) -> Build:
    return lambda to: Fused(terms, to)


def _after(*terms: Term) -> Build:
    return lambda to: Add(Fused(terms, to), ACC, to)


def _divisors(k: int) -> list[int]:
    return [step for step in range(k, 0, -1) if k % step == 0]


def orders(k: int, step: int, sums: bool) -> list[tuple[int, ...] | None]:
    """Ways to take the lanes, each once: as they come, by their remainder, by parts of it, each also backwards.

    ``sums``: the lanes of a step are one sum, in which their order does not matter.
    """
    ways: list[tuple[int, ...]] = [tuple(range(k))]
    for modulus in range(2, min(k, MOST_MODULUS) + 1):
        for chunk in sorted({1, modulus // 2}):
            ways.append(tuple(sorted(range(k), key=lambda lane: (lane % modulus // chunk, lane))))
    found: dict[tuple[Any, ...], tuple[int, ...] | None] = {}
    for way in ways:
        pieces = [way[i : i + step] for i in range(0, k, step)]
        for each in (pieces, pieces[::-1]):
            order = tuple(lane for piece in each for lane in piece)
            found.setdefault(tuple(map(frozenset if sums else tuple, each)), None if order == ways[0] else order)
    return list(found.values())


def _trees(step: int, has_c: bool) -> Iterator[tuple[str, Build, bool]]:
    """(name, builder, products rounded) of every tree over ``step`` lanes."""
    starts: tuple[tuple[str, Node, bool], ...] = (("from zero, then c", Zero(), True), ("from c", ACC, False))
    for name, lanes in _lane_orders(step):
        for label, start, add_c in reversed(starts) if has_c else starts[:1]:
            yield f"fma {name} {label}", _fma(lanes, start, add_c and has_c), False
    if step > 1:
        yield "exact", _exact(step, has_c), False
    if step == 1 and not has_c:
        return
    for name, tree in _add_trees(step):
        for place in ("last", "first") if has_c else ("none",):
            yield f"rounded products, {name}, c {place}", _adds(tree, place), True
    if has_c:
        for name, lanes in _lane_orders(step):
            yield f"rounded products added {name} to c", _chain(lanes), True
    for chains in (2, 4):
        if step % chains == 0 and step > chains:
            for interleaved in (True, False):
                kind = "interleaved" if interleaved else "contiguous"
                parts = _parts(step, chains, interleaved)
                yield f"{chains} {kind} fma chains", _split(parts, has_c), False
                if has_c:
                    yield f"{chains} {kind} fma chains added to c", _in_turn(parts), False


def _lane_orders(step: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    ascending = tuple(range(step))
    yield "ascending", ascending
    if step > 1:
        yield "descending", ascending[::-1]
    if step > 2 and step % 2 == 0:
        yield "pairs swapped", tuple(lane ^ 1 for lane in ascending)
        yield "even then odd", ascending[::2] + ascending[1::2]
        yield "odd then even", ascending[1::2] + ascending[::2]


def _fma(lanes: tuple[int, ...], start: Node, add_c: bool) -> Build:
    def build(to: Encode) -> Node:
        chain = Fma(start, lanes, to)
        return Add(chain, ACC, to) if add_c else chain

    return build


def _exact(step: int, has_c: bool) -> Build:
    terms: tuple[Node, ...] = (*((ACC,) if has_c else ()), Products(tuple(range(step))))
    return lambda to: Exact(terms, to)


Tree = int | tuple["Tree", "Tree"]


def _add_trees(step: int) -> Iterator[tuple[str, Tree]]:
    """Binary trees over lanes as nested pairs; sequential only up to 16 lanes."""
    lanes: list[Tree] = list(range(step))
    yield "pairwise", _halve(lanes, adjacent=True)
    if step & (step - 1):
        yield "halves", _halves(lanes, apart=False)
        yield "halves apart", _halves(lanes, apart=True)
    if step > 2:
        if step & (step - 1) == 0:
            yield "pairwise across halves", _halve(lanes, adjacent=False)
        if step <= 16:
            yield "ascending", _sequence(lanes)
            yield "descending", _sequence(lanes[::-1])


def _halve(lanes: list[Tree], adjacent: bool) -> Tree:
    while len(lanes) > 1:
        half = len(lanes) // 2
        if adjacent:
            pairs: list[Tree] = [(lanes[i], lanes[i + 1]) for i in range(0, 2 * half, 2)]
            lanes = pairs + lanes[2 * half :]
        else:
            lanes = [(lanes[i], lanes[i + half]) for i in range(half)]
    return lanes[0]


def _halves(lanes: list[Tree], apart: bool) -> Tree:
    """The sum of two halves of the lanes, the first the longer by one where their number is odd."""
    if len(lanes) == 1:
        return lanes[0]
    half = (len(lanes) + 1) // 2
    x, y = (lanes[::2], lanes[1::2]) if apart else (lanes[:half], lanes[half:])
    return _halves(x, apart), _halves(y, apart)


def _sequence(lanes: list[Tree]) -> Tree:
    tree = lanes[0]
    for lane in lanes[1:]:
        tree = (tree, lane)
    return tree


def _adds(tree: Tree, place: str) -> Build:
    def node(part: Tree, to: Encode) -> Node:
        return Products((part,)) if isinstance(part, int) else Add(node(part[0], to), node(part[1], to), to)

    def build(to: Encode) -> Node:
        total = node(tree, to)
        if place == "none":
            return total
        return Add(total, ACC, to) if place == "last" else Add(ACC, total, to)

    return build


def _chain(lanes: tuple[int, ...]) -> Build:
    def build(to: Encode) -> Node:
        node: Node = ACC
        for lane in lanes:
            node = Add(node, Products((lane,)), to)
        return node

    return build


def _split(lanes: list[tuple[int, ...]], has_c: bool) -> Build:
    """Chains from zero, added in pairs, and then to c."""

    def build(to: Encode) -> Node:
        nodes: list[Node] = [Fma(Zero(), group, to) for group in lanes]
        while len(nodes) > 1:
            nodes = [Add(nodes[i], nodes[i + 1], to) for i in range(0, len(nodes), 2)]
        return Add(ACC, nodes[0], to) if has_c else nodes[0]

    return build


def _in_turn(lanes: list[tuple[int, ...]]) -> Build:
    """Chains from zero, added to c one after the other."""

    def build(to: Encode) -> Node:
        total: Node = ACC
        for group in lanes:
            total = Add(total, Fma(Zero(), group, to), to)
        return total

    return build
