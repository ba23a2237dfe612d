"""The search for structure: every way to add, held against plain vectors, first narrowly, then downhill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mmaprobe import formats
from mmaprobe.derivation import axes
from mmaprobe.derivation import hypotheses as grammar
from mmaprobe.derivation.living import Indices, Listed, Living, Space
from mmaprobe.derivation.observations import eliminate
from mmaprobe.derivation.opening import Opening
from mmaprobe.derivation.polish import polish
from mmaprobe.derivation.pools import Pools
from mmaprobe.derivation.state import OutsideError, State
from mmaprobe.derivation.structures import (
    Structure,
    fused_structures,
    grouped_structures,
    orders,
    rounded_structures,
)
from mmaprobe.derivation.wide import race
from mmaprobe.models.grid import Grid
from mmaprobe.parameters.datapath import Datapath, Encode

NARROW = ("RZ", "RD", "RU", "RNE")
"""The roundings tried first, with all of them after."""
MOST_SHAPES, TURNS = 12, 24
"""So many structures, the closest ones, are taken downhill, so many groups of fields each."""


class Skeletons:
    """The structures that an opening leaves."""

    def __init__(self, state: State, pools: Pools, opening: Opening) -> None:
        self.state, self.pools, self.opening = state, pools, opening
        self.instruction = state.instruction

    def narrow(self) -> Living:
        """Structures with one precision and one rounding for all terms, one for all results; all lane orders."""
        alive = Living(())
        for modes in (NARROW, formats.ROUNDINGS):
            every = list(self._shapes(modes))
            self.state.say(f"structures: {sum(len(space.valid) for _, space in every)} hypotheses")
            left = [(shape, Living.of([space]).agreeing(*self.opening.uniform)) for shape, space in every]
            moved = [part for shape, living in left for part in self._reordered(shape, living)]
            alive = eliminate(
                self.state.observations, Living(tuple(moved)), self.pools.safe, seed=self.state.seed, patience=3
            )
            if len(alive):
                break
        return alive

    def wide(self) -> Iterator[Datapath]:
        """Structures whose terms and results each have numbers of their own, the closest first."""
        self.state.observations.check_stable()
        self.state.say("structures, each part on its own")
        scored: list[tuple[int, int, Structure, Datapath]] = []
        for number, (shape, space) in enumerate([*self._shapes(NARROW), *self._groups()]):
            closest, misses = Living.of([space]).closest(*self.opening.uniform, 1)
            if len(closest) and shape.fused:
                scored.append((int(misses.min()), number, shape, next(iter(closest))))
        scored.sort(key=lambda each: each[:2])
        best = scored[:MOST_SHAPES]
        far, tried = OutsideError("structures", best[0][3] if best else None), 0
        for number, path in race([start for *_, start in best], *self.opening.uniform, TURNS):
            for ordered in self._ordered(best[number][2], path):
                try:
                    yield polish(self.state, ordered, self.pools.safe, plain=True)
                    tried += 1
                except OutsideError as error:
                    far = error
        if not tried:
            raise far

    def _ordered(self, shape: Structure, path: Datapath) -> list[Datapath]:
        """The lane orders that fit best."""
        ways = orders(self.instruction.k, shape.piece or shape.step, True)
        found = [(self.state.observations.mismatches(moved), moved) for moved in (replace(path, order=o) for o in ways)]
        found.sort(key=lambda each: each[0])
        return [moved for misses, moved in found[:2] if misses == found[0][0]]

    def _shapes(self, modes: Iterable[str]) -> Iterator[tuple[Structure, Space]]:
        """Every structure with every precision and rounding, lanes as they come."""
        k, has_c = self.instruction.k, self.instruction.c is not None
        modes = tuple(modes)
        for name in self.opening.results:
            for structure in rounded_structures(k, has_c):
                each = [grammar.build(self.instruction, structure, Encode(name, mode)) for mode in modes]
                yield structure, Listed(each)
            yield from ((shape, self._grid(shape, name, modes)) for shape in fused_structures(k, has_c))

    def _groups(self) -> Iterator[tuple[Structure, Space]]:
        for shape in grouped_structures(self.instruction.k, self.instruction.c is not None):
            yield shape, self._grid(shape, self.opening.results[-1], ("RZ", "RNE"))

    def _grid(self, shape: Structure, name: str, modes: tuple[str, ...]) -> Grid:
        to = Encode(name, "RZ", "infinity", zero="positive", underflow="positive")
        base = axes.cut(grammar.build(self.instruction, shape, to), 8, "RZ")
        uncut = axes.may_be_uncut(base)
        return Grid(base, [axes.fraction_bits(uncut), axes.alignment(modes), axes.rounding(modes)])

    def _reordered(self, structure: Structure, living: Living) -> Iterator[tuple[Space, Indices]]:
        """The living hypotheses of one structure with the lanes taken in every way."""
        for space, indices in living.parts:
            for order in orders(self.instruction.k, structure.piece or structure.step, structure.fused):
                if order is None:
                    yield space, indices
                elif isinstance(space, Grid):
                    yield space.moved(replace(space.base, order=order)), indices
                else:
                    found = Listed([replace(space.datapath(int(i)), order=order) for i in indices])
                    yield found, found.valid
