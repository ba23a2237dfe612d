"""Numbers of a sum that hands its sums on, once its groups are read off.

Two products of one group that cancel leave the units beside them as the group's own cut leaves them; units in another
group show the cut of the group's sum, C that of C; what little is added to a large C shows how the sum of the products
is cut and the result rounded.  Each is fitted by the vectors on which it shows alone, then all to all answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nested_trees import Handed
from mmaprobe.derivation.observations import eliminate
from mmaprobe.derivation.search.descent import descend
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.loss import Axis, Budget, Graded, grid_of
from mmaprobe.derivation.search.numbers import groups, numbered_cuts, rounding
from mmaprobe.derivation.search.polish import own_numbers, polish
from mmaprobe.derivation.search.single_terms import held
from mmaprobe.derivation.session import OutsideError, State
from mmaprobe.derivation.survivors import Living
from mmaprobe.derivation.vectors.groups import Aimed
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.operands.batch import Batch, join, take
from mmaprobe.parameters.datapath import Datapath, Encode

EACH = 96
"""Vectors of each kind."""
FAR = ("sum", "tie", "round")
"""The kinds that show together how the sum of the products is cut and the result rounded."""
EVALUATIONS = 10_000_000
PAST = 12
"""So many places below the result's last one its sum may be cut first."""


SWEEPS = 3
C = ("acc", False)


class Numbers:
    """The numbers of a structure whose groups are known."""

    def __init__(self, state: State, pools: Pools, handed: Handed) -> None:
        self.state, self.pools, self.handed = state, pools, handed
        self.instruction = state.instruction
        self.aimed = Aimed(state.instruction, handed)
        self.budget = Budget(EVALUATIONS, state.allowance)

    def found(self) -> Datapath:
        """The datapath whose numbers agree with all plain answers; OutsideError where none does."""
        self.state.begin("numbers of the sums inside")
        seen = self._ask()
        path = self._start()
        for _ in range(SWEEPS):
            before = path
            for kind, group in self._stages(path):
                if kind in seen:
                    path, _ = descend(path, seen[kind], lambda each, fields=group: [(each, fields)], 1)  # type: ignore[misc]
            if path == before:
                break
        return polish(self.state, self._told(path), self._pool, own_numbers(()), self.budget)

    def _told(self, path: Datapath) -> Datapath:
        """Downhill to all answers; then what hides behind another number, told apart together: from where C is
        dropped, and how the sum of the products and the result are cut."""
        everything = Graded.of(self.instruction, [self.state.observations.everything()], self.budget)
        path, loss = descend(path, everything, lambda each: groups(each, ()), best=True)
        if loss:
            raise OutsideError("numbers of the sums inside", path)
        hiding = {
            "c": [[roles.cutoffs(C), roles.widths(C, field_choices.may_be_uncut(path))]],
            "tie": [*self._last_cuts(path)],
        }
        for kind, ways in hiding.items():
            path = self._told_apart(path, ways, kind)
        return path

    def _told_apart(self, path: Datapath, ways: list[list[Axis]], kind: str) -> Datapath:
        """The first of these combinations that the vectors of this kind leave."""
        rivals = Living.of([grid for group in ways if (grid := grid_of(path, group))], self.state.allowance)
        self.state.begin("numbers that hide one another", f"{len(rivals)} hypotheses")
        which = partial(normal, self.instruction)
        pool = partial(self.aimed.vectors, kind) if kind in self.aimed.kinds else self.pools.safe
        alive = eliminate(self.state.observations, rivals, pool, seed=self.state.seed, patience=3, which=which)
        return next(iter(alive), path)

    def _pool(self, seed: int, count: int) -> Batch:
        kinds = self.aimed.kinds
        each = max(1, count // len(kinds))
        return join([self.pools.safe(seed, count), *(self.aimed.vectors(kind, seed, each) for kind in kinds)])

    def _start(self) -> Datapath:
        structure = self.handed.structure
        to = Encode(self.instruction.d, "RNE", zero="positive")
        path = replace(grammar.build(self.instruction, structure, to), order=structure.order)
        return held(path)

    def _ask(self) -> dict[str, Graded]:
        """One launch of every kind; hypotheses are held to the normal answers."""
        kinds = self.aimed.kinds
        made = [self.aimed.vectors(kind, self.state.seed, EACH) for kind in kinds]
        vectors = join(made)
        answers = self.state.observations.peek(vectors)
        good = np.flatnonzero(normal(self.instruction, answers))
        self.state.observations.remember(take(vectors, good), answers[good])
        parts = list(zip(kinds, made, np.split(answers, len(made)), strict=True))
        far = [each for each in parts if each[0] in FAR]
        return {
            name: Graded.of(self.instruction, [(each, part) for _, each, part in several], self.budget)
            for name, several in (("far", far), *((each[0], [each]) for each in parts if each not in far))
            if several
        }

    def _stages(self, path: Datapath) -> Iterator[tuple[str, list[Axis]]]:
        """What each kind of vectors is fitted by."""
        uncut = field_choices.may_be_uncut(path)

        def term(part: str, inside: bool) -> list[Axis]:
            return [roles.widths((part, inside), uncut), roles.modes((part, inside))]

        yield "own", term("products", True)
        if len(self.handed.groups) > 1:
            yield "beside", term("group", self.handed.nested)
        yield "c", term("acc", False)
        yield "c", [roles.cutoffs(("acc", False)), *term("acc", False)]
        yield "far", term("group", False)
        yield from (("far", group) for group in self._last_cuts(path))
        yield "far", [rounding("root")]

    def _last_cuts(self, path: Datapath) -> Iterator[list[Axis]]:
        """Cuts of the sum of the products beside first cuts of the result."""
        widths = roles.widths(("group", False), field_choices.may_be_uncut(path))
        last = formats.get(self.instruction.d).fraction_bits + PAST
        for mode in formats.ROUNDINGS:
            yield [numbered_cuts("root", mode, last), widths]


def numbers_of(state: State, pools: Pools, every: list[Handed]) -> Iterator[Datapath]:
    """``Numbers.found`` of each of these structures that fits."""
    for handed in every:
        with suppress(OutsideError):
            yield Numbers(state, pools, handed).found()
