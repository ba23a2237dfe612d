"""Vectors of codes, and many of them as the arrays that a device takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.operands.batch import Batch, Bits


@dataclass(frozen=True)
class Vector:
    """One dot product as codes: a and b of every lane that is multiplied, c where the instruction takes one.

    ``scale_a``, ``scale_b``: a code a scale block, empty for scales of 1.  Sparse: lane j is stored
    element j of A and the element of B that ``metadata`` names (empty: the first lanes of each
    chunk), ``unnamed`` the code of B's other elements; or ``b`` holds all K elements itself.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int | None
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()
    metadata: tuple[int, ...] = ()
    unnamed: int = 0


def pack(instruction: Instruction, vectors: Sequence[Vector]) -> Batch:
    """Separate vectors as a batch."""
    formats = instruction.formats()
    batch: dict[str, Bits] = {"a": np.array([v.a for v in vectors], dtype=formats["a"].dtype)}
    if instruction.chunk:
        plain = (legal_items(instruction.chunk)[0],) * (instruction.k // instruction.chunk)
        metadata = np.array([v.metadata or plain for v in vectors], dtype=np.uint8)
        lanes = kept_positions(instruction, metadata)
        rows = [_spread(v, row, instruction.k) for v, row in zip(vectors, lanes.tolist(), strict=True)]
        batch |= {"b": np.array(rows, dtype=formats["b"].dtype), "metadata": metadata}
    else:
        batch["b"] = np.array([v.b for v in vectors], dtype=formats["b"].dtype)
    if instruction.c:
        batch["c"] = np.array([v.c for v in vectors], dtype=formats["c"].dtype)
    if instruction.scale:
        fmt = formats["scale_a"]
        ones = (fmt.one,) * (instruction.k // instruction.scale_size)
        batch["scale_a"] = np.array([v.scale_a or ones for v in vectors], dtype=fmt.dtype)
        batch["scale_b"] = np.array([v.scale_b or ones for v in vectors], dtype=fmt.dtype)
    return Batch(**batch)


def _spread(vector: Vector, lanes: list[int], k: int) -> list[int]:
    """All K elements of B: those named in ``lanes``, the others as the vector says."""
    if len(vector.b) == k:
        return list(vector.b)
    row = [vector.unnamed] * k
    for lane, code in zip(lanes, vector.b, strict=True):
        row[lane] = code
    return row
