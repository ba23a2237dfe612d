"""Why two answers differ, on both sides: how a model comes to its own, and what changed in it gives the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gemm import GemmDevice
from mmaprobe.devices.model import ModelDevice
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.generators import Recipe
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.hexfloat import difference, shown
from mmaprobe.models.model import bind
from mmaprobe.models.stages import evaluate
from mmaprobe.models.trace import Event, Trace
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes, in_words
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.showing import counted
from mmaprobe.validation.native import datapath_of
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.products.partial_sums import schedule_says

MOST_CHANGES = 3
"""Changes that are named where several give all answers."""
MOST_WORDS = 6
"""Things that are told of an evaluation, the last ones: most terms of a smallest form are zeros."""


def explained(pair: Pair, found: Sequence[Mismatch], more: Batch | None = None) -> tuple[Mismatch, ...]:
    """The mismatches with what is known of both sides; what no model is at hand for stays open.

    Where the reference is a model, ``reference_says`` is how it evaluates the smallest vector, and ``device_as`` the
    one change to its datapath (``parameters.neighbours``) that gives every answer of the device to all vectors kept,
    and to ``more`` vectors, on some of which the two may agree.  Of a schedule it is what its ranges come to.
    """
    if isinstance(pair.ref, GemmDevice):
        return tuple(replace(each, reference_says=_by_schedule(pair.ref, pair.instruction, each)) for each in found)
    path = datapath_of(pair.ref, pair.instruction)
    if path is None or not found:
        return tuple(found)
    lasting = all(each.stable and not each.vector.note for each in found)
    as_if = answers_as(pair, path, found, more) if lasting else ""
    return tuple(
        replace(each, reference_says=says(path, _dense(pair, path, [each.shrunk or each.vector])), device_as=as_if)
        for each in found
    )


def _by_schedule(ref: GemmDevice, made: Instruction, mismatch: Mismatch) -> str:
    """How a schedule comes to a mismatch's smallest vector, in the place at which it is seen."""
    witness = mismatch.shrunk or mismatch.vector
    place = Recipe.parse(mismatch.recipe).place if witness.note else None
    return schedule_says(ref, made, as_vectors(made, [witness]), place or (0, 0))


def answers_as(pair: Pair, path: Datapath, found: Sequence[Mismatch], more: Batch | None = None) -> str:
    """``rounding of the result of the sum RNE, not RZ``: the nearest datapath that gives the device's answers; ``""``
    where no single change does."""
    asked = [witness for each in found for witness in (each.vector, each.shrunk) if witness is not None]
    if more is not None:
        answers = pair.answer(pair.dut, more)
        asked += [Witness.of(more.slice(i, i + 1), int(answers[i])) for i in range(more.size)]
    given = np.array([witness.d for witness in asked], formats.get(pair.instruction.d).dtype)
    return nearest(path, _dense(pair, path, asked), given, pair.unequal)


def nearest(path: Datapath, vectors: Batch, given: Bits, unequal: Callable[[Bits, Bits], Any]) -> str:
    """The changes of one field of a datapath that give these answers to what it sees of vectors; ``""`` where none
    does."""
    near = neighbours(path)
    if not near:
        return ""
    rivals = evaluate_many([each.datapath for each in near], vectors)
    fits = [each for each, d in zip(near, rivals, strict=True) if not unequal(d, given).any()]
    said = [_change(path, each.datapath) for each in fits[:MOST_CHANGES]]
    return " or ".join(said) + (f" or {len(fits) - len(said)} other changes" if len(fits) > len(said) else "")


def _change(path: Datapath, near: Datapath) -> str:
    return "; ".join(f"{in_words(field)} {new}, not {old}" for field, old, new in datapath_changes(path, near))


def says(path: Datapath, vector: Batch) -> str:
    """How a datapath evaluates one vector, in a line: what is cut, the exact sum, and what becomes of it."""
    trace = Trace()
    evaluate(path, vector, trace)
    words = [word for event in trace.events for word in _told(event)]
    return ("... " if len(words) > MOST_WORDS else "") + "; ".join(words[-MOST_WORDS:])


def _told(event: Event) -> Iterator[str]:
    values = event.values
    if event.what == "fused":
        yield f"aligned {_cut(values)}"
    elif event.what == "encode":
        exact, done, to = values["exact"], values["rounded"], values["to"]
        decimal = not formats.get(to.format).is_float
        lost = difference(exact, done)
        rounding = f"{to.rounding} to {to.format}" if to.rounding != "none" else f"as {to.format}"
        yield f"sum {shown(exact, (0,), decimal)}, {rounding} {shown(done, (0,), decimal)}" + (
            f", off by {lost}" if lost else ""
        )
    elif event.what == "result" and values["nan"][0]:
        yield "a NaN by its rule"


def _cut(values: dict[str, Any]) -> str:
    """How much of the terms of an aligned sum lies below its last place."""
    lost = [
        difference(term, kept, at)
        for term, kept in zip(values["terms"], values["aligned"], strict=True)
        for at in np.ndindex(term.negative.shape)
    ]
    cut = [each for each in lost if each]
    return (
        f"{len(cut)} of {len(lost)} terms cut, the first by {cut[0]}"
        if cut
        else f"{counted(len(lost), 'term')}, none cut"
    )


def _dense(pair: Pair, path: Datapath, witnesses: Sequence[Witness]) -> Batch:
    """What the datapath sees of vectors, as modifiers and metadata leave them."""
    sorts = isinstance(pair.ref, ModelDevice) and pair.ref.sorts(pair.instruction)
    return bind(pair.instruction, path, sorts).dense(as_vectors(pair.instruction, witnesses))
