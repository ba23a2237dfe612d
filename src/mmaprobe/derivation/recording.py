"""Derive from a recording: what its vectors leave of the grammar, without asking anything more.

The search is that of a device (``search.recorded``); fields of which no vector speaks stay open in the certificate.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance, SpentError
from mmaprobe.derivation.certificate import Certificate, Grounds, Key, witnesses_against
from mmaprobe.derivation.dense_view import dense_form, kept
from mmaprobe.derivation.deriving import Derivation
from mmaprobe.derivation.hypotheses import roles
from mmaprobe.derivation.outside import MENDING, NOTE, disagreements, mended
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.descent import around
from mmaprobe.derivation.search.recorded import RecordedSearch
from mmaprobe.derivation.session import Ended
from mmaprobe.derivation.survivors import Living
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, outline
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.parameters.table import flatten, to_table

TELLING = 4000
"""Vectors of every family by which what is left is held to be alike."""
Seen = tuple[Batch, Batch, Bits]
"""Recorded vectors, the same as the datapath sees them, the answers."""


@dataclass(frozen=True)
class Reading:
    """What a recording says: ``derivation`` in the usual form; ``every`` datapath found that agrees with all that was
    recorded, the believed one first, and the ``survivors``, one of each class that vectors can tell apart."""

    architecture: str
    instruction: Instruction
    derivation: Derivation
    survivors: tuple[Datapath, ...]
    every: tuple[Datapath, ...]


def read(architecture: str, instruction: Instruction, vectors: Batch, answers: Bits, seed: int = 0) -> Reading:
    """The datapaths of the grammar that agree with recorded vectors (one-vector shapes) and their answers.

    UsageError for an instruction that takes random bits, of which a search asks vectors without any first.
    """
    if instruction.random is not None:
        raise UsageError(
            f"{instruction.id} takes random bits; a recording does not say what it does without: "
            "derive it from the device"
        )
    begin = time.monotonic()
    dense = kept(architecture, instruction, vectors)
    search = RecordedSearch(dense_form(instruction), dense, answers, seed)
    every = _every(search, dense, answers)
    spent = search.session.allowance.spent
    if isinstance(every, Ended):
        reason = (
            str(SpentError(spent))
            if spent.ended
            else f"no datapath of the grammar was found that fits the recording: {every.stage}"
        )
        derivation = _outside(search, every, (vectors, dense, answers), reason, time.monotonic() - begin)
        return Reading(architecture, instruction, derivation, (), ())
    kinds = _kinds(search.instruction, every, seed)
    left = [path for path, first in zip(every, kinds == np.arange(len(every)), strict=True) if first]
    rivals = [path for path, kind in zip(every, kinds, strict=True) if kind != 0]
    loose = _loose(search, dict(zip(every, kinds, strict=True)), every[0])
    unasked = list(_unasked(search, every[0]))
    looked = search.all_structures and outline(every[0].tree) in search.looked
    certificate = _certificate(every[0], rivals, (vectors, dense, answers), unasked, loose, looked)
    derivation = Derivation(
        instruction=instruction.id,
        status="bounded" if certificate.open_fields or not search.complete else "exact",
        datapath=every[0],
        certificate=certificate,
        findings={},
        witnesses=certificate.witnesses,
        tiles=0,
        launches=0,
        vectors=vectors.size,
        fresh=0,
        seconds=time.monotonic() - begin,
        reason="" if search.complete else "not all that agrees was looked for",
        spent=spent,
    )
    return Reading(architecture, instruction, derivation, tuple(left), tuple(every))


def _every(search: RecordedSearch, vectors: Batch, answers: Bits) -> list[Datapath] | Ended:
    """What the search leaves; where it leaves nothing, the closest, mended, where that agrees with everything."""
    every = search.every()
    if isinstance(every, Ended) and every.closest is not None:
        path = mended(every.closest, vectors, answers, Allowance(MENDING))
        if (evaluate_many([path], vectors)[0] == answers).all():
            search.complete = search.all_structures = False
            return [path]
        return Ended(every.stage, path)
    return every


def _kinds(made: Instruction, every: list[Datapath], seed: int) -> NDArray[np.int64]:
    """For each datapath the place of the first that answers vectors of every family alike."""
    table = evaluate_many(every, telling_vectors(made, seed))
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.reshape(-1)], np.int64)


def _loose(search: RecordedSearch, kinds: dict[Datapath, Any], best: Datapath) -> set[str]:
    """Fields of which more values agree than were kept, and some of those that were are of other kinds; the structure
    where not all that agrees was looked for."""
    return (set() if search.complete else {"tree", "step", "order"}) | {
        field
        for path, others in search.sampled
        if outline(path.tree) == outline(best.tree) and path in kinds
        for other in others
        if kinds.get(other, kinds[path]) != kinds[path]
        for field, _, _ in datapath_changes(path, other)
    }


def telling_vectors(made: Instruction, seed: int) -> Batch:
    """Those by which what is left is of one kind or of several."""
    return hard_vectors(made, families_for(made), seed + 31, TELLING)


def _unasked(search: RecordedSearch, path: Datapath) -> Iterator[str]:
    """Fields of which no vector speaks: those of the stages that had none."""
    if not formats.get(path.d).is_float:
        return
    if search.finite.count == search.plain.count:
        yield from (field for field, _ in flatten(to_table(path, full=True)) if field.endswith("zero_exponent"))
    if search.finite.count == len(search.session):
        yield "special"


def _certificate(
    best: Datapath, rivals: list[Datapath], seen: Seen, unasked: Iterable[str], loose: Iterable[str], looked: bool
) -> Certificate:
    """Every neighbour of the believed datapath held against the recording, what the other survivors say, the fields
    that no recorded vector speaks of, and those of which more values agree than are named: all of them where what
    agrees around the believed tree was not looked for (``looked``), since a value that is refuted beside the believed
    ones may agree beside others."""
    vectors, dense, answers = seen
    near = neighbourhood(best)
    table = evaluate_many([n.datapath for n in near], dense)
    proofs = witnesses_against((n[:2] for n in near), table, answers, vectors)
    grounds: dict[Key, Grounds] = {n[:2]: proofs.get(n[:2]) or argument(best, n) for n in near}
    grounds |= dict.fromkeys(_rival_values(best, [*rivals, *_zeros_alike(best, dense, answers)]))
    for field in unasked:
        mine = {key: found for key, found in grounds.items() if key[0].startswith(field)}
        if not all(isinstance(found, Witness) for found in mine.values()):
            grounds = {key: found for key, found in grounds.items() if key not in mine} | {(field, "any"): None}
    refuted = () if looked else (field for (field, _), found in grounds.items() if isinstance(found, Witness))
    grounds |= dict.fromkeys((field, "any") for field in sorted({*loose, *refuted}))
    return Certificate.of(grounds, dict.fromkeys(grounds, vectors.size))


def _zeros_alike(best: Datapath, vectors: Batch, answers: Bits) -> list[Datapath]:
    """The believed datapath with every other zero exponent that agrees with all recorded vectors and is not shown to
    be the same function."""
    others = around(best, lambda path: [(path, [fields.tied_zeros(path)])] if roles.term_roles(path) else [])
    left = (path for path in Living.of(list(others), Allowance(None)).agreeing(vectors, answers) if path != best)
    return [path for path in left if not all(argument(best, Neighbour(*c, path)) for c in _rival_values(best, [path]))]


def _rival_values(best: Datapath, others: Iterable[Datapath]) -> Iterator[tuple[str, str]]:
    for other in others:
        yield from ((field, str(new)) for field, _, new in datapath_changes(best, other))


def _outside(search: RecordedSearch, ended: Ended, seen: Seen, reason: str, seconds: float) -> Derivation:
    """Nothing fits: the datapath closest to the recording, and what would repair it."""
    vectors, dense, answers = seen
    shown = None
    if ended.closest is not None:
        shown = disagreements(
            search.instruction, ended.closest, dense, answers,
            lambda number, _: Witness.of(take(vectors, [number]), int(answers[number]), NOTE),
        )  # fmt: skip
    return Derivation(
        instruction=search.instruction.id,
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
        reason=reason,
        closest=ended.closest,
        counterexample=shown.counterexample if shown else None,
        kinds=shown.kinds if shown else (),
        repairs=shown.repairs if shown else (),
        spent=search.session.allowance.spent,
    )
