"""The search for structure: every way to add, held against plain vectors, first narrowly, then downhill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from math import inf

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.discriminate import eliminate, telling
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nested_trees import handed_on
from mmaprobe.derivation.hypotheses.structures import (
    Structure,
    fused_structures,
    grouped_structures,
    orders,
    rounded_structures,
    scaled_structures,
)
from mmaprobe.derivation.search import every_field
from mmaprobe.derivation.search.descent import race
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.loss import Budget, Graded
from mmaprobe.derivation.search.nested_sums import numbers_of
from mmaprobe.derivation.search.opening import Opening
from mmaprobe.derivation.search.own_numbers import Untied
from mmaprobe.derivation.search.polish import all_fields, polish
from mmaprobe.derivation.session import Mask, OutsideError, Session, View
from mmaprobe.derivation.survivors import Indices, Listed, Living, Space
from mmaprobe.derivation.vectors.large_products import adds_up, heavy_vectors
from mmaprobe.derivation.vectors.mixtures import plain
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.devices.base import vectors_per_tile
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Finding
from mmaprobe.models.grid import Grid
from mmaprobe.operands.batch import Batch, Bits, join
from mmaprobe.parameters.datapath import Datapath, Encode
from mmaprobe.parameters.rewrite import wider_formats

Left = tuple[Structure, Living]
NARROW = ("RZ", "RD", "RU", "RNE")
"""The roundings tried while one is said to serve all terms, and one all results."""
RESULTS = ("RZ", "RNE")
"""The roundings of results where an aligned sum, or a result in between, has one of its own."""
LEAST_CHECKED, MOST_CHECKED, TILES_CHECKED = 64, 4096, 16
"""So many plain vectors, those of some tiles within bounds, are asked although they tell no living hypotheses apart."""
SAMPLE = 8
"""So many hypotheses are held against them."""
FEW = 8
"""So many hypotheses of a structure that needs no other order of the lanes rival with every order."""
MOST_SHAPES, TURNS, MOST_TRIED = 6, 24, 3
"""So many sums in sums, the closest ones, are taken downhill, so many groups of fields each; so many are polished."""
EVALUATIONS = 2_000_000
"""Evaluations of a datapath on the way, about."""
ROUNDS = 16
"""Of vectors that tell structures apart: what is left then is told apart with all else known."""


class Skeletons:
    """The structures that an opening leaves: of all, or of those ``known`` to fit a tree that was read."""

    def __init__(self, session: Session, pools: Pools, opening: Opening, known: Sequence[Structure] = ()) -> None:
        self.session, self.pools, self.opening, self.known = session, pools, opening, known
        self.instruction = session.instruction

    def stages(self) -> Iterator[Iterator[Living]]:
        """Structures with one precision and one rounding for all terms, one for all results: sets that plain vectors
        leave, of sums rounded to the result's format and to the next wider one; of these last with the lanes in any
        order."""
        wider = wider_formats(self.instruction.d)[:1]
        later: list[list[Left]] = []
        between = (self._narrow(self._between(name), later) for name in wider)
        yield chain(self._narrow(self._shapes(NARROW)), *between)
        if not self.known:
            yield chain(*(self._sets(left, None) for left in later))

    def _narrow(
        self, spaces: Iterator[tuple[Structure, Space]], later: list[list[Left]] | None = None
    ) -> Iterator[Living]:
        """What is left with the lanes as they come, which other ways to take them then rival; then with all ways, or
        ``later``."""
        every = list(spaces)
        self.session.begin("structures", f"{sum(len(space.valid) for _, space in every)} hypotheses")
        left = [(shape, self._of(space).agreeing(*self.opening.uniform)) for shape, space in every]
        yield from self._sets(left, FEW)
        if later is not None:
            later.append(left)
        elif not self.known:
            yield from self._sets(left, None)

    def _sets(self, left: list[Left], most: int | None) -> Iterator[Living]:
        """What plain vectors leave of these; ``most``: none but what they leave with the lanes as they come, of which
        so many rival with other ways to take them."""
        view = self._plain()
        chosen = left if most is None else self._as_they_come(left, view)
        alive = self._checked(_joined(part for each in chosen for part in self._reordered(*each, most)), view)
        if len(alive):
            yield alive

    def _as_they_come(self, left: list[Left], view: View) -> list[Left]:
        """What plain vectors leave without another order of the lanes."""
        found = [(shape, view.living(living)) for shape, living in left]
        parts = [part for _, living in found for part in living.parts]
        alive = self._eliminated(parts, 1, view)
        kept = {id(space): indices for space, indices in alive.parts}
        return [
            (shape, replace(living, parts=tuple((s, kept[id(s)]) for s, _ in living.parts if id(s) in kept)))
            for shape, living in found
        ]

    def _checked(self, parts: list[tuple[Space, Indices]], view: View) -> Living:
        """What is left when no vector tells the hypotheses apart, and then of many vectors that nobody chose."""
        alive = self._eliminated(parts, 3, view)
        if not len(alive):
            return alive
        count = min(max(LEAST_CHECKED, TILES_CHECKED * vectors_per_tile(self.instruction)), MOST_CHECKED)
        vectors = self._vectors(self.session.seed + 77, count)
        table = alive.sample(np.random.default_rng(self.session.seed), SAMPLE).evaluate(vectors)

        def holds(answers: Bits) -> Mask:
            told = telling(np.concatenate([answers[None], table]), from_first=True)
            return np.isin(np.arange(len(answers)), told)

        view.ask(vectors, holds)
        return view.living(alive)

    def _plain(self) -> View:
        """Plain vectors, and what a search of structures asks for itself."""
        return View(self.session, partial(plain, self.instruction))

    def _of(self, space: Space) -> Living:
        return Living.of([space], self.session.allowance)

    def _vectors(self, seed: int, count: int) -> Batch:
        """Plain vectors; of products whose sums alone are rounded also large sums."""
        safe = self.pools.safe(seed, count)
        return join([safe, heavy_vectors(self.instruction, seed, count)]) if adds_up(self.instruction) else safe

    def _eliminated(self, parts: list[tuple[Space, Indices]], patience: int, view: View) -> Living:
        return eliminate(
            view,
            Living(tuple(parts), self.session.allowance),
            self._vectors,
            seed=self.session.seed,
            patience=patience,
            holds=partial(normal, self.instruction),
            rounds=ROUNDS,
        )

    def read_off(self, finding: Finding) -> Iterator[Datapath]:
        """Sums inside sums, where the summation tree that a probe found has some."""
        handed = handed_on(finding.answer, self.instruction.k, self.instruction.c is not None)
        if handed and finding.status in ("exact", "bounded"):
            self.session.check_stable()
            yield from numbers_of(self._plain(), self.pools, handed)

    def wide(self) -> Iterator[Datapath]:
        """Structures whose terms and results each have numbers of their own, the likeliest first."""
        self.session.check_stable()
        yield from self._wide(self._plain())

    def _wide(self, view: View) -> Iterator[Datapath]:
        """By graded answers first; sums in sums, whose fields hide one another, then by counts of wrong answers too."""
        k, has_c = self.instruction.k, self.instruction.c is not None
        every = self.known or [*self._fused(), *self._rounded(), *grouped_structures(k, has_c)]
        try:
            yield from Untied(view, self.pools, self.opening, every).run(bool(self.known))
        except OutsideError as error:
            closest = error.closest
        else:
            closest = None
        if not self.known:
            yield from self._nested(OutsideError("structures", closest), view)

    def _nested(self, failure: OutsideError, view: View) -> Iterator[Datapath]:
        """Sums in sums, the closest first; what comes in ``failure`` where none fits."""
        scored: list[tuple[float, int, Structure, Datapath]] = []
        seen = Graded.of(self.instruction, [self.opening.uniform], Budget(inf, self.session.allowance))
        for number, shape in enumerate(grouped_structures(self.instruction.k, self.instruction.c is not None)):
            space = self._grid(shape, self.opening.results[-1], RESULTS)
            found = seen.least(self._of(space))
            if found is not None:
                scored.append((found[1], number, shape, found[0]))
        best, tried = sorted(scored, key=lambda each: each[:2])[:MOST_SHAPES], 0
        seen = replace(seen, budget=Budget(EVALUATIONS, self.session.allowance))
        ways = race([start for *_, start in best], seen, partial(every_field.groups, plain=True), TURNS)
        every = (each for number, path in ways for each in self._ordered(best[number][2], path, view))
        for each in islice(_until_spent(every), MOST_TRIED):
            try:
                yield polish(view, each, self.pools.safe, all_fields(True), Budget(inf, self.session.allowance))
                tried += 1
            except OutsideError as error:
                failure = error
        if not tried:
            raise failure

    def _ordered(self, shape: Structure, path: Datapath, view: View) -> list[Datapath]:
        """The lane orders that fit best."""
        ways = self._orders(shape, True)
        found = [(view.mismatches(moved), moved) for moved in (replace(path, order=o) for o in ways)]
        found.sort(key=lambda each: each[0])
        return [moved for misses, moved in found[:2] if misses == found[0][0]]

    def _shapes(self, modes: tuple[str, ...]) -> Iterator[tuple[Structure, Space]]:
        """Every structure with every precision, these roundings of aligned sums and all others, lanes as they come."""
        for name in self.opening.results:
            for structure in self._rounded():
                every = [Encode(name, mode) for mode in formats.ROUNDINGS]
                yield structure, Listed([grammar.build(self.instruction, structure, to) for to in every])
            yield from ((shape, self._grid(shape, name, modes)) for shape in self._fused())

    def _between(self, name: str) -> Iterator[tuple[Structure, Space]]:
        """The same with sums rounded to another format, and a last conversion to the result; of those alone that the
        engine can hold."""
        d = self.instruction.d
        for structure in self._rounded():
            each = [(Encode(name, mode), Encode(d, last)) for mode in RESULTS for last in RESULTS]
            yield structure, Listed([grammar.build(self.instruction, structure, *to) for to in each])
        for shape in self._fused():
            try:
                yield shape, self._grid(shape, name, RESULTS, d)
            except UsageError:
                continue

    def _rounded(self) -> Iterator[Structure]:
        if self.known:
            yield from (each for each in self.known if not each.fused)
        else:
            yield from rounded_structures(self.instruction.k, self.instruction.c is not None)

    def _fused(self) -> Iterator[Structure]:
        if self.known:
            yield from (each for each in self.known if each.fused)
            return
        k, has_c, size = self.instruction.k, self.instruction.c is not None, self.instruction.scale_size
        yield from fused_structures(k, has_c)
        if size:
            yield from scaled_structures(k, has_c, size)

    def _grid(self, shape: Structure, name: str, modes: tuple[str, ...], d: str = "") -> Grid:
        """Every width, alignment and rounding of results; ``d``: of the last conversion apart from that of sums."""
        to = Encode(name, "RZ", "infinity", zero="positive", underflow="positive")
        base = field_choices.cut(
            grammar.build(self.instruction, shape, to, replace(to, format=d) if d else None), 8, "RZ"
        )
        uncut = field_choices.may_be_uncut(base)
        parts = ["inner", "root"] if shape.apart else ["sums"] if d else []
        results = [roles.encode_axis(part, rounding=modes) for part in (*parts, "result") if part != "result" or d]
        aligned = field_choices.alignment(NARROW if d else modes)
        return Grid(base, [field_choices.fraction_bits(uncut), aligned, *(results or [field_choices.rounding(modes)])])

    def _reordered(self, structure: Structure, living: Living, most: int | None) -> Iterator[tuple[Space, Indices]]:
        """The living hypotheses of one structure, and the first (``most`` of them) in every lane order."""
        ways = self._orders(structure, structure.fused)
        for space, indices in living.parts:
            for order in ways:
                if order is None:
                    yield space, indices
                elif isinstance(space, Grid):
                    yield space.moved(replace(space.base, order=order)), indices[:most]
                else:
                    found = Listed([replace(space.datapath(int(i)), order=order) for i in indices[:most]])
                    yield found, found.valid

    def _orders(self, structure: Structure, sums: bool) -> list[tuple[int, ...] | None]:
        """Ways to take the lanes; scale blocks stay whole where their sums are scaled."""
        k, step = self.instruction.k, structure.piece or structure.step
        if structure.placed:
            return [None]
        if not structure.scaled:
            return orders(k, step, sums)
        backwards = tuple(lane for start in range(k - step, -1, -step) for lane in range(start, start + step))
        return [None, backwards][: 1 + (step < k)]


def _joined(parts: Iterable[tuple[Space, Indices]]) -> list[tuple[Space, Indices]]:
    """The parts with all that are lists of datapaths as one: to evaluate many short lists takes long."""
    every = list(parts)
    listed = [space.datapath(int(i)) for space, indices in every if isinstance(space, Listed) for i in indices]
    joined = Listed(listed)
    return [*([(joined, joined.valid)] if listed else []), *(part for part in every if not isinstance(part[0], Listed))]


def _until_spent(every: Iterator[Datapath]) -> Iterator[Datapath]:
    """Those that come before the evaluations allowed are spent."""
    with suppress(OutsideError):
        yield from every
