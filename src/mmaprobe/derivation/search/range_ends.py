"""The ends of the range, part by part: operands, products, inner sums, the whole sum and the last conversion.

One grid of all their fields would be too large.  So what is infinite, then what
is flushed, then which sign a zero has are asked one after another; the first two
without regard to the sign of a zero or the code of a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import inf

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.discriminate import Pool, eliminate
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.search.descent import descend
from mmaprobe.derivation.search.loss import Budget, Graded
from mmaprobe.derivation.session import Mask, OutsideError, View, blind
from mmaprobe.derivation.survivors import Indices, Living, several
from mmaprobe.derivation.vectors.mixtures import nan_operands
from mmaprobe.derivation.vectors.range_ends import near_vectors
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.models.grid import Change, Grid, Numbers
from mmaprobe.operands.batch import Batch, join
from mmaprobe.parameters.datapath import OVERFLOWS, Add, Datapath, Encode, Node, Operand, Products, children, walk
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.rewrite import map_encodes, map_node, map_terms, with_encode

Axis = Sequence[Change]
PARTS = ("product", "halves", "inner", "root", "result")
MOST = 12_000
"""A grid has at most so many combinations."""
ROUNDS = 6
CLASSED = 128
"""About so many vectors of each kind tell classes of zero exponents apart."""


class Ends:
    """The search of one datapath's ends; its structure, numbers and roundings are known."""

    def __init__(self, view: View, pools: Pools, datapath: Datapath) -> None:
        self.view, self.session, self.pools, self.instruction = view, view.session, pools, view.session.instruction
        self.start = _bare(datapath)
        self.parts = [part for part in PARTS if _encode_of(self.start, part) is not None]
        self.names = ["a", "b", *(["c"] if datapath.c is not None else [])]
        self.formats = list(dict.fromkeys([datapath.d, *(_encode_of(self.start, part).format for part in self.parts)]))  # type: ignore[union-attr]

    def found(self, rest: Indices) -> Living:
        """The datapath that agrees with everything asked; ``rest`` is what was observed at the ends of the range
        before, which counts once zero exponents are known from plain vectors.  OutsideError where there is none."""
        path, zeros = self._plain_zeros(self.start)
        self.view = self.view.with_these(rest)
        path = self._overflows(path)
        try:
            path, flushes, zeros = self._flushes(path, zeros)
        except OutsideError:  # terms may have zero exponents of their own
            path, flushes, zeros = self._flushes(self._zeros(path, self._low, self._view()), [])
        signs = self._signs(path, flushes, zeros)
        path = self._zeros(next(iter(signs)), self._low, self._view(sees=True))
        return several([path], self.session.allowance)

    # --- zero exponents

    def _plain_zeros(self, path: Datapath) -> tuple[Datapath, Axis]:
        """The datapath, and the zero exponents of all terms that vectors at the low end can tell apart."""
        if not roles.term_roles(path):
            return path, []
        view = self._view(lambda vectors: self._unbounded(path, vectors))
        grid = Grid(path, [_tied_zeros(field_choices.zero_exponents(path))])
        alive = self._eliminate(view, grid, self.pools.zeroed, patience=1)
        if not len(alive):
            return self._zeros(path, self.pools.zeroed, view), []
        left = np.concatenate([indices for _, indices in alive.parts])
        seed = self.session.seed + 5
        vectors = join([self._bottom(seed, CLASSED), self._low(seed, CLASSED)])
        _, first = np.unique(grid.evaluate(left, vectors), axis=0, return_index=True)
        values = left[np.sort(first)]
        return next(iter(alive)), [grid.axes[0][int(value)] for value in values]

    def _zeros(self, path: Datapath, pool: Pool, view: View) -> Datapath:
        """Of each kind of term, downhill, and until no vector tells another one."""
        kinds = roles.term_roles(path)
        if not kinds:
            return path
        values = field_choices.zero_exponents(path)
        lines: list[Axis] = [_tied_zeros(values), *(roles.zeros(kind, values) for kind in kinds)]
        lines = lines[: 1 if len(kinds) == 1 else None]
        for turn in range(ROUNDS):
            budget = Budget(inf, self.session.allowance)
            seen = Graded.of(self.instruction, [view.seen()], budget, True, view.shown)
            path, loss = descend(path, seen, lambda each: [(each, [line]) for line in lines], 2)
            if loss:
                raise OutsideError("the zero exponents", path)
            rivals = view.all(*(Grid(path, [line]) for line in lines))
            alive = eliminate(view, rivals, _within(view, pool), seed=self.session.seed + 17 * turn, patience=2)
            if not view.mismatches(path):
                return path
            path = next(iter(alive), path)
        raise OutsideError("the zero exponents", path)

    # --- what is infinite, what is flushed, which sign a zero has

    def _overflows(self, path: Datapath) -> Datapath:
        rules: list[Axis] = [[_part(part, overflow=rule) for rule in OVERFLOWS] for part in self.parts]
        limits = roles.products(path)[1]
        view = self._view(lambda vectors: self._unflushed(path, vectors))
        for some in (limits[:1], limits):
            alive = self._eliminate(view, Grid(path, [*rules, some]), self._top)
            if len(alive):
                return next(iter(alive))
        raise OutsideError("overflow, part by part", path)

    def _unflushed(self, path: Datapath, vectors: Batch) -> Mask:
        """The vectors that get the same answer with everything flushed as with nothing."""
        d = blind(path.d, self.session.allowance.evaluate([path, flushed(path)], vectors))
        same: Mask = (d[0] == d[1]) & ~nan_operands(self.instruction, vectors)
        return same

    def _unbounded(self, path: Datapath, vectors: Batch) -> Mask:
        """The vectors in which nothing overflows."""
        both = [map_encodes(path, lambda to, r=rule: replace(to, overflow=r)) for rule in ("infinity", "largest")]  # type: ignore[misc]
        d = self.session.allowance.evaluate(both, vectors)
        same: Mask = (d[0] == d[1]) & ~nan_operands(self.instruction, vectors)
        return same

    def _flushes(self, path: Datapath, zeros: Axis) -> tuple[Datapath, list[Axis], Axis]:
        """What is flushed; for each operand and part the rules that are left, with every sign of a zero; and the zero
        exponents that are left."""
        tiny = [("keep", "after"), *product(("signed_zero",), choices(Encode, "tininess"))]
        rules: list[Axis] = [
            [field_choices.operand_set(name, how) for how in ("keep", "signed_zero")] for name in self.names
        ]
        rules += [[_part(part, subnormals=how, tininess=when) for how, when in tiny] for part in self.parts]
        room = MOST // int(np.prod([len(axis) for axis in rules]))
        grid = Grid(path, [*rules, *([zeros[: max(room, 1)]] if zeros else [])])
        alive = self._eliminate(self._view(), grid, self._bottom)
        if not len(alive):
            raise OutsideError("flushing, part by part", path)
        left = np.unravel_index(np.concatenate([indices for _, indices in alive.parts]), grid.shape)
        found: list[Axis] = []
        for number, places in enumerate(left[: len(rules)]):
            ways = []
            for place in np.unique(places).tolist():
                for how in ("keep",) if place == 0 else ("zero", "signed_zero"):
                    part = number - len(self.names)
                    ways.append(
                        field_choices.operand_set(self.names[number], how)
                        if part < 0
                        else _part(self.parts[part], subnormals=how, tininess=tiny[place][1])
                    )
            if number < len(self.names) and len(ways) == 1:  # +0 for zeros alone: no magnitude shows it
                ways.append(field_choices.operand_set(self.names[number], "zero"))
            found.append(ways)
        return next(iter(alive)), found, [zeros[int(i)] for i in np.unique(left[-1])] if zeros else []

    def _signs(self, path: Datapath, flushes: list[Axis], zeros: Axis) -> Living:
        both = list(product(choices(Encode, "zero"), choices(Encode, "underflow")))
        signs: list[Axis] = [[_part(part, zero=zero, underflow=under) for zero, under in both] for part in self.parts]
        for most in (8, 4, 2):
            some = [*flushes[: len(self.names)], *(axis[:most] for axis in flushes[len(self.names) :])]
            if np.prod([float(len(axis)) for axis in (*some, *signs)]) <= MOST:
                break
        room = max(1, MOST // int(np.prod([float(len(axis)) for axis in (*some, *signs)])))
        grid = Grid(path, [*some, *signs, *([zeros[:room]] if zeros else [])])
        alive = self._eliminate(self._view(sees=True), grid, self._bottom)
        if not len(alive):
            raise OutsideError("signs of zeros, part by part", path)
        return alive

    def _eliminate(self, view: View, grid: Grid, pool: Pool, patience: int = 2) -> Living:
        self.session.begin("the ends of the range, part by part", f"{len(grid.valid)} hypotheses")
        return eliminate(view, view.all(grid), _within(view, pool), seed=self.session.seed, patience=patience)

    def _view(self, among: Callable[[Batch], Mask] | None = None, sees: bool = False) -> View:
        return self.view.of(among or self._no_nans, blind=not sees)

    # --- vectors

    def _no_nans(self, vectors: Batch) -> Mask:
        return ~nan_operands(self.instruction, vectors)

    def _top(self, seed: int, count: int) -> Batch:
        return join([self.pools.hard("extremes", "clustered")(seed, count // 2), *self._near(seed, count // 2, True)])

    def _bottom(self, seed: int, count: int) -> Batch:
        return join([self.pools.range(seed, count // 4), *self._near(seed, count // 2, False)])

    def _low(self, seed: int, count: int) -> Batch:
        alone = self.pools.hard("conly", "zlad", "zeros")(seed, count // 2)
        return join([self.pools.low(seed, count // 8), alone, *self._near(seed, count // 4, False)])

    def _near(self, seed: int, count: int, top: bool) -> Iterator[Batch]:
        for number, name in enumerate(self.formats):
            yield near_vectors(self.instruction, formats.get(name), seed + number, count // len(self.formats), top)


# --- parts


def _encode_of(path: Datapath, part: str) -> Encode | None:
    """The Encode of a part; None where there is none."""
    if part == "product":
        return path.product.to
    if part == "result":
        return path.result
    if part == "root":
        return path.tree.to  # type: ignore[union-attr]
    for node in list(walk(path.tree))[1:]:
        if getattr(node, "to", None) is not None and _is_half(node) == (part == "halves"):
            return node.to  # type: ignore[union-attr]
    return None


def _is_half(node: Node) -> bool:
    """An addition of products, or of such additions."""
    return isinstance(node, Add) and all(isinstance(each, Products) or _is_half(each) for each in children(node))


def _part(part: str, **fields: object) -> Change:
    """Change these fields of a part's Encodes."""

    def new(to: Encode) -> Encode:
        return replace(to, **fields)  # type: ignore[arg-type]

    def at(node: Node) -> Node:
        return with_encode(node, new) if _is_half(node) == (part == "halves") else node

    def apply(path: Datapath) -> Datapath:
        if part == "product":
            return replace(path, product=replace(path.product, to=path.product.to and new(path.product.to)))
        if part == "result":
            return replace(path, result=path.result and new(path.result))
        if part == "root":
            return replace(path, tree=with_encode(path.tree, new))
        root: Encode = path.tree.to  # type: ignore[union-attr, assignment]
        return replace(path, tree=with_encode(map_node(path.tree, at), lambda _: root))

    return apply


def _tied_zeros(values: Sequence[int | None]) -> Axis:
    return Numbers(all_zeros, tuple(values))


def all_zeros(value: int | None) -> Change:
    """Set the zero exponent of every term."""

    return lambda path: map_terms(path, lambda term: replace(term, zero_exponent=value))


def _bare(path: Datapath) -> Datapath:
    """Nothing flushed, no rule of zeros or overflow."""
    plain = map_encodes(path, lambda to: Encode(to.format, to.rounding, first=to.first))
    none = all_zeros(None)(plain)
    operands = {f"operand_{side}": replace(getattr(path, f"operand_{side}"), subnormals="keep") for side in "abc"}
    return replace(none, product=replace(none.product, overflow_exponent=None), **operands)


def flushed(path: Datapath) -> Datapath:
    """Everything flushed."""
    every = map_encodes(path, lambda to: replace(to, subnormals="zero", tininess="before"))
    zero = Operand("zero")
    return replace(every, operand_a=zero, operand_b=zero, operand_c=zero if path.c is not None else Operand())


def _within(view: View, pool: Pool) -> Pool:
    """The vectors of a pool that a view takes."""

    def chosen(seed: int, count: int) -> Batch:
        return view.taken(pool(seed, count))

    return chosen
