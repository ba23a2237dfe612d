"""Look at a mismatch again: does it stay, does it need its place in a tile, and what is its simplest form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.generators.tiles import with_vectors
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.validation.shrink import shrink

RETESTS = 4
"""How often a vector that differs is asked again."""
Answer = Callable[[Batch], Bits]
Unequal = Callable[[Bits, Bits], NDArray[np.bool_]]
"""Where two answers differ, by the rule of the comparison."""


@dataclass(frozen=True)
class Example:
    """A vector on which the devices differed; ``tile`` and ``place`` where it was the output of a whole tile."""

    recipe: str
    vector: Batch
    tile: Batch | None = None
    place: tuple[int, int] = (0, 0)


def examine(
    example: Example,
    instruction: Instruction,
    unequal: Unequal,
    shrinks: bool,
    dut: Answer,
    ref: Answer,
    dut_tiles: Answer,
    ref_tiles: Answer,
) -> Mismatch:
    """Ask ``RETESTS`` times again; a mismatch that stays is shrunk.

    A vector is asked alone; where it answers rightly alone, in its place in its
    tile, whose other outputs stay as they were.
    """
    found = _retest(example, instruction, unequal, shrinks, dut, ref, "")
    if found.stable or example.tile is None:
        return found
    tile, (row, column) = example.tile, example.place

    def inside(answer: Answer) -> Answer:
        return lambda vectors: answer(with_vectors(tile, row, column, vectors))[:, row, column]

    note = f"only in row {row}, column {column} of its tile"
    return _retest(example, instruction, unequal, shrinks, inside(dut_tiles), inside(ref_tiles), note)


def _retest(
    example: Example, instruction: Instruction, unequal: Unequal, shrinks: bool, dut: Answer, ref: Answer, note: str
) -> Mismatch:
    vector = example.vector
    answers, expected = [dut(vector) for _ in range(RETESTS)], ref(vector)
    witness = Witness.of(vector, int(answers[0][0]), note)
    changed = any((other != answers[0]).any() for other in answers)
    if changed or not unequal(answers[0], expected).any():
        return Mismatch(witness, int(expected[0]), example.recipe, stable=False)
    if not shrinks:
        return Mismatch(witness, int(expected[0]), example.recipe)
    small = shrink(instruction, vector, lambda vectors: unequal(dut(vectors), ref(vectors)))
    proof = Witness.of(small, int(dut(small)[0]), note)
    return Mismatch(witness, int(expected[0]), example.recipe, True, proof, int(ref(small)[0]))
