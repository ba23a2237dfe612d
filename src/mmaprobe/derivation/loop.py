"""Derive a datapath from a black box: eliminate, refine, refute the neighbours, validate afresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import hypotheses as grammar
from mmaprobe.derivation.arguments import argument
from mmaprobe.derivation.certificate import Certificate, Entry, Verdict
from mmaprobe.derivation.found import found_structures
from mmaprobe.derivation.hints import read_hints
from mmaprobe.derivation.hypotheses import Hints
from mmaprobe.derivation.observations import Observations, Pool, eliminate
from mmaprobe.derivation.pool import (
    edge_vectors,
    hard_vectors,
    join,
    mixed_vectors,
    nan_operands,
    safe_vectors,
    special_vectors,
    take,
)
from mmaprobe.derivation.structures import Structure, fused_structures, rounded_structures
from mmaprobe.devices.base import Device
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath, Special
from mmaprobe.parameters.neighbours import Neighbour, neighbours
from mmaprobe.parameters.table import to_table
from mmaprobe.probing import probe

Say = Callable[[str], None]
Status = Literal["exact", "bounded", "inconclusive"]

RANGE_FAMILIES = ("subnormals", "tiny", "conly", "zeros", "zlad", "extremes", "cancel")
SPECIAL_FAMILIES = ("specials", "uniform")
FRESH = 20_000
POOL = 1500
ROUNDS = 6


@dataclass(frozen=True)
class Derivation:
    """The outcome: a datapath with its certificate, or the reason why there is none.

    ``exact``: every neighbour is refuted.  ``bounded``: some neighbours answered
    the same on everything searched.  ``inconclusive``: nothing in the grammar fits;
    ``closest`` is then the datapath with the fewest wrong observations and
    ``counterexample`` one of those.
    """

    instruction: str
    status: Status
    datapath: Datapath | None
    certificate: Certificate
    findings: dict[str, Finding]
    witnesses: tuple[Witness, ...]
    tiles: int
    launches: int
    vectors: int
    fresh: int
    seconds: float
    reason: str = ""
    closest: Datapath | None = None
    counterexample: Witness | None = None

    def form(self) -> dict[str, Any]:
        """As evidence keeps it: the datapath in its file form, and the verdicts of the certificate."""
        certificate = {
            "refuted": self.certificate.refuted,
            "equivalent": self.certificate.equivalent,
            "open": {name: list(values) for name, values in self.certificate.open_fields.items()},
        }
        datapath = self.datapath or self.closest
        return {
            "status": self.status,
            "reason": self.reason,
            "datapath" if self.datapath else "closest": to_table(datapath) if datapath else None,
            "certificate": certificate,
            "cost": {"tiles": self.tiles, "launches": self.launches, "vectors": self.vectors, "fresh": self.fresh},
        }


class OutsideError(Exception):
    """No hypothesis of the grammar agrees with all observations."""

    def __init__(self, stage: str, closest: Datapath | None) -> None:
        super().__init__(stage)
        self.stage = stage
        self.closest = closest


def derive(
    device: Device,
    instruction: Instruction,
    *,
    seed: int = 0,
    start: Datapath | None = None,
    fresh: int = FRESH,
    findings: dict[str, Finding] | None = None,
    say: Say | None = None,
) -> Derivation:
    """Find the datapath of an instruction from the device's answers alone.

    ``start`` is a hypothesis to begin with (the same unit in its default control
    state, another width of it): it is tested like any other and saves the
    search of structures where it holds.  ``findings`` are the probes' answers
    where they were already asked.
    """
    begin = time.monotonic()
    search = _Search(device, instruction, seed, say or (lambda _: None))
    if findings is None:
        findings = {} if start is not None else probe(device, instruction, seed=seed)
    try:
        datapath = search.run(start, findings)
        certificate, fresh_done = search.settle(datapath, fresh)
        datapath = search.current
        status: Status = "bounded" if certificate.open_fields else "exact"
        outcome = {"datapath": datapath, "certificate": certificate, "status": status}
    except OutsideError as error:
        outcome, fresh_done = _inconclusive(search, error), 0
    probed = list(findings.values())
    return Derivation(
        instruction=instruction.id,
        findings=findings,
        witnesses=tuple(search.witnesses()),
        tiles=search.observations.tiles + sum(finding.tiles for finding in probed),
        launches=search.observations.launches + sum(finding.launches for finding in probed),
        vectors=search.observations.count,
        fresh=fresh_done,
        seconds=time.monotonic() - begin,
        **outcome,  # type: ignore[arg-type]
    )


def _inconclusive(search: _Search, error: OutsideError) -> dict[str, object]:
    counterexample = None
    if error.closest is not None:
        vectors, answers = search.observations.everything()
        wrong = np.flatnonzero(evaluate_many([error.closest], vectors)[0] != answers)
        if wrong.size:
            counterexample = Witness.of(
                take(vectors, wrong[:1]), int(answers[wrong[0]]), "the closest datapath differs"
            )
    return {
        "status": "inconclusive",
        "datapath": None,
        "certificate": Certificate(()),
        "reason": f"no datapath of the grammar fits: {error.stage}",
        "closest": error.closest,
        "counterexample": counterexample,
    }


class _Search:
    """One derivation under way."""

    def __init__(self, device: Device, instruction: Instruction, seed: int, say: Say) -> None:
        self.instruction = instruction
        self.observations = Observations(device, instruction)
        self.seed = seed
        self.say = say
        self.others: list[Datapath] = []
        self.untried: list[Datapath] = []
        self.codes: list[int] = []
        self.current: Datapath
        self.peeked: tuple[Batch, Bits]
        self.relative_of: Datapath | None = None
        self.proofs: dict[tuple[str, str], Witness] = {}

    def run(self, start: Datapath | None, findings: dict[str, Finding]) -> Datapath:
        """Through the stages to the simplest datapath that agrees with everything asked."""
        if not formats.get(self.instruction.d).is_float:
            alive = self._stage(
                "integer sums",
                grammar.integer_hypotheses(self.instruction),
                self._hard("uniform", "extremes", "specials"),
            )
            return self._choose(alive)
        if start is not None:
            alive = self._try("a known relative", list(grammar.control_variants(start)), self._whole_pool, 2)
            if alive:
                self.relative_of = start
                return self._choose(alive)
        alive = self._structures(findings)
        self.codes, self.untried = self._nan_codes(), alive
        return self._next_structure(Special("canonical", self.codes[0]))

    def _next_structure(self, special: Special) -> Datapath:
        """The first of the structures not tried yet that can be refined; a repair comes back for the rest."""
        failure = OutsideError("structures", None)
        while self.untried:
            datapath, *self.untried = self.untried
            try:
                return self._choose(self._refine(replace(datapath, special=special), self.codes))
            except OutsideError as error:
                failure = error
        raise failure

    def _refine(self, datapath: Datapath, codes: list[int]) -> list[Datapath]:
        """Everything but the structure: the ends of the range, the zero exponent, special values."""
        alive = self._vary("the ends of the range", [datapath], grammar.range_variants, self._range_pool)
        if grammar.has_fused(datapath):
            zeros = self._hard("zlad", "zeros", "tiny")
            alive = self._vary("the zero exponent", alive, grammar.zero_exponent_variants, zeros)
        specials = partial(grammar.special_variants, codes=codes)
        before = self.observations.count
        self.observations.remember(*self.peeked)
        try:
            return self._vary("special values", alive, specials, self._special_pool)
        except OutsideError:
            self.observations.forget(before)
            raise

    def _structures(self, findings: dict[str, Finding]) -> list[Datapath]:
        results = self._result_formats()
        hints = read_hints(findings)
        k, has_c = self.instruction.k, self.instruction.c is not None
        found = found_structures(findings.get("summation_tree"), k, has_c)
        alive = self._try("the tree found", self._of(found, results, hints), self._safe_pool, 3)
        if alive:
            return alive
        known = [*rounded_structures(k, has_c), *fused_structures(k, has_c)]
        alive = self._try("structures", self._of(known, results, hints), self._safe_pool, 3)
        if alive:
            return alive
        return self._stage("structures, widened", self._of(known, results, Hints()), self._safe_pool)

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
        answers = self.observations.ask(safe_vectors(self.instruction, self.seed, 64))
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
        vectors = self._special_pool(self.seed + 5, 256)
        answers = self.observations.peek(vectors)
        self.peeked = vectors, answers
        is_nan = formats.decode(fmt, answers).kind == formats.NAN
        invalid = answers[is_nan & ~nan_operands(self.instruction, vectors)]
        codes: dict[int, None] = {}
        for group in (invalid, answers[is_nan]):
            values, counts = np.unique(group, return_counts=True)
            codes |= dict.fromkeys(int(code) for code in values[np.argsort(-counts)][:3])
        return list(codes) or [fmt.nan_code or 0]

    def _safe_pool(self, seed: int, count: int) -> Batch:
        return safe_vectors(self.instruction, seed, count)

    def _special_pool(self, seed: int, count: int) -> Batch:
        own = special_vectors(self.instruction, seed, count)
        return join([own, hard_vectors(self.instruction, SPECIAL_FAMILIES, seed, count // 2)])

    def _whole_pool(self, seed: int, count: int) -> Batch:
        return mixed_vectors(self.instruction, seed, 4 * count)

    def _range_pool(self, seed: int, count: int) -> Batch:
        hard = hard_vectors(self.instruction, RANGE_FAMILIES, seed, 2 * count)
        vectors = join([hard, edge_vectors(self.instruction, seed, count)])
        return take(vectors, np.flatnonzero(~nan_operands(self.instruction, vectors)))

    def _hard(self, *families: str) -> Pool:
        return lambda seed, count: hard_vectors(self.instruction, families, seed, count)

    def _try(self, stage: str, variants: list[Datapath], pool: Pool, patience: int = 1) -> list[Datapath]:
        self.say(f"{stage}: {len(variants)} hypotheses")
        return eliminate(self.observations, variants, pool, seed=self.seed, patience=patience)

    def _stage(self, stage: str, variants: list[Datapath], pool: Pool) -> list[Datapath]:
        alive = self._try(stage, variants, pool)
        if not alive:
            closest = min(variants[:2000], key=self.observations.mismatches, default=None)
            raise OutsideError(stage, closest)
        return alive

    def _vary(
        self, stage: str, alive: list[Datapath], variants: Callable[[Datapath], Iterable[Datapath]], pool: Pool
    ) -> list[Datapath]:
        """The variants of the first hypothesis that has living ones; the other hypotheses are kept for a repair."""
        for number, datapath in enumerate(alive):
            found = self._try(stage, list(dict.fromkeys(variants(datapath))), pool)
            if found:
                self.others = [*alive[number + 1 :], *self.others]
                return found
        raise OutsideError(stage, alive[0])

    def _choose(self, alive: list[Datapath]) -> Datapath:
        self.current = alive[0]
        self.others = alive[1:] + self.others
        return self.current

    def settle(self, datapath: Datapath, fresh: int) -> tuple[Certificate, int]:
        """Refute every neighbour or give up on it; validate with fresh vectors; move when the device says so."""
        self.current = datapath
        for turn in range(ROUNDS):
            certificate = self._refute(turn) if self.relative_of is None else self._refute_relatives(self.relative_of)
            disagreement = self._validate(fresh, turn)
            if disagreement is None:
                self.observations.check_stable()
                return certificate, fresh
            self.say("a fresh vector disagrees: searching on")
            self.observations.ask(disagreement)
            if not self._move(self.others):
                self.relative_of = None
                self._repair()
        raise OutsideError("fresh vectors kept disagreeing", self.current)

    def _refute(self, turn: int) -> Certificate:
        """Every neighbour of the current datapath: a witness against it, or open."""
        searched = 0
        for sweep in range(ROUNDS):
            near = neighbours(self.current)
            left = [n for n in near if (n.field, n.value) not in self.proofs and not argument(self.current, n)]
            moved = False
            for attempt in range(3):
                if not left:
                    break
                pool = mixed_vectors(
                    self.instruction, self.seed + 7919 * (turn + 1) + 101 * sweep + attempt, POOL << attempt
                )
                searched += pool.size
                left, moved = self._attack(left, pool)
                if moved:
                    break
            if not moved:
                return self._certificate(near, searched)
            self.proofs.clear()
        raise OutsideError("neighbours kept replacing each other", self.current)

    def _refute_relatives(self, start: Datapath) -> Certificate:
        """What the control register could have changed instead: every other variant of the relative, by observation."""
        others = [path for path in dict.fromkeys(grammar.control_variants(start)) if path != self.current]
        vectors, answers = self.observations.everything()
        wrong = evaluate_many(others, vectors) != answers
        entries = []
        for path, misses in zip(others, wrong, strict=True):
            name = grammar.control_words(path)
            hit = np.flatnonzero(misses)
            proof = Witness.of(take(vectors, hit[:1]), int(answers[hit[0]]), f"not {name}") if hit.size else None
            if proof is not None:
                self.proofs["control state", name] = proof
            entries.append(
                Entry("control state", name, "refuted" if proof else "equivalent", proof,
                      "" if proof else f"the same on all of {vectors.size} vectors", vectors.size)
            )  # fmt: skip
        return Certificate(tuple(entries))

    def _attack(self, left: list[Neighbour], pool: Batch) -> tuple[list[Neighbour], bool]:
        """Ask the device about the vectors that tell neighbours from the current datapath."""
        base = evaluate_many([self.current], pool)[0]
        table = evaluate_many([n.datapath for n in left], pool) != base
        columns = np.unique(table[table.any(axis=1)].argmax(axis=1)) if table.any() else np.empty(0, np.int64)
        if not columns.size:
            return left, False
        asked = take(pool, columns)
        answers = self.observations.ask(asked)
        if (answers != base[columns]).any():
            self._repair([n.datapath for n in left])
            return left, True
        still = []
        for neighbour, differs in zip(left, table[:, columns], strict=True):
            hit = np.flatnonzero(differs)
            if hit.size:
                note = f"{neighbour.field} is not {neighbour.value}"
                self.proofs[neighbour.field, neighbour.value] = Witness.of(
                    take(asked, hit[:1]), int(answers[hit[0]]), note
                )
            else:
                still.append(neighbour)
        return still, False

    def _repair(self, more: list[Datapath] | None = None) -> None:
        """The current datapath is wrong somewhere: move to one near it that agrees with everything."""
        self.proofs.clear()
        for candidates in (more or [], self.others, [n.datapath for n in neighbours(self.current)]):
            if self._move(list(candidates)):
                return
        closest = self.current
        try:
            self._next_structure(closest.special)
        except OutsideError:
            self.current = closest
            if not self._move(self._two_away()):
                raise OutsideError("the last datapath standing was refuted", closest) from None

    def _move(self, candidates: list[Datapath]) -> bool:
        """Make the first candidate that agrees with everything the current datapath."""
        alive = self.observations.alive(candidates)
        if alive:
            self.current, self.others = alive[0], alive[1:]
        return bool(alive)

    def _two_away(self) -> list[Datapath]:
        """Two changes away, from the ten neighbours that get the least wrong."""
        near = sorted((n.datapath for n in neighbours(self.current)), key=self.observations.mismatches)[:10]
        return list(dict.fromkeys(n[2] for datapath in near for n in neighbours(datapath)))

    def _validate(self, fresh: int, turn: int) -> Batch | None:
        """The first fresh vectors on which device and datapath differ, if any."""
        vectors = hard_vectors(self.instruction, families_for(self.instruction), self.seed ^ 0x5EED0000 + turn, fresh)
        device = Observations(self.observations.device, self.instruction)
        answers = device.ask(vectors)
        wrong = np.flatnonzero(evaluate_many([self.current], vectors)[0] != answers)
        return take(vectors, wrong[:8]) if wrong.size else None

    def _certificate(self, near: list[Neighbour], searched: int) -> Certificate:
        entries = []
        for n in near:
            proof, reason = self.proofs.get((n.field, n.value)), argument(self.current, n)
            verdict: Verdict = "refuted" if proof else "equivalent" if reason else "open"
            entries.append(Entry(n.field, n.value, verdict, proof, reason, searched))
        return Certificate(tuple(entries))

    def witnesses(self) -> list[Witness]:
        """Every distinct witness of the certificate."""
        return list(dict.fromkeys(replace(w, note="") for w in self.proofs.values()))
