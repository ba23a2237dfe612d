"""The search: structure and numbers first, then zero exponents, the ends of the range and special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation import axes
from mmaprobe.derivation import hypotheses as grammar
from mmaprobe.derivation.living import Listed, Living, Space, several
from mmaprobe.derivation.observations import Pool, eliminate
from mmaprobe.derivation.opening import Opening, open_up
from mmaprobe.derivation.polish import polish
from mmaprobe.derivation.pool import nan_operands
from mmaprobe.derivation.pools import Pools
from mmaprobe.derivation.rewrite import spellings, with_rules
from mmaprobe.derivation.skeletons import Skeletons
from mmaprobe.derivation.state import OutsideError, State
from mmaprobe.models.grid import Grid
from mmaprobe.parameters.datapath import Datapath, Special

MOST_STRUCTURES = 8
"""Of the structures that plain vectors leave alive so many, unlike at the ends of the range, are refined."""
MOST_RIVALS = 2000


class Search:
    """Stage after stage, each a set of hypotheses that the device's answers thin out."""

    opening: Opening

    def __init__(self, state: State) -> None:
        self.state = state
        self.instruction = state.instruction
        self.pools = Pools(state.instruction)
        self.alive = Living(())
        self.untried: Iterator[Datapath] = iter(())

    def run(self, start: Datapath | None) -> Datapath:
        """Through the stages to the simplest datapath that agrees with everything asked."""
        if not formats.get(self.instruction.d).is_float:
            pool = self.pools.hard("uniform", "extremes", "specials")
            alive = self._stage("integer sums", several(grammar.integer_hypotheses(self.instruction)), pool)
            return self.state.choose(alive)
        if start is not None:
            variants = several(list(grammar.control_variants(start)))
            alive = self._try("a known relative", variants, self.pools.whole, 2)
            if len(alive):
                self.state.relative_of = start
                return self.state.choose(alive)
        self.opening = open_up(self.state, self.pools)
        self.untried = self._structures(Skeletons(self.state, self.pools, self.opening))
        return self.next_structure(Special("canonical", self.opening.codes[0]))

    def next_structure(self, special: Special) -> Datapath:
        """The first of the structures not tried yet that can be refined; a repair comes back for the rest, after the
        datapath believed so far was taken downhill."""
        failure = OutsideError("structures", None)
        if self.state.believed is not None:
            try:
                return self.state.choose(several([self._mended(self.state.believed)]))
            except OutsideError as error:
                failure = error
        for datapath in self.untried:
            try:
                return self.state.choose(self._rivalled(self._refine(replace(datapath, special=special))))
            except OutsideError as error:
                failure = error
        raise failure

    def _mended(self, datapath: Datapath) -> Datapath:
        return polish(self.state, datapath, self.pools.finite, plain=False)

    def _structures(self, skeletons: Skeletons) -> Iterator[Datapath]:
        """Those that plain vectors leave, set by set; at last those with numbers of their own for each part."""
        for self.alive in skeletons.narrow():
            yield from self._unlike(self.alive)
        self.alive = Living(())
        yield from skeletons.wide()

    def _unlike(self, alive: Living) -> Iterator[Datapath]:
        """A few hypotheses that differ at the ends of the range, the simplest of each kind."""
        some = alive.sample(np.random.default_rng(self.state.seed), MOST_RIVALS)
        return iter(self._classes(some).first(MOST_STRUCTURES))

    def _classes(self, alive: Living) -> Living:
        """The first hypothesis of each class that vectors at the ends of the range can tell apart."""
        _, first = np.unique(alive.evaluate(self.pools.range(self.state.seed + 3, 64)), axis=0, return_index=True)
        mask = np.zeros(len(alive), bool)
        mask[first] = True
        return alive.kept(mask)

    # --- all but the structure

    def _refine(self, datapath: Datapath) -> Living:
        """Zero exponents, the ends of the range, special values; every field on its own where tied ones fail."""
        before = self.state.observations.count
        try:
            return self._specials(self._tied(datapath))
        except OutsideError as error:
            closest = error.closest or datapath
            self.state.observations.keep(lambda vectors: ~nan_operands(self.instruction, vectors))
        try:
            return self._specials(several([self._mended(closest)]))
        except OutsideError:
            self.state.observations.forget(before)
            raise

    def _specials(self, alive: Living) -> Living:
        self.state.observations.remember(*self.opening.special)
        return self._vary("special values", alive, self._special_space, self.pools.special)

    def _tied(self, datapath: Datapath) -> Living:
        """One zero exponent for all terms, one policy for all results."""
        if not grammar.has_fused(datapath):
            self.state.observations.remember(*self.opening.ends)
            return self._range(datapath, [None])
        zeros = [axes.zero_of(path) for path in self._classes(self._zeros(datapath, self.pools.zeroed))]
        self.state.observations.remember(*self.opening.ends)
        some = self._range(datapath, zeros[:1], zeros).first(MOST_STRUCTURES)
        for number, each in enumerate(some):
            try:
                found = self._zeros(each, self.pools.low)
            except OutsideError:
                continue
            self.state.others = [*some[number + 1 :], *self.state.others]
            return found
        raise OutsideError("the zero exponent", some[0])

    def _zeros(self, datapath: Datapath, pool: Pool) -> Living:
        grid = Grid(datapath, [axes.zero_exponent(axes.zero_exponents(datapath))])
        return self._stage("the zero exponent", Living.of([grid]), pool)

    def _range(self, datapath: Datapath, *zeros: list[int | None]) -> Living:
        """Flushing, signs of zeros and overflow, with the first of the lists of zero exponents that leaves any."""
        rules = [axes.flush(), axes.zero_sign(), axes.underflow_sign(), axes.overflow()]
        operands = [axes.operand(name) for name in ("a", "b", "c") if name != "c" or datapath.c is not None]
        for values in zeros:
            fused = [axes.zero_exponent(values)] if grammar.has_fused(datapath) else []
            grid = Living.of([Grid(datapath, [*rules, *operands, *fused])])
            alive = self._try("the ends of the range", grid, self.pools.range)
            if len(alive):
                return alive
        raise OutsideError("the ends of the range", self._closest(grid))

    def _special_space(self, datapath: Datapath) -> Space:
        return Listed(list(dict.fromkeys(grammar.special_variants(datapath, self.opening.codes))))

    def _rivalled(self, found: Living) -> Living:
        """The hypotheses found and every structure left, by the same rules, until no vector tells them apart."""
        first = next(iter(found))
        some = self.alive.sample(np.random.default_rng(self.state.seed), MOST_RIVALS)
        rivals = several([first, *spellings(first), *(with_rules(path, first) for path in some)])
        return self._try("structures left", Living((*found.parts, *rivals.parts)), self.pools.whole, 2)

    def _try(self, stage: str, hypotheses: Living, pool: Pool, patience: int = 1) -> Living:
        self.state.say(f"{stage}: {len(hypotheses)} hypotheses")
        return eliminate(self.state.observations, hypotheses, pool, seed=self.state.seed, patience=patience)

    def _stage(self, stage: str, hypotheses: Living, pool: Pool) -> Living:
        alive = self._try(stage, hypotheses, pool)
        if not len(alive):
            raise OutsideError(stage, self._closest(hypotheses))
        return alive

    def _closest(self, hypotheses: Living) -> Datapath | None:
        """The hypothesis with the fewest wrong answers."""
        closest, _ = hypotheses.closest(*self.state.observations.everything(), 1)
        return next(iter(closest), None)

    def _vary(self, stage: str, alive: Living, space: Callable[[Datapath], Space], pool: Pool) -> Living:
        """The variants of the first hypothesis that has living ones; the other hypotheses are kept for a repair."""
        some = alive.first(MOST_STRUCTURES)
        for number, datapath in enumerate(some):
            found = self._try(stage, Living.of([space(datapath)]), pool)
            if len(found):
                self.state.others = [*some[number + 1 :], *self.state.others]
                return found
        raise OutsideError(stage, some[0])
