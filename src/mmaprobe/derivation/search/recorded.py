"""The search of a recording: the same stages, in a session that was answered and that nobody answers any more.

Plain vectors rank the structures, in every usual order of the lanes, and take the nearest downhill; all finite ones
decide the ends of the range and the signs of zeros; all of them the rule of NaNs.  A stage without vectors leaves a
datapath as it is.  No vector can be asked that would tell apart what agrees, so every structure that does is taken to
the end, and what agrees around it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, product
from operator import attrgetter

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance, SpentError
from mmaprobe.derivation.hypotheses import grammar, roles
from mmaprobe.derivation.hypotheses.structures import Structure, orders
from mmaprobe.derivation.search import fields, skeletons
from mmaprobe.derivation.search.descent import Ways, around, descend
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.search.nan_order import nan_codes
from mmaprobe.derivation.search.single_terms import fit_alone
from mmaprobe.derivation.search.stages import ALIKE, BEST, KEPT, RANKED, Near, Search, unlike
from mmaprobe.derivation.session import Ended, Mask, Session, State
from mmaprobe.derivation.survivors import Living
from mmaprobe.devices.base import Support
from mmaprobe.errors import DeviceError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath, Fused, walk
from mmaprobe.parameters.diff import outline
from mmaprobe.parameters.rewrite import encodes, rounded_once
from mmaprobe.parameters.table import fields_said

UNITS = 420_000_000
"""Units of work of reading one recording: about a quarter of a minute."""
LEAST_PLAIN = 64
"""With fewer plain vectors than these, all finite ones decide the structure."""
FEW = 96
"""Vectors by which structures are ranked."""
ORDERS = 2
"""Orders of the lanes of a structure that are taken on, and all without loss."""
OTHER_ORDERS = 0.5
"""Of the allowance the part for other orders of the lanes than that in which they come."""
MOST = 48
"""Structures that agree and are taken to the end, at most; of more than these the structure stays open."""
AROUND = 5000
"""Datapaths that agree around those found, at most."""
AGREEING = (24, 216)
"""Vectors that all combinations of a group of fields meet, and those that are left."""
MANY = 128, 24
"""So many, at most, of those that agree with the first vectors go on to all of them: of one field's values, and of
several fields' together."""
SOME = 32, 12
"""So many, at most, of those that agree with all stand for all that do."""

LOSS = attrgetter("loss")


class Nobody:
    """The device of a recording, which answers nothing."""

    name = "a recording"

    def info(self) -> dict[str, str]:
        return {}

    def instructions(self) -> Sequence[Instruction]:
        return ()

    def supports(self, instruction: Instruction) -> Support:
        return Support(False, "only what was recorded is answered")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        raise DeviceError("only what was recorded is answered")


class Answered(Session):
    """A session with nothing to ask: everything was asked and answered before."""

    def __init__(self, instruction: Instruction, vectors: Batch, answers: Bits, seed: int) -> None:
        super().__init__(Nobody(), instruction, seed, allowance=Allowance(UNITS))
        self._record(vectors, answers, np.ones(len(answers), bool))

    def ask(self, vectors: Batch, holds: Callable[[Bits], Mask] | None = None) -> Bits:
        """No answers."""
        return self.asked()[1][:0]


