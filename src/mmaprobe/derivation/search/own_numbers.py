"""The search for structures whose terms, products and results each have numbers of their own.

What single terms become is fitted first, without any structure (``single_terms``).  With those numbers every structure,
its lanes erased, is held against vectors of equal lanes; the nearest go downhill through the other numbers; of those
that get everything right the lanes are found last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.discriminate import eliminate
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.structures import Structure
from mmaprobe.derivation.search.descent import SWEEPS, descend
from mmaprobe.derivation.search.lane_orders import Places, Shape, normal, ordered, shapes
from mmaprobe.derivation.search.loss import Budget, Found, Graded
from mmaprobe.derivation.search.numbers import (
    Precisions,
    converted,
    groups,
    rounding,
    singles,
    tied_modes,
    tied_widths,
    wide_formats,
)
from mmaprobe.derivation.search.opening import Opening
from mmaprobe.derivation.search.polish import own_numbers, polish
from mmaprobe.derivation.search.single_terms import Alone, fit_alone
from mmaprobe.derivation.session import Mask, OutsideError, View
from mmaprobe.derivation.survivors import several
from mmaprobe.derivation.vectors.plain import single_vectors, uniform_vectors
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.operands.batch import Bits, join
from mmaprobe.parameters.datapath import Datapath

ALONE, UNIFORM, SAFE = 96, 96, 64
"""Vectors of the second opening, by kind."""
SHAPES, MANY, NEAREST, NESTED, FITTING = 32, 24, 6, 3, 8
"""So many shapes are looked at, so many starts of them closely, so many structures, the nearest ones, taken downhill,
until so many datapaths get everything right."""
CLOSEST = 3
"""So many of these are taken to the end."""
ORDERS, NEAR = 4, 12.0
"""So many orders of lanes are taken downhill, none whose loss is so much more than the least."""
EVALUATIONS = 10_000_000


Scored = tuple[Shape, Datapath, float]


class Untied:
    """The structures that the device's answers leave when every part may have numbers of its own."""

    def __init__(self, view: View, pools: Pools, opening: Opening, structures: Iterable[Structure]) -> None:
        self.view, self.session, self.pools, self.opening = view, view.session, pools, opening
        self.instruction: Instruction = view.session.instruction
        self.structures = structures
        self.budget = Budget(EVALUATIONS, view.session.allowance)
        self.far: Datapath | None = None

    def run(self, placed: bool = False) -> Iterator[Datapath]:
        """Datapaths that agree with all plain answers, the likeliest first; OutsideError where none does; ``placed``:
        the lanes of the structures are where they must be."""
        try:
            yield from self._found(placed)
        except OutsideError as error:
            raise OutsideError(error.stage, error.closest or self.far) from None

    def _found(self, placed: bool) -> Iterator[Datapath]:
        alone, equal, everything = self._ask()
        self.far = alone.cut
        self.session.begin("structures, each part on its own")
        near = self._rough(alone, equal)
        found = self._natural(alone, near)
        if not found and not placed:
            found = self._any_order(alone, near, equal, everything)
        if not found:
            raise OutsideError("structures", None)
        yield from self._polished(list(dict.fromkeys(found)), alone.precisions)

    def _natural(self, alone: Alone, near: list[Shape]) -> list[Datapath]:
        """What gets all plain answers right with its lanes as they come."""
        seen = self._seen()
        starts = [(s, each) for s in near for member in s.members for each in self._starts(member, alone)]
        rough = sorted(((shape, *_fitted(start, seen, True)) for shape, start in starts), key=lambda each: each[2])
        close = sorted(((s, *_fitted(start, seen, False)) for s, start, _ in rough[:MANY]), key=lambda each: each[2])
        self.far = close[0][1] if close else self.far
        found: list[Datapath] = []
        for _, path in _downhill(_best(close), seen, alone.precisions):
            found += self._twins(path, seen)
        return found

    def _any_order(self, alone: Alone, near: list[Shape], equal: Graded, everything: Graded) -> list[Datapath]:
        """What gets all plain answers right with its lanes in some order; OutsideError where nothing does."""
        found: list[Datapath] = []
        for shape, path in _downhill(self._close(alone, near, equal), everything, alone.precisions):
            found += self._with_lanes(shape, path, everything, alone.precisions)
            if len(found) >= FITTING:
                break
        if not found:
            raise OutsideError("structures", None)
        return found

    def _polished(self, found: list[Datapath], precisions: Precisions) -> Iterator[Datapath]:
        """What plain vectors leave of these, each told from its neighbours; first what fits the ends of the range."""
        seed, holds = self.session.seed, partial(normal, self.instruction)
        every = several(found, self.session.allowance)
        alive = eliminate(self.view, every, self.pools.safe, seed=seed, patience=3, holds=holds)
        failure = OutsideError("lanes", found[0])
        ends, answers = self.opening.ends
        paths = alive.first(FITTING)
        if len(answers) and paths:
            misses = (self.session.allowance.evaluate(paths, ends) != answers).sum(axis=1)
            paths = [paths[i] for i in np.argsort(misses, kind="stable")]
        done = 0
        for path in paths:
            try:
                yield polish(self.view, path, self.pools.safe, own_numbers(precisions), self.budget)
                done += 1
            except OutsideError as error:
                failure = error
        if not done:
            raise failure

    def _ask(self) -> tuple[Alone, Graded, Graded]:
        """The second opening: single terms, and more vectors of equal lanes."""
        instruction, seed = self.instruction, self.session.seed
        single = single_vectors(instruction, seed, ALONE)
        uniform, safe = uniform_vectors(instruction, seed + 1, UNIFORM), self.pools.safe(seed + 1, SAFE)

        def holds(answers: Bits) -> Mask:
            return normal(instruction, answers) & (np.arange(len(answers)) >= ALONE)

        answers = self.view.answers(join([single, uniform, safe]), holds)
        equal = uniform, answers[ALONE : ALONE + UNIFORM]
        alone = Graded.of(instruction, [(single, answers[:ALONE])], self.budget)
        fits = fit_alone(instruction, single, answers[:ALONE], alone)
        equals = [equal, self.opening.uniform]
        return (
            fits,
            Graded.of(instruction, equals, self.budget),
            Graded.of(instruction, [*equals, (single, answers[:ALONE])], self.budget),
        )

    def _seen(self) -> Graded:
        """All plain answers so far."""
        return Graded.of(self.instruction, [self.view.seen()], self.budget)

    def _rough(self, alone: Alone, equal: Graded) -> list[Shape]:
        """The shapes nearest to the answers to equal lanes, one width for all their terms."""
        starts = [
            (shape, start) for shape in shapes(self.structures) for start in self._starts(shape.members[0], alone)
        ]
        losses = [(_fitted(start, equal, True)[1], i) for i, (_, start) in enumerate(starts)]
        scored = [starts[i][0] for _, i in sorted(losses)]
        return list({id(shape): shape for shape in scored}.values())[:SHAPES]

    def _close(self, alone: Alone, near: list[Shape], equal: Graded) -> list[Scored]:
        """The nearest of them, each with its numbers so far and their loss."""
        starts = [(shape, start) for shape in near[:MANY] for start in self._starts(shape.members[0], alone)]
        close = ((shape, *_fitted(start, equal, False)) for shape, start in starts)
        return _best(sorted(close, key=lambda each: each[2]))

    def _starts(self, structure: Structure, alone: Alone) -> list[Datapath]:
        return alone.starts(lambda to: grammar.build(self.instruction, structure, to))

    def _twins(self, path: Datapath, seen: Graded) -> list[Datapath]:
        """The datapath, and what gets as much right with another format between the steps, or none."""
        found = [path]
        inner = "sums" if "sums" in roles.parts_of(path) else "root"
        for name in wide_formats():
            other = seen.nearest(converted(path, name), [rounding(inner), rounding("result")])
            if other is not None and other[1] == 0:
                found.append(other[0])
        return found

    def _with_lanes(self, shape: Shape, path: Datapath, equal: Graded, precisions: Precisions) -> list[Datapath]:
        """The datapath with its lanes in the orders nearest to all plain answers, if its numbers make all right."""
        seen = self._seen()
        ways = sorted(((seen.total(each), i, each) for i, each in enumerate(ordered(self.instruction, shape, path))))
        chosen = [each for loss, _, each in ways[:ORDERS] if loss <= ways[0][0] + NEAR]
        if ways[0][0] > 0:
            chosen = [*self._placed(path), *chosen]
        found: list[Datapath] = []
        for each in chosen:
            moved, loss = descend(each, seen, lambda way: singles(way, precisions), best=True)
            if loss == 0:
                found += [twin for twin in self._twins(moved, seen) if equal.total(twin) == 0]
        return found

    def _placed(self, path: Datapath) -> list[Datapath]:
        """The datapath with its lanes where the device has them, found one by one."""
        places = Places(self.instruction, path, self.session.seed)
        if places.vectors is None:
            return []
        order = places.order(self.view.answers(places.vectors, lambda answers: np.zeros(len(answers), bool)))
        return [] if order is None else [replace(path, order=order)]


