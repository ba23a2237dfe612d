"""The search: structure and numbers first, then the ends of the range, zero exponents and special values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.derivation import hypotheses as grammar
from mmaprobe.derivation.found import found_structures
from mmaprobe.derivation.hints import read_hints
from mmaprobe.derivation.hypotheses import Hints
from mmaprobe.derivation.observations import Pool, eliminate
from mmaprobe.derivation.pool import nan_operands, safe_vectors
from mmaprobe.derivation.pools import Pools
from mmaprobe.derivation.state import OutsideError, State
from mmaprobe.derivation.structures import Structure, fused_structures, rounded_structures
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Datapath, Special

MOST_STRUCTURES = 10
"""Of the structures that plain vectors leave alive so many are refined; a unit of the grammar leaves fewer."""


class Search:
    """Stage after stage, each a list of hypotheses that the device's answers thin out."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.instruction = state.instruction
        self.pools = Pools(state.instruction)
        self.untried: list[Datapath] = []
        self.codes: list[int] = []
        self.peeked: tuple[Batch, Bits]

    def run(self, start: Datapath | None, findings: dict[str, Finding]) -> Datapath:
        """Through the stages to the simplest datapath that agrees with everything asked."""
        if not formats.get(self.instruction.d).is_float:
            alive = self._stage(
                "integer sums",
                grammar.integer_hypotheses(self.instruction),
                self.pools.hard("uniform", "extremes", "specials"),
            )
            return self.state.choose(alive)
        if start is not None:
            alive = self._try("a known relative", list(grammar.control_variants(start)), self.pools.whole, 2)
            if alive:
                self.state.relative_of = start
                return self.state.choose(alive)
        alive = self._structures(findings)
        self.codes, self.untried = self._nan_codes(), alive[:MOST_STRUCTURES]
        return self.next_structure(Special("canonical", self.codes[0]))

    def next_structure(self, special: Special) -> Datapath:
        """The first of the structures not tried yet that can be refined; a repair comes back for the rest."""
        failure = OutsideError("structures", None)
        while self.untried:
            datapath, *self.untried = self.untried
            try:
                return self.state.choose(self._refine(replace(datapath, special=special), self.codes))
            except OutsideError as error:
                failure = error
        raise failure

    def _refine(self, datapath: Datapath, codes: list[int]) -> list[Datapath]:
        """Everything but the structure: the ends of the range, the zero exponent, special values."""
        alive = self._vary("the ends of the range", [datapath], grammar.range_variants, self.pools.range)
        if grammar.has_fused(datapath):
            zeros = self.pools.hard("zlad", "zeros", "tiny")
            alive = self._vary("the zero exponent", alive, grammar.zero_exponent_variants, zeros)
        specials = partial(grammar.special_variants, codes=codes)
        before = self.state.observations.count
        self.state.observations.remember(*self.peeked)
        try:
            return self._vary("special values", alive, specials, self.pools.special)
        except OutsideError:
            self.state.observations.forget(before)
            raise

    def _structures(self, findings: dict[str, Finding]) -> list[Datapath]:
        results = self._result_formats()
        hints = read_hints(findings)
        k, has_c = self.instruction.k, self.instruction.c is not None
        found = found_structures(findings.get("summation_tree"), k, has_c)
        alive = self._try("the tree found", self._of(found, results, hints), self.pools.safe, 3)
        if alive:
            return alive
        known = [*rounded_structures(k, has_c), *fused_structures(k, has_c)]
        alive = self._try("structures", self._of(known, results, hints), self.pools.safe, 3)
        if alive:
            return alive
        return self._stage("structures, widened", self._of(known, results, Hints()), self.pools.safe)

    def _of(self, structures: list[Structure], results: list[str], hints: Hints) -> list[Datapath]:
        """The structures' datapaths; fused ones are left out where hints say nothing of their precision."""
        fused = [structure for structure in structures if structure.fused]
        plain = [structure for structure in structures if not structure.fused]
        return [
            *grammar.rounded_hypotheses(self.instruction, results, plain),
            *grammar.fused_hypotheses(self.instruction, results, hints, fused),
        ]

    def _result_formats(self) -> list[str]:
        """The result format, and a narrower one where no answer uses its last places."""
        answers = self.state.observations.ask(safe_vectors(self.instruction, self.state.seed, 64))
        fmt = formats.get(self.instruction.d)
        used = int(np.bitwise_or.reduce(answers))
        twins = [
            other.name
            for other in formats.FORMATS.values()
            if other.is_float
            and other.padding > fmt.padding
            and other.container_bits == fmt.container_bits
            and other.exponent_bits == fmt.exponent_bits
            and used & ((1 << other.padding) - 1) == 0
        ]
        return [*sorted(twins, key=lambda name: formats.get(name).fraction_bits), fmt.name]

    def _nan_codes(self) -> list[int]:
        """The NaNs that the device answers to special values; that of an invalid operation first."""
        fmt = formats.get(self.instruction.d)
        vectors = self.pools.special(self.state.seed + 5, 256)
        answers = self.state.observations.peek(vectors)
        self.peeked = vectors, answers
        is_nan = formats.decode(fmt, answers).kind == formats.NAN
        invalid = answers[is_nan & ~nan_operands(self.instruction, vectors)]
        codes: dict[int, None] = {}
        for group in (invalid, answers[is_nan]):
            values, counts = np.unique(group, return_counts=True)
            codes |= dict.fromkeys(int(code) for code in values[np.argsort(-counts)][:3])
        return list(codes) or [fmt.nan_code or 0]

    def _try(self, stage: str, variants: list[Datapath], pool: Pool, patience: int = 1) -> list[Datapath]:
        self.state.say(f"{stage}: {len(variants)} hypotheses")
        return eliminate(self.state.observations, variants, pool, seed=self.state.seed, patience=patience)

    def _stage(self, stage: str, variants: list[Datapath], pool: Pool) -> list[Datapath]:
        alive = self._try(stage, variants, pool)
        if not alive:
            closest = min(variants[:2000], key=self.state.observations.mismatches, default=None)
            raise OutsideError(stage, closest)
        return alive

    def _vary(
        self, stage: str, alive: list[Datapath], variants: Callable[[Datapath], Iterable[Datapath]], pool: Pool
    ) -> list[Datapath]:
        """The variants of the first hypothesis that has living ones; the other hypotheses are kept for a repair."""
        for number, datapath in enumerate(alive):
            found = self._try(stage, list(dict.fromkeys(variants(datapath))), pool)
            if found:
                self.state.others = [*alive[number + 1 :], *self.state.others]
                return found
        raise OutsideError(stage, alive[0])
