"""The vectors that a recording lacks: those on which what it leaves open would give different answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.dense_view import asked, dense_form, kept
from mmaprobe.derivation.discriminate import telling
from mmaprobe.derivation.hypotheses import roles
from mmaprobe.derivation.recording import Reading, telling_vectors
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.descent import Group, Ways, around
from mmaprobe.derivation.survivors import Living
from mmaprobe.derivation.vectors.mixtures import hard_vectors, mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.evidence.missing_vectors_file import MissingVectors
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.neighbours import neighbourhood

WIDTH = 48
"""Vectors for one kind of rivals at most, of two kinds twice as many: a file stays below 600."""
POOL = 3000
"""Candidates of each kind."""
AIMED = 24
"""Rivals at the numbers of which vectors are aimed."""
SPECIALS = 96
"""Vectors of special operands that are asked in any case: no list of rivals foresees a NaN's code."""
VARIED = 64
"""Rivals of one group of fields at most."""
NAMED = 4
"""Rivals that are named for an answer; of the others their number."""
PLAIN = ("cancel", "ulp", "tie", "clustered")
ENDS = ("subnormals", "tiny", "conly", "zeros", "zlad", "extremes", "cancel")

Rivals = list[tuple[str, Datapath]]


def missing_vectors(reading: Reading, seed: int = 0) -> MissingVectors | None:
    """Vectors that tell apart what the recording leaves open; None where it leaves nothing open or nothing at all.

    Rivals are the survivors, and of the believed one every zero exponent, every
    policy at the ends of the range, and the neighbours that are not refuted;
    of each kind few vectors are taken that together tell most of it apart.
    """
    open_fields = reading.derivation.certificate.open_fields
    if not reading.survivors or not open_fields:
        return None
    made = reading.instruction
    ends = hard_vectors(made, ENDS, seed + 61, POOL)
    whole = asked(reading.architecture, made, mixed_vectors(dense_form(made), seed + 62, POOL))
    left = list(_survivors(reading))
    near = list(_open_neighbours(reading))
    plain = hard_vectors(made, PLAIN, seed + 60, POOL)
    kinds: list[tuple[Rivals, Batch, int]] = [
        (left, join([plain, telling_vectors(made, seed), _aimed(reading, left, seed + 64)]), 2 * WIDTH),
        (left, whole, WIDTH),
        (near, join([whole, ends, _aimed(reading, near, seed + 65)]), 2 * WIDTH),
    ]
    if formats.get(made.d).is_float:
        kinds.append((_varied(reading, "the ends of the range", _ends), ends, WIDTH))
        kinds.append((_varied(reading, "zero exponent", _zeros), ends, WIDTH))
        kinds.append((_varied(reading, "infinite products", _products), ends, WIDTH))
    best: Rivals = [("", reading.survivors[0])]
    chosen = [
        take(pool, telling(_evaluate(reading, best + rivals, pool), width)) for rivals, pool, width in kinds if rivals
    ]
    if formats.get(made.d).is_float:
        chosen.append(hard_vectors(made, ("specials",), seed + 63, SPECIALS))
    vectors = _distinct(join(chosen))
    return MissingVectors(made, vectors, tuple(open_fields), tuple(_answers(reading, [*left, *near], vectors)))


def _aimed(reading: Reading, rivals: Rivals, seed: int) -> Batch:
    """Vectors at the numbers of the believed datapath and of its first rivals; none where there can be none."""
    dense = dense_form(reading.instruction)
    if not can_attack(dense):
        return hard_vectors(reading.instruction, PLAIN, seed, 0)
    vectors = attack_vectors(dense, reading.survivors[0], [path for _, path in rivals[:AIMED]], seed, POOL)
    return asked(reading.architecture, reading.instruction, vectors)


def _survivors(reading: Reading) -> Iterator[tuple[str, Datapath]]:
    best, *others = reading.survivors
    yield "as believed", best
    for other in others:
        yield ", ".join(f"{field} = {new}" for field, _, new in datapath_changes(best, other)), other


def _open_neighbours(reading: Reading) -> Iterator[tuple[str, Datapath]]:
    open_ = reading.derivation.certificate.open_fields
    for field, value, path in neighbourhood(reading.survivors[0]):
        if value in open_.get(field, ()):
            yield f"{field} = {value}", path


def _ends(path: Datapath) -> Iterator[Group]:
    """Every group of ends of the range, the signs of zeros."""
    yield from fields.ends(path)
    yield path, fields.signs(path, lambda _: True)


def _zeros(path: Datapath) -> Iterator[Group]:
    """Every zero exponent of all terms, and of one kind of term."""
    terms = roles.term_roles(path)
    if terms:
        yield path, [fields.tied_zeros(path)]
    yield from ((path, [fields.zeros(path, role)]) for role in terms)


def _products(path: Datapath) -> Iterator[Group]:
    """Every exponent from which a product is infinite."""
    yield path, [roles.products(path)[1]]


def _varied(reading: Reading, name: str, ways: Ways) -> Rivals:
    """What the believed datapath could be instead, some of each group of fields."""
    every = around(reading.survivors[0], ways)
    return [(name, path) for space in every for path in Living.of([space], Allowance(None)).spread(VARIED)]


def _evaluate(reading: Reading, rivals: Rivals, vectors: Batch) -> Bits:
    return evaluate_many([path for _, path in rivals], kept(reading.architecture, reading.instruction, vectors))


def _distinct(vectors: Batch) -> Batch:
    """Each vector once, in order."""
    rows = np.concatenate(
        [np.ascontiguousarray(v).reshape(vectors.size, -1).view(np.uint8) for _, v in vectors.items()], axis=1
    )
    return take(vectors, np.sort(np.unique(rows, axis=0, return_index=True)[1]))


def _answers(reading: Reading, rivals: Rivals, vectors: Batch) -> Iterator[dict[int, tuple[str, ...]]]:
    """For each vector: answer -> what it would mean, the commonest rivals named."""
    table = _evaluate(reading, rivals, vectors)
    for column in table.T:
        found: dict[int, list[str]] = {}
        for (name, _), answer in zip(rivals, column, strict=True):
            found.setdefault(int(answer), []).append(name)
        yield {
            answer: (*names[:NAMED], *((f"and {len(names) - NAMED} more",) if len(names) > NAMED else ()))
            for answer, names in found.items()
        }