def _downhill(close: list[Scored], seen: Graded, precisions: Precisions) -> Iterator[tuple[Shape, Datapath]]:
    """The starts that get everything right on their way down: each some of the way, then the nearest to its end."""

    def further(path: Datapath, sweeps: int) -> Found:
        return descend(path, seen, lambda each: groups(each, precisions), sweeps, best=True)

    scored: list[Scored] = []
    for shape, start, before in close:
        if before > 0 and any(loss == 0 for *_, loss in scored):
            break
        scored.append((shape, *further(start, 1)))
    exact = [each[:2] for each in scored if each[2] == 0]
    yield from exact
    for shape, path, _ in [] if exact else sorted(scored, key=lambda each: each[2])[:CLOSEST]:
        found, loss = further(path, SWEEPS)
        if loss == 0:
            yield shape, found


def _best(close: list[Scored]) -> list[Scored]:
    """The first of each shape: the nearest, and the nearest of those with sums in sums, where more is to be fitted."""
    best: dict[int, Scored] = {}
    for each in close:
        best.setdefault(id(each[0]), each)
    found = list(best.values())
    nested = [each for each in found[NEAREST:] if any(handed for _, handed in roles.term_roles(each[1]))]
    return [*found[:NEAREST], *nested[:NESTED]]


def _fitted(start: Datapath, equal: Graded, rough: bool) -> tuple[Datapath, float]:
    """The numbers of one structure that are nearest, in few steps; ``rough``: one width for all terms."""
    terms = roles.term_roles(start)
    uncut = field_choices.may_be_uncut(start)
    if rough:
        ways = [[tied_widths(uncut)]] if terms else []
    elif terms:
        ways = [[tied_widths(uncut), tied_modes()], *([roles.widths(r, uncut), roles.modes(r)] for r in terms[:3])]
    else:
        ways = [[rounding(part)] for part in roles.parts_of(start) if part != "product"]
    return descend(start, equal, lambda path: [(path, way) for way in ways], 1)
