"""Vectors written down: witnesses as a batch again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch, Witness


def as_vectors(instruction: Instruction, witnesses: Sequence[Witness]) -> Batch:
    """The vectors of witnesses in one-vector shapes and the types of the instruction's formats."""
    types = {name: fmt.dtype for name, fmt in instruction.formats().items()}
    names = [each.name for each in fields(Batch) if getattr(witnesses[0], each.name) not in (None, ())]
    return Batch(**{
        name: np.array([getattr(witness, name) for witness in witnesses], types.get(name, np.uint8)) for name in names
    })  # fmt: skip
