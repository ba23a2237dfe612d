"""Summation trees of thousands of leaves in few words: repeated structure said once.

``pairwise(32 by 128) of pairwise(8 by 1) of chain(16 by 8)``: 32 units that
start 128 lanes apart are added pairwise; each is 8 sums that start 1 apart,
added pairwise; each of these is 16 products 8 apart, added one after another.

* ``chain(n by s)``: ((t0 + t1) + t2) + ...; s below 0: the last lane first;
  ``chain(n × [12, 8, 4, 0] by 16)``: those four, then the four 16 further, ...
* ``pair``: two of them; ``pairwise``: neighbours, then neighbouring pairs, ...: (t0 + t1) + (t2 + t3);
* ``folded``: halves onto each other, again and again: (t0 + t2) + (t1 + t3);
* ``fused``: all added before one rounding; ``unknown``: in an order that was not found;
* ``chain[x; y; z]``: unlike terms, one after another, each with the lane it starts ``from``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mmaprobe.probing.long_sums.tree_arrays import Builder, TreeArrays, to_json

PERIODS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of terms after which a sum may repeat itself."""
TREES = ("pairwise", "folded")


@dataclass(frozen=True)
class Run:
    """``repeats`` times the lanes of ``pattern``, ``stride`` apart; each begins a copy of ``piece``."""

    pattern: tuple[int, ...]
    stride: int
    repeats: int
    piece: Piece

    @property
    def count(self) -> int:
        return len(self.pattern) * self.repeats

    def firsts(self) -> list[int]:
        """The lane at which each copy begins, in order."""
        return [lane + self.stride * i for i in range(self.repeats) for lane in self.pattern]


@dataclass(frozen=True)
class Piece:
    """Terms added in one shape; a leaf has none."""

    shape: str
    runs: tuple[Run, ...] = ()

    def __str__(self) -> str:
        if not self.runs:
            return "p"
        if len(self.runs) == 1 and self.runs[0].count > 1:
            run = self.runs[0]
            return f"{self.shape}({_span(run)})" + (f" of {run.piece}" if run.piece.runs else "")
        return f"{self.shape}[{'; '.join(map(_part, self.runs))}]"


def _span(run: Run) -> str:
    if len(run.pattern) > 1:
        return f"{run.repeats} × {list(run.pattern)} by {run.stride}"
    return f"{run.count} by {run.stride}"


def _part(run: Run) -> str:
    if run.count == 1:
        return f"{run.piece} from p{run.pattern[0]}" if run.piece.runs else f"p{run.pattern[0]}"
    return f"{_span(run)} from p{run.pattern[0]}" + (f" of {run.piece}" if run.piece.runs else "")


def notation(tree: TreeArrays) -> Piece:
    """The tree with its repetitions named."""
    return _Reader(tree).piece(tree.root)


