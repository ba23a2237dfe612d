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
from mmaprobe.derivation.discriminate import eliminate
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nested_trees import Handed
from mmaprobe.derivation.search.descent import descend
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.loss import Axis, Budget, Graded, grid_of
from mmaprobe.derivation.search.numbers import groups, numbered_cuts, rounding
from mmaprobe.derivation.search.polish import own_numbers, polish
from mmaprobe.derivation.search.single_terms import held
from mmaprobe.derivation.session import OutsideError, View
from mmaprobe.derivation.survivors import Living
from mmaprobe.derivation.vectors.groups import Aimed
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.operands.batch import Batch, join
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

    def __init__(self, view: View, pools: Pools, handed: Handed) -> None:
        self.view, self.session, self.pools, self.handed = view, view.session, pools, handed
        self.instruction = view.session.instruction
        self.aimed = Aimed(self.instruction, handed)
        self.budget = Budget(EVALUATIONS, view.session.allowance)

    def found(self) -> Datapath:
        """The datapath whose numbers agree with all plain answers; OutsideError where none does."""
        self.session.begin("numbers of the sums inside")
        seen = self._ask()
        path = self._start()
        for _ in range(SWEEPS):
            before = path
            for kind, group in self._stages(path):
                if kind in seen:
                    path, _ = descend(path, seen[kind], lambda each, fields=group: [(each, fields)], 1)  # type: ignore[misc]
            if path == before:
                break
        return polish(self.view, self._told(path), self._pool, own_numbers(()), self.budget)

    def _told(self, path: Datapath) -> Datapath:
        """Downhill to all answers; then what hides behind another number, told apart together: from where C is
        dropped, and how the sum of the products and the result are cut."""
        everything = Graded.of(self.instruction, [self.view.seen()], self.budget)
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
        rivals = Living.of([grid for group in ways if (grid := grid_of(path, group))], self.session.allowance)
        self.session.begin("numbers that hide one another", f"{len(rivals)} hypotheses")
        holds = partial(normal, self.instruction)
        pool = partial(self.aimed.vectors, kind) if kind in self.aimed.kinds else self.pools.safe
        alive = eliminate(self.view, rivals, pool, seed=self.session.seed, patience=3, holds=holds)
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
        made = [self.aimed.vectors(kind, self.session.seed, EACH) for kind in kinds]
        answers = self.view.answers(join(made), partial(normal, self.instruction))
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


def numbers_of(view: View, pools: Pools, every: list[Handed]) -> Iterator[Datapath]:
    """``Numbers.found`` of each of these structures that fits."""
    for handed in every:
        with suppress(OutsideError):
            yield Numbers(view, pools, handed).found()
