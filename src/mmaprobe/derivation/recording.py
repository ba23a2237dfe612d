"""Derive from a recording: what its vectors leave of the grammar, without asking anything more.

Stages eliminate (``recorded_stages``); fields of which no vector speaks stay open in the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.certificate import Certificate, Grounds, Key, witnesses_against
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.derivation.outside import Repair, repairs
from mmaprobe.derivation.primitive_view import Frame
from mmaprobe.derivation.recorded_hypotheses import zero_variants
from mmaprobe.derivation.recorded_stages import Elimination
from mmaprobe.derivation.survivors import several
from mmaprobe.equivalence.arguments import argument
from mmaprobe.evidence.records import Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.neighbours import Neighbour, neighbours

Seen = tuple[Batch, Batch, Bits]
"""Recorded vectors, the same as the datapath sees them, the answers."""


@dataclass(frozen=True)
class Reading:
    """What a recording says: ``derivation`` in the usual form; ``every`` datapath that agrees with the recorded vectors
    that decide, the believed one first, and the ``survivors``, one of each class that vectors can tell apart."""

    frame: Frame
    derivation: Derivation
    survivors: tuple[Datapath, ...]
    every: tuple[Datapath, ...]

    @property
    def instruction(self) -> Instruction:
        return self.frame.instruction


def read(frame: Frame, vectors: Batch, answers: Bits, seed: int = 0) -> Reading:
    """The datapaths of the grammar that agree with recorded vectors (one-vector shapes) and their answers."""
    begin = time.monotonic()
    work = Elimination(frame, frame.dense(vectors), answers, seed)
    left = work.run()
    if not left:
        derivation = _outside(work, vectors, time.monotonic() - begin)
        return Reading(frame, derivation, (), ())
    every = [frame.whole(path) for path in left]
    kinds = work.kinds(every)
    kept = [path for path, first in zip(every, kinds == np.arange(len(every)), strict=True) if first]
    rivals = [path for path, kind in zip(every, kinds, strict=True) if kind != 0]
    seen = take(vectors, work.used), take(work.vectors, work.used), answers[work.used]
    certificate = _certificate(kept[0], rivals, seen, list(work.unasked(kept[0])))
    derivation = Derivation(
        instruction=frame.instruction.id,
        status="bounded" if certificate.open_fields else "exact",
        datapath=kept[0],
        certificate=certificate,
        findings={},
        witnesses=certificate.witnesses,
        tiles=0,
        launches=0,
        vectors=vectors.size,
        fresh=0,
        seconds=time.monotonic() - begin,
    )
    return Reading(frame, derivation, tuple(kept), tuple(every))


def _certificate(best: Datapath, rivals: list[Datapath], seen: Seen, unasked: list[str]) -> Certificate:
    """Every neighbour of the believed datapath held against the recording, what the other survivors say, and the
    fields that no recorded vector speaks of."""
    vectors, dense, answers = seen
    near = neighbours(best)
    table = evaluate_many([n.datapath for n in near], dense)
    proofs = witnesses_against((n[:2] for n in near), table, answers, vectors)
    grounds: dict[Key, Grounds] = {n[:2]: proofs.get(n[:2]) or argument(best, n) for n in near}
    grounds |= dict.fromkeys(_rival_values(best, [*rivals, *_zeros_alike(best, dense, answers)]))
    for field in unasked:
        mine = {key: found for key, found in grounds.items() if key[0].startswith(field)}
        if not all(isinstance(found, Witness) for found in mine.values()):
            grounds = {key: found for key, found in grounds.items() if key not in mine} | {(field, "any"): None}
    return Certificate.of(grounds, dict.fromkeys(grounds, vectors.size))


def _zeros_alike(best: Datapath, vectors: Batch, answers: Bits) -> list[Datapath]:
    """The believed datapath with every other zero exponent that agrees with all recorded vectors and is not shown to
    be the same function."""
    others = several([path for path in zero_variants(best) if path != best], Allowance(None))
    left = others.agreeing(vectors, answers)
    return [path for path in left if not all(argument(best, Neighbour(*c, path)) for c in _rival_values(best, [path]))]


def _rival_values(best: Datapath, others: Iterable[Datapath]) -> Iterator[tuple[str, str]]:
    for other in others:
        yield from ((field, str(new)) for field, _, new in datapath_changes(best, other))


def _outside(work: Elimination, vectors: Batch, seconds: float) -> Derivation:
    """Nothing fits: the datapath closest among those of the stage that failed, and what would repair it."""
    closest = None if work.closest is None else work.frame.whole(work.closest)
    made, answers = work.frame.instruction, work.answers
    counter: Witness | None = None
    found: tuple[Repair, ...] = ()
    if closest is not None:
        wrong = np.flatnonzero(evaluate_many([closest], work.vectors)[0] != answers)
        if wrong.size:
            counter = Witness.of(take(vectors, wrong[:1]), int(answers[wrong[0]]), "the closest datapath differs")
            found = repairs(work.frame.made, closest, work.vectors, answers)
    return Derivation(
        instruction=made.id,
        status="inconclusive",
        datapath=None,
        certificate=Certificate(()),
        findings={},
        witnesses=(),
        tiles=0,
        launches=0,
        vectors=vectors.size,
        fresh=0,
        seconds=seconds,
        reason=f"no datapath of the grammar fits the recording: {work.stage}",
        closest=closest,
        counterexample=counter,
        repairs=found,
    )