class _Reader:
    """``key[node]`` is equal for two nodes where one is the other, moved by some lanes."""

    def __init__(self, tree: TreeArrays) -> None:
        self.tree = tree
        known: dict[Any, int] = {}
        self.key = [0] * tree.leaves
        for node, children in enumerate(tree.nodes, tree.leaves):
            parts = sorted((tree.firsts[child] - tree.firsts[node], self.key[child]) for child in children)
            self.key.append(known.setdefault((node in tree.unknown, tuple(parts)), len(known) + 1))
        self.pieces: dict[int, Piece] = {0: Piece("leaf")}

    def piece(self, node: int) -> Piece:
        """What a node is, lanes counted from its first; equal keys are read once."""
        key = self.key[node]
        if key not in self.pieces:
            self.pieces[key] = self._uniform(node) or self._mixed(node)
        return self.pieces[key]

    def _uniform(self, node: int) -> Piece | None:
        """Copies of one thing, evenly apart, in a shape that has a name; as many as possible."""
        size, sizes = self.tree.sizes[node], self.tree.sizes
        seen: dict[int, int] = {}
        todo = [node]
        while todo:
            here = todo.pop()
            for child in self.tree.children(here):
                if self.key[child] not in seen and size % sizes[child] == 0:
                    seen[self.key[child]] = child
                todo.append(child)
        for key, unit in sorted(seen.items(), key=lambda item: sizes[item[1]]):
            found = self._tiled(node, key, sizes[unit])
            if found is not None:
                return Piece(found[0], (Run(*found[1], self.piece(unit)),))
        return None

    def _tiled(self, node: int, key: int, size: int) -> tuple[str, tuple[tuple[int, ...], int, int]] | None:
        """Shape and lanes of a node made of units of this key only."""
        tree, units, inner = self.tree, list[int](), list[int]()
        todo = [node]
        while todo:
            here = todo.pop()
            if self.key[here] == key:
                units.append(here)
            elif tree.sizes[here] <= size or here in tree.unknown:
                return None
            else:
                inner.append(here)
                todo.extend(tree.children(here))
        firsts = sorted(tree.firsts[unit] - tree.firsts[node] for unit in units)
        steps = {b - a for a, b in itertools.pairwise(firsts)}
        if len(inner) == 1 and len(units) > 2 and len(steps) == 1:
            return "fused", ((0,), steps.pop(), len(units))
        if any(len(tree.children(here)) > 2 for here in inner):
            return None
        terms = tree.chain(node)[1 - len(units) :]
        first = set(units).difference(terms)
        if len(first) == 1:
            order = [tree.firsts[term] - tree.firsts[node] for term in (*first, *terms)]
            taken, lanes = _longest(order, True)
            return ("chain" if taken > 2 else "pair", lanes) if taken == len(order) else None
        if len(steps) != 1 or len(units) & (len(units) - 1):
            return None
        place = {unit: (tree.firsts[unit] - tree.firsts[node]) // (firsts[1] - firsts[0]) for unit in units}
        form = to_json(_top(tree, inner, place))
        shape = next((name for name in TREES if form == _reference(name, len(units))), None)
        return None if shape is None else (shape, ((0,), firsts[1] - firsts[0], len(units)))

    def _mixed(self, node: int) -> Piece:
        """Unlike terms: what is regular at the bottom of the chain, then runs of like terms."""
        tree, base = self.tree, self.tree.firsts[node]
        if len(tree.children(node)) > 2 or node in tree.unknown:
            terms = sorted(tree.children(node), key=lambda child: tree.firsts[child])
            return Piece("unknown" if node in tree.unknown else "fused", tuple(self._runs(terms, base, False)))
        terms, here = tree.chain(node), node
        rest: list[int] = []
        while len(terms) > 2:
            changed = self.key[terms[-1]] != self.key[terms[-2]]
            rest.append(terms.pop())
            here = next(child for child in tree.children(here) if child != rest[-1])
            if changed and self._uniform(here) is not None:
                runs = [Run((tree.firsts[here] - base,), 0, 1, self.piece(here))]
                return Piece("chain", (*runs, *self._runs(rest[::-1], base, False)))
        return Piece("chain", tuple(self._runs(tree.chain(node), base, True)))

    def _runs(self, terms: Sequence[int], base: int, start: bool) -> Iterator[Run]:
        """Runs of equal terms whose lanes advance evenly."""
        while terms:
            key = self.key[terms[0]]
            alike = next((n for n, term in enumerate(terms) if self.key[term] != key), len(terms))
            taken, lanes = _longest([self.tree.firsts[term] - base for term in terms[:alike]], start)
            yield Run(*lanes, self.piece(terms[0]))
            terms, start = terms[taken:], False


def _longest(order: list[int], start: bool) -> tuple[int, tuple[tuple[int, ...], int, int]]:
    """How many of the lanes repeat a pattern, evenly moved; at the ``start`` of a chain the first two may swap."""
    best: tuple[int, tuple[tuple[int, ...], int, int]] = (1, ((order[0],), 0, 1))
    for lanes in (order, [order[1], order[0], *order[2:]]) if start and len(order) > 1 else (order,):
        for period in PERIODS:
            if len(lanes) < 2 * period:
                break
            stride = lanes[period] - lanes[0]
            good = period
            while good < len(lanes) and lanes[good] - lanes[good - period] == stride:
                good += 1
            repeats = good // period
            if repeats > 1 and repeats * period > best[0]:
                best = repeats * period, (tuple(lanes[:period]), stride, repeats)
    return best


def _top(tree: TreeArrays, inner: Sequence[int], place: dict[int, int]) -> TreeArrays:
    """The nodes above units, as a tree whose leaves are the units' places."""
    built = Builder()
    new = {unit: built.leaf(index) for unit, index in place.items()}
    for node in sorted(inner):
        new[node] = built.node([new[child] for child in tree.children(node)])
    return built.tree(new[max(inner)])


@lru_cache(maxsize=64)
def _reference(shape: str, count: int) -> Any:
    built = Builder()
    level = [built.leaf(i) for i in range(count)]
    while len(level) > 1:
        half = len(level) // 2
        pairs = zip(level[::2], level[1::2]) if shape == "pairwise" else zip(level[:half], level[half:])  # noqa: B905
        level = [built.node(pair) for pair in pairs]
    return to_json(built.tree(level[0]))
