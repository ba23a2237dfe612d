"""Vectors of codes, and many of them as the arrays that a device takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction


@dataclass(frozen=True)
class Vector:
    """One dot product as codes: a and b of every lane, c where the instruction takes one."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int | None


def pack(instruction: Instruction, vectors: Sequence[Vector]) -> Batch:
    """Separate vectors as a batch; block scales, where the instruction has them, are all 1."""
    formats = instruction.formats()
    n = len(vectors)
    batch: dict[str, Bits] = {
        "a": np.array([v.a for v in vectors], dtype=formats["a"].dtype),
        "b": np.array([v.b for v in vectors], dtype=formats["b"].dtype),
    }
    if instruction.c:
        batch["c"] = np.array([v.c for v in vectors], dtype=formats["c"].dtype)
    if instruction.scale:
        one = np.full((n, instruction.k // instruction.scale_size), formats["scale_a"].one)
        batch["scale_a"] = batch["scale_b"] = one.astype(formats["scale_a"].dtype)
    return Batch(**batch)
