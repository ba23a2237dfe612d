"""The search: structure and numbers first, then zero exponents, the ends of the range and special values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.discriminate import Pool, eliminate
from mmaprobe.derivation.hypotheses import field_choices
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nan_rules import preferred, rules_of_order
from mmaprobe.derivation.hypotheses.read_trees import read
from mmaprobe.derivation.hypotheses.structures import Structure
from mmaprobe.derivation.hypotheses.tree_structures import structures_of
from mmaprobe.derivation.search.eliminate import sharpened
from mmaprobe.derivation.search.loss import Budget, Graded
from mmaprobe.derivation.search.nan_order import NanOrder
from mmaprobe.derivation.search.opening import Opening, nan_codes, open_up
from mmaprobe.derivation.search.polish import all_fields, polish
from mmaprobe.derivation.search.range_ends import Ends
from mmaprobe.derivation.search.staged import Staged
from mmaprobe.derivation.search.structures import Skeletons
from mmaprobe.derivation.session import ContradictedError, Mask, OutsideError, State, View
from mmaprobe.derivation.survivors import Listed, Living, Space, several
from mmaprobe.derivation.vectors.mixtures import nan_operands, plain
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.grid import Grid
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath, Special
from mmaprobe.parameters.rewrite import converted_last, spellings, with_rules, zero_exponent_of

MOST_STRUCTURES = 8
"""Of the structures that plain vectors leave alive so many, unlike at the ends of the range, are refined."""
MOST_SPELLED = 2
"""So many of them are refined in other spellings too."""
MOST_RIVALS, MOST_RULED = 4000, 8000


class Search:
    """Stage after stage, each a set of hypotheses that the device's answers thin out."""

    opening: Opening

    def __init__(self, state: State) -> None:
        self.state, self.session = state, state.session
        self.instruction = state.instruction
        self.finite = View(state.session, self._is_finite)
        self.pools = Pools(state.instruction)
        self.alive = self._of()
        self.untried: Iterator[tuple[Datapath | None, bool]] = iter(())
        self.failed: list[Datapath] = []
        self.places: dict[str, int] | None = None

    def run(self, start: Datapath | None) -> Datapath:
        """Through the stages to the simplest datapath that agrees with everything asked."""
        if not formats.get(self.instruction.d).is_float:
            pool = self.pools.hard("uniform", "extremes", "specials")
            alive = self._stage("integer sums", self._several(grammar.integer_hypotheses(self.instruction)), pool)
            return self.state.choose(alive)
        if start is not None:
            variants = self._several(grammar.control_variants(start))
            alive = self._try("a known relative", variants, self.pools.whole, 2)
            if len(alive):
                self.state.relative_of = start
                return self.state.choose(alive)
        self.opening = open_up(self.state, self.pools)
        self.staged = Staged(self.state, self.pools)
        self.paths = self.staged.run()
        return self.next_structure(Special("canonical", self.opening.codes[0]))

    def mended(self, path: Datapath) -> Datapath | None:
        """The datapath brought back to all answers; None where no way leads there."""
        for found in self.staged.finished(path):
            try:
                return self.state.choose(self._specials(self._several([found])))
            except OutsideError:
                continue
        return None

    def next_structure(self, special: Special) -> Datapath:
        """The first of the ways not tried yet that leads to a datapath; a repair comes back for the rest, after the
        structures left were tried by the rules of the datapath believed so far."""
        failure = OutsideError("structures", None)
        for path in self.paths:
            try:
                return self.state.choose(self._specials(self._several([replace(path, special=special)])))
            except OutsideError as error:
                failure = error
                self.failed += [] if error.closest is None else [error.closest]
        raise failure

    @property
    def closest(self) -> Datapath | None:
        """The datapath believed; where there is none, that of those refuted with the fewest wrong answers."""
        if self.state.believed is not None:
            return self.state.believed
        if not self.failed:
            return None
        vectors, answers = self.session.all.seen()
        return self.failed[int((evaluate_many(self.failed, vectors) != answers).sum(axis=1).argmin())]

    def left(self, most: int) -> tuple[Datapath, ...]:
        """The first of the hypotheses at hand that agree with every plain vector asked."""
        vectors, answers = self.session.all.seen()
        mask = np.flatnonzero(plain(self.instruction, vectors, answers))
        some = several(list(dict.fromkeys([*self.state.others, *self.alive.first(MOST_RIVALS)])), Allowance(None))
        return tuple(some.agreeing(take(vectors, mask), answers[mask]).first(most))

    def _ways(self) -> Iterator[tuple[Datapath | None, bool]]:
        """Datapaths to refine, and whether with every field on its own: of the structures that have the summation tree
        a probe reads, sums inside sums with their numbers read off, then of all."""
        finding = read(self.state)
        if finding.status == "contradictory":
            raise ContradictedError(f"{finding.question}: {finding.text}")
        known = list(structures_of(finding.answer, self.instruction.k, self.instruction.scale_size))
        every = self._skeletons(())
        if known:
            yield from self._narrow_ways(self._skeletons(known))
        yield from ((path, mend) for path in every.read_off(finding) for mend in (True, False))
        if known:
            yield from self._wide_ways(self._skeletons(known))
        yield from self._narrow_ways(every)
        yield from self._wide_ways(every)

    def _skeletons(self, known: Sequence[Structure]) -> Skeletons:
        return Skeletons(self.session, self.pools, self.opening, known)

    def _narrow_ways(self, skeletons: Skeletons) -> Iterator[tuple[Datapath | None, bool]]:
        """Structure by structure first with tied fields, set after set (None: the whole set by the rules believed so
        far), then what was refuted or failed, the closest first."""
        for sets in skeletons.stages():
            for self.alive in filter(len, (sharpened(self.state, left) for left in sets)):
                yield None, False
                yield from ((path, False) for path in self._unlike(self.alive))
            self.alive = self._of()
            believed = [] if self.state.believed is None else [self.state.believed]
            failed = sorted(dict.fromkeys(self.failed), key=self.finite.mismatches)
            self.failed = []
            yield from ((path, True) for path in (*believed, *failed))

    def _wide_ways(self, skeletons: Skeletons) -> Iterator[tuple[Datapath | None, bool]]:
        """Parts with numbers of their own."""
        for path in skeletons.wide():
            yield from ((path, mend) for mend in (False, True))

    def _ruled(self) -> Living:
        """The structures left, by the rules of the datapath believed so far, that agree with everything asked."""
        of = self.state.believed
        if of is None or not len(self.alive):
            raise OutsideError("structures", of)
        some = list(self.alive.sample(np.random.default_rng(self.state.seed), MOST_RULED))
        more = [other for path in some[:MOST_STRUCTURES] for other in spellings(path)]
        return self._try(
            "structures left", self._several(with_rules(path, of) for path in (*some, *more)), self.pools.whole, 2
        )

    def _unlike(self, alive: Living) -> Iterator[Datapath]:
        """A few hypotheses that differ at the ends of the range, the simplest of each kind, and other spellings."""
        some = alive.sample(np.random.default_rng(self.state.seed), MOST_RIVALS)
        first = self._classes(some).first(MOST_STRUCTURES)
        yield from first
        if self.state.believed is None:
            yield from dict.fromkeys(other for path in first[:MOST_SPELLED] for other in spellings(path))

    def _classes(self, alive: Living) -> Living:
        """The first hypothesis of each class that vectors at the ends of the range can tell apart."""
        _, first = np.unique(alive.evaluate(self.pools.range(self.state.seed + 3, 64)), axis=0, return_index=True)
        mask = np.zeros(len(alive), bool)
        mask[first] = True
        return alive.kept(mask)

    # --- all but the structure

    def _refine(self, datapath: Datapath, mend: bool) -> Living:
        """Zero exponents, the ends of the range, special values; ``mend``: every field on its own, not tied ones."""
        try:
            return self._specials(self._mended(datapath) if mend else self._tied(datapath))
        except UsageError:  # the engine cannot hold all of its variants
            raise OutsideError("what the engine can hold", datapath) from None

    def _mended(self, datapath: Datapath) -> Living:
        """The ends of the range part by part; where they do not fit, every field of the datapath."""
        for path in (datapath, *converted_last(datapath)):
            found = self._apart(path)
            if found is not None:
                return found
        budget = Budget(inf, self.session.allowance)
        return self._several([polish(self.finite, datapath, self.pools.finite, all_fields(False), budget)])

    def _plain(self) -> View:
        """Plain vectors, and what is asked on behalf of this view: no end of a range counts that was asked before."""
        return View(self.session, partial(plain, self.instruction))

    def _is_finite(self, vectors: Batch, answers: Bits) -> Mask:
        found: Mask = formats.decode(formats.get(self.instruction.d), answers).kind != formats.NAN
        return found & ~nan_operands(self.instruction, vectors)

    def _apart(self, datapath: Datapath) -> Living | None:
        """The ends of the range part by part, structure and numbers as they are; None where they do not fit."""
        try:
            return Ends(self._plain(), self.pools, datapath).found(self.opening.ends_at)
        except (OutsideError, UsageError) as error:
            self.session.say(f"not so: {error}")
            return None

    def _specials(self, alive: Living) -> Living:
        """The rules of NaNs: one code; a simple order, which is confirmed; any order, which is read off."""
        for _ in range(2):  # a NaN of an invalid operation may only be seen on the way
            codes = nan_codes(self.instruction, *self.session.all.seen())
            try:
                return self._nan_rules(alive, codes)
            except OutsideError as error:
                failure = error
        raise failure

    def _nan_rules(self, alive: Living, codes: list[int]) -> Living:
        some = alive.first(MOST_STRUCTURES)
        one = [replace(path, special=Special("canonical", code)) for path in some for code in codes]
        found = self._try("special values", self._several(one), self.pools.special)
        if len(found):
            return found
        if self.places is None:
            vectors, answers = self.session.all.seen()
            nans = np.flatnonzero(formats.decode(formats.get(self.instruction.d), answers).kind == formats.NAN)
            simple = self._several(grammar.simple_rules(some[0], codes)).agreeing(take(vectors, nans), answers[nans])
            guess = next(map(preferred, simple), None)
            self.places = NanOrder(self.session, some[0]).places(guess)
        return self._vary("the order of NaNs", alive, self._ordered_space(codes, self.places), self.pools.special)

    def _tied(self, datapath: Datapath) -> Living:
        """One zero exponent for all terms, one policy for all results."""
        plainly = self._plain()
        view = plainly.with_these(self.opening.ends_at)
        if not grammar.has_fused(datapath):
            return self._range(view, datapath, [None])
        classes = self._classes(self._zeros(plainly, datapath, self.pools.zeroed))
        zeros = [zero_exponent_of(path) for path in classes]
        some = self._range(view, datapath, zeros[:1], zeros).first(MOST_STRUCTURES)
        for number, each in enumerate(some):
            try:
                found = self._zeros(view, each, self.pools.low)
            except OutsideError:
                continue
            self.state.others = [*some[number + 1 :], *self.state.others]
            return found
        raise OutsideError("the zero exponent", some[0])

    def _zeros(self, view: View, datapath: Datapath, pool: Pool) -> Living:
        grid = Grid(datapath, [field_choices.zero_exponent(field_choices.zero_exponents(datapath))])
        return self._stage("the zero exponent", self._of(grid), pool, view)

    def _range(self, view: View, datapath: Datapath, *zeros: list[int | None]) -> Living:
        """Flushing, signs of zeros and overflow, with the first of the lists of zero exponents that leaves any."""
        rules = [
            field_choices.flush(),
            field_choices.zero_sign(),
            field_choices.underflow_sign(),
            field_choices.overflow(),
        ]
        operands = [field_choices.operand(name) for name in ("a", "b", "c") if name != "c" or datapath.c is not None]
        for values in zeros:
            fused = [field_choices.zero_exponent(values)] if grammar.has_fused(datapath) else []
            grid = self._of(Grid(datapath, [*rules, *operands, *fused]))
            alive = self._try("the ends of the range", grid, self.pools.range, view=view)
            if len(alive):
                return alive
        raise OutsideError("the ends of the range", self._closest(grid, view))

    def _ordered_space(self, codes: list[int], places: dict[str, int]) -> Callable[[Datapath], Space]:
        return lambda datapath: Listed(list(dict.fromkeys(rules_of_order(datapath, places, codes))))

    def _of(self, *spaces: Space) -> Living:
        return Living.of(spaces, self.state.allowance)

    def _several(self, datapaths: Iterable[Datapath]) -> Living:
        return several(list(datapaths), self.state.allowance)

    def _rivalled(self, found: Living) -> Living:
        """The hypotheses found and every structure left, by the same rules, until no vector tells them apart."""
        first = next(iter(found))
        some = self.alive.sample(np.random.default_rng(self.state.seed), MOST_RIVALS)
        rivals = self._several([first, *spellings(first), *(with_rules(path, first) for path in some)])
        return self._try("structures left", replace(found, parts=(*found.parts, *rivals.parts)), self.pools.whole, 2)

    def _try(self, stage: str, hypotheses: Living, pool: Pool, patience: int = 1, view: View | None = None) -> Living:
        self.session.begin(stage, f"{len(hypotheses)} hypotheses")
        return eliminate(view or self.session.all, hypotheses, pool, seed=self.session.seed, patience=patience)

    def _stage(self, stage: str, hypotheses: Living, pool: Pool, view: View | None = None) -> Living:
        alive = self._try(stage, hypotheses, pool, view=view)
        if not len(alive):
            raise OutsideError(stage, self._closest(hypotheses, view or self.session.all))
        return alive

    def _closest(self, hypotheses: Living, view: View) -> Datapath | None:
        """The hypothesis nearest to the answers of a view."""
        budget = Budget(inf, self.state.allowance)
        found = Graded.of(self.instruction, [view.seen()], budget, every=True).least(hypotheses)
        return found and found[0]

    def _vary(self, stage: str, alive: Living, space: Callable[[Datapath], Space], pool: Pool) -> Living:
        """The variants of the first hypothesis that has living ones; the other hypotheses are kept for a repair."""
        some = alive.first(MOST_STRUCTURES)
        for number, datapath in enumerate(some):
            found = self._try(stage, self._of(space(datapath)), pool)
            if len(found):
                self.state.others = [*some[number + 1 :], *self.state.others]
                return found
        raise OutsideError(stage, some[0])
