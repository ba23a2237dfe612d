"""A mismatch for a page: both answers bit by bit, those that differ marked, and how each side comes to its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import sorts
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.model import bind
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.report.mismatches import format_of, outcome_words, place_words, smallest_kinds
from mmaprobe.report.page.answer_bits import AnswerSide, BothAnswers, marked, places
from mmaprobe.report.vectors import vector_text
from mmaprobe.validation.explaining import nearest, says


@dataclass(frozen=True)
class MismatchView:
    """Everything that a page says of one mismatch; ``answers``: as it was found, then in its smallest form."""

    instruction: str
    outcome: str
    recipe: str
    places: str
    note: str
    answers: tuple[BothAnswers, ...]
    reference_says: str
    device_as: str


def mismatch_views(found: Sequence[Mismatch], made: Instruction | None, architecture: str, path: Datapath | None,
                   instruction: str) -> list[MismatchView]:  # fmt: skip
    """The mismatches of an instruction; ``path``: the datapath at hand, which explains those whose expected answer it
    gives and whose evidence does not explain them."""
    if made is not None and path is not None:
        found = _explained(found, made, architecture, path)
    return [_view(each, instruction) for each in found]


def _view(mismatch: Mismatch, instruction: str) -> MismatchView:
    answers = [_both(mismatch.vector, mismatch.expected, mismatch.format, mismatch.kinds)]
    if mismatch.shrunk is not None and mismatch.shrunk_expected is not None:
        smallest = _both(mismatch.shrunk, mismatch.shrunk_expected, mismatch.format, smallest_kinds(mismatch))
        answers.append(smallest)
    return MismatchView(
        instruction, outcome_words(mismatch), mismatch.recipe, place_words(mismatch), mismatch.vector.note,
        tuple(answers), mismatch.reference_says, mismatch.device_as,
    )  # fmt: skip


def _both(vector: Witness, expected: int, name: str, kinds: tuple[str, ...]) -> BothAnswers:
    fmt = format_of(name, vector.d, expected)
    if fmt is None:
        sides = AnswerSide("device", f"{vector.d:#x}"), AnswerSide("reference", f"{expected:#x}")
        return BothAnswers(vector_text(vector), kinds, sides, "")
    different = vector.d ^ expected
    words = places(different) if different else "no bit: not all its answers are this one"
    sides = marked(fmt, ("device", vector.d), ("reference", expected))
    return BothAnswers(vector_text(vector), kinds, sides, words)


def _explained(found: Sequence[Mismatch], made: Instruction, architecture: str, path: Datapath) -> Sequence[Mismatch]:
    """Those whose evidence says nothing, explained by the datapath where it gives what was expected."""
    if not found or formats.get(path.d) != formats.get(made.d):
        return found
    seen = bind(made, path, sorts(architecture, made)).dense(as_vectors(made, [each.vector for each in found]))
    (answers,) = evaluate_many([path], seen)
    if answers.tolist() != [each.expected for each in found]:
        return found
    given = np.array([each.vector.d for each in found], answers.dtype)
    lasting = all(each.stable for each in found)
    as_if = nearest(path, seen, given, lambda one, other: one != other) if lasting else ""
    return [
        replace(
            each,
            reference_says=each.reference_says or says(path, seen.slice(number, number + 1)),
            device_as=each.device_as or as_if,
        )
        for number, each in enumerate(found)
    ]