class RecordedSearch(Search):
    """What recorded answers leave."""

    def __init__(self, instruction: Instruction, vectors: Batch, answers: Bits, seed: int) -> None:
        super().__init__(State(Answered(instruction, vectors, answers, seed)))
        self.codes = nan_codes(instruction, vectors, answers)
        self.all_structures = True
        """Whether every structure that agrees was taken to the end."""
        self.complete = True
        """Whether all that agrees around them was looked for as well."""
        self.looked: set[str] = set()
        """Trees of the datapaths all around which that was looked for."""
        self.sampled: list[tuple[Datapath, tuple[Datapath, ...]]] = []
        """Datapaths with those around them that agree and stand for more that do."""

    def every(self) -> list[Datapath] | Ended:
        """Every datapath found that agrees with all that was recorded, those that say least first; ``complete`` says
        whether all were looked for."""
        found: list[Datapath] = []
        ended = Ended("structures", None)
        with suppress(SpentError):
            path = self.run(None)
            while isinstance(path, Datapath):
                found += [path, *self.state.others]
                self.state.others = []
                path = self.next_structure()
            ended = path
        if found:
            self.all_structures &= isinstance(path, Ended)
            self.session.begin("what agrees around these")
            some = list(islice(self._around(found), AROUND))
            self.complete = self.all_structures and len(some) < AROUND and not self.session.allowance.spent.ended
            every = dict.fromkeys(self._rounded_once(path) for path in dict.fromkeys([*found, *some]))
            return sorted(every, key=_says)
        return ended if ended.closest else Ended(ended.stage, self.closest)

    def _rounded_once(self, path: Datapath) -> Datapath:
        """The datapath with one rounding instead of two where all answers are those of that as well."""
        vectors, answers = self.session.all.seen()
        once = rounded_once(path)
        agrees = (evaluate_many(once, vectors) == answers).all(axis=1) if once else ()
        return next((each for each, right in zip(once, agrees, strict=True) if right), path)

    def _structures(self) -> Iterator[Datapath]:
        """Every structure that agrees with the plain vectors, through the ends of the range; the nearest where none
        does."""
        self.session.begin("structures")
        seen = self._plain_recorded()
        near = self._nearest_structures(seen)
        if not near or near[0].loss:
            near = self._further(near, seen)
        self.nearest += near[:BEST]
        close = [self._tied(each, seen) for each in near if 0 < each.loss <= ALIKE]
        agreeing, one = unlike(each for each in [*near, *close] if not each.loss), False
        self.all_structures &= len(agreeing) <= MOST
        for each in agreeing[:MOST]:
            for path in self.finished(each.path):
                one = True
                yield path
        if not one:
            yield from self._taken_on(near)

    def _plain_recorded(self) -> Graded:
        vectors, answers = self.plain.seen()
        if len(answers) < LEAST_PLAIN:
            vectors, answers = self.finite.seen()
        made, allowance = self.instruction, self.session.allowance
        nothing = Graded.of(made, [(take(vectors, []), answers[:0])], allowance)
        self.alone = fit_alone(made, vectors, answers, nothing)
        return Graded.of(made, [(vectors, answers)], allowance)

    def _nearest_structures(self, seen: Graded) -> list[Near]:
        """The nearest of all structures, of those of aligned sums and of the others; in the result's own format where
        none does that rounds to the narrower one that all answers fit."""
        assert self.alone is not None
        few, near = seen.first(FEW), list[Near]()
        for name in self.alone.results:
            rough: dict[bool, list[Near]] = {True: [], False: []}
            every = skeletons.all_structures(self.instruction)
            for structure in every:
                rough[structure.fused] += self._ordered(structure, name, few, _ways(self.instruction, structure)[:1])
            whole, self.all_structures = self.all_structures, False
            with self.session.allowance.part(OTHER_ORDERS):
                for structure in every:
                    others = _ways(self.instruction, structure)[1:]
                    rough[structure.fused] += self._ordered(structure, name, few, others)
                self.all_structures = whole
            for some in rough.values():
                some.sort(key=LOSS)
                good = sum(each.loss == 0 for each in some)
                near += [self._simple(each, few, 1) for each in some[: max(RANKED, good)]]
            near.sort(key=LOSS)
            good = sum(each.loss <= ALIKE for each in near)
            near = sorted((self._simple(each, seen, 2) for each in near[: max(KEPT, good)]), key=LOSS)
            if near and not near[0].loss:
                break
        return near

    def _tied(self, near: Near, seen: Graded) -> Near:
        """Down again from all terms alike, in every width, rounding and label: few answers let the ways down end
        early."""
        if not roles.term_roles(near.path):
            return near
        start = descend(near.path, seen, fields.tied, 1, best=True)
        return self._simple(Near(*start, near.name), seen, 1)

    def _ordered(
        self, structure: Structure, result: str, few: Graded, ways: Sequence[tuple[int, ...] | None]
    ) -> list[Near]:
        """A structure with sums of this format, with the lanes in those of these orders that are nearest to few
        vectors."""
        assert self.alone is not None
        begin = skeletons.starts(self.instruction, [structure], self.alone, self.codes[0])
        mine = {path: name for path, name in begin.items() if encodes(replace(path, result=None))[-1].format == result}
        found = [
            self._rough(path if way is None else replace(path, order=way), name, few)
            for path, name in mine.items()
            for way in ways
        ]
        found.sort(key=LOSS)
        return found[: max(ORDERS, sum(each.loss == 0 for each in found))]

    def _around(self, found: Sequence[Datapath]) -> Iterator[Datapath]:
        """Datapaths that differ in one group of fields and agree as well, some of each group; first around those with
        the tree of what says least."""
        if self.alone is None:  # integers, all of whose hypotheses were held to everything
            self.looked.update(outline(path.tree) for path in found)
            return
        precisions, allowance = self.alone.precisions, self.session.allowance
        vectors, answers = self.session.all.seen()
        first = [(vectors.slice(i, j), answers[i:j]) for i, j in pairwise((0, *AGREEING))]
        ways: tuple[Ways, ...] = (fields.simple, fields.ends, partial(fields.odd, precisions=precisions))
        trees: dict[str, list[Datapath]] = {}
        for path in sorted(found, key=_says):
            trees.setdefault(outline(path.tree), []).append(path)
        with suppress(SpentError):
            for tree, alike in trees.items():
                for path, way in product(alike, ways):
                    for space in around(path, way):
                        near, together = Living.of([space], allowance), len(space.axes) > 1
                        for asked in first:
                            near = near.agreeing(*asked)
                        left = near.spread(MANY[together]).agreeing(vectors, answers)
                        some = list(left.spread(SOME[together]))
                        if len(near) > MANY[together] or len(left) > len(some):
                            self.sampled.append((path, tuple(some)))
                        yield from some
                self.looked.add(tree)

    def _simple(self, near: Near, seen: Graded, sweeps: int) -> Near:
        """Without what only vectors tell that were aimed at narrow results."""
        return Near(*descend(near.path, seen, partial(fields.simple, hidden=False), sweeps), near.name)

    def _simplest(self, path: Datapath, seen: Graded) -> Datapath:
        """As it was found: what says more may be right as well."""
        return path

    # --- what can only be asked

    def _ask_ends(self, path: Datapath) -> None:
        """Nothing is asked."""

    def _fresh(self, paths: Sequence[Datapath]) -> int:
        """No vector is fresh."""
        return 0

    def _nan_rules(self, path: Datapath) -> Living:
        """One code; where several were seen also simple rules that hand payloads on."""
        rules = dict.fromkeys(grammar.special_variants(path, self.codes))
        return self.session.all.living(self._several(rules))


def _ways(instruction: Instruction, structure: Structure) -> list[tuple[int, ...] | None]:
    """The usual orders of the lanes; scale blocks stay whole."""
    if structure.scaled or structure.placed:
        return [structure.order]
    return orders(instruction.k, structure.piece or structure.step, structure.fused)


def _says(path: Datapath) -> tuple[int, int]:
    """How much a datapath says: its fields, and the unlike rules of its terms."""
    return fields_said(path), len(_rules_of_terms(path))


def _rules_of_terms(path: Datapath) -> set[tuple[object, ...]]:
    """The unlike rules of the terms of aligned sums."""
    sums = [node for node in walk(path.tree) if isinstance(node, Fused)]
    return {(t.fraction_bits, t.rounding, t.zero_exponent, t.cutoff) for node in sums for t in node.terms}
