"""Answers that do not repeat: nothing can be derived from them, and the vector that shows it is the counterexample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.operands.batch import Batch, take
from mmaprobe.validation.shrink import shrink

TIMES = 6
"""So often a vector is asked, in changing order, before its answer counts as repeated."""


class UnstableError(Exception):
    """A vector (a batch of one) that was answered in two ways."""

    def __init__(self, vector: Batch, first: int, second: int) -> None:
        super().__init__(f"answered {first:#x}, then {second:#x}")
        self.vector, self.first, self.second = vector, first, second


class Repeats:
    """Vectors asked again and again; ``found`` is the last one seen with two answers."""

    def __init__(self, device: Device, instruction: Instruction, found: UnstableError) -> None:
        self.device, self.instruction, self.found = device, instruction, found

    def differ(self, vectors: Batch) -> NDArray[np.bool_]:
        """Which vectors get two answers or more when asked ``TIMES`` times, every other time in opposite order."""
        order = np.arange(vectors.size)
        ways = (order, order[::-1])
        each = [
            run_vectors(self.device, self.instruction, take(vectors, ways[i % 2]))[ways[i % 2]] for i in range(TIMES)
        ]
        answers = np.stack(each)
        changed: NDArray[np.bool_] = (answers != answers[0]).any(axis=0)
        if changed.any():
            at = int(changed.argmax())
            other = int(answers[answers[:, at] != answers[0, at], at][0])
            self.found = UnstableError(take(vectors, [at]), int(answers[0, at]), other)
        return changed


def check_repeats(device: Device, instruction: Instruction, vector: Batch, answer: int) -> None:
    """UnstableError where one vector, asked ``TIMES`` times, is answered otherwise than it was."""
    again = run_vectors(device, instruction, take(vector, np.zeros(TIMES, np.intp)))
    other = again[again != answer]
    if other.size:
        raise UnstableError(vector, answer, int(other[0]))


def smallest(device: Device, instruction: Instruction, found: UnstableError) -> UnstableError:
    """The simplest vector on the way down from ``found`` that does not repeat either; itself where none is seen.

    ``TIMES`` ways down, each from where the last one ended: a fault that is rare shows by chance.
    """
    repeats = Repeats(device, instruction, found)
    for _ in range(TIMES):
        shrink(instruction, repeats.found.vector, repeats.differ)
    return repeats.found
