"""Vectors of codes, and many of them as the arrays that a device takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.codes import Codes, rows


@dataclass(frozen=True)
class Vector:
    """One dot product as codes: a and b of every lane that is multiplied, c where the instruction takes one.

    ``scale_a``, ``scale_b``: a code a scale block, empty for scales of 1.  Sparse: lane j is stored
    element j of A and the element of B that ``metadata`` names (empty: the first lanes of each
    chunk), ``unnamed`` the code of B's other elements; or ``b`` holds all K elements itself.
    """

    a: Codes
    b: Codes
    c: int | None
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()
    metadata: tuple[int, ...] = ()
    unnamed: int = 0


def pack(instruction: Instruction, vectors: Sequence[Vector]) -> Batch:
    """Separate vectors as a batch."""
    formats = instruction.formats()
    batch: dict[str, Bits] = {"a": rows([v.a for v in vectors], formats["a"].dtype)}
    if instruction.chunk:
        plain = (legal_items(instruction.chunk)[0],) * (instruction.k // instruction.chunk)
        metadata = np.array([v.metadata or plain for v in vectors], dtype=np.uint8)
        lanes = kept_positions(instruction, metadata)
        batch |= {"b": _spread(vectors, lanes, instruction.k, formats["b"].dtype), "metadata": metadata}
    else:
        batch["b"] = rows([v.b for v in vectors], formats["b"].dtype)
    if instruction.c:
        batch["c"] = np.array([v.c for v in vectors], dtype=formats["c"].dtype)
    if instruction.scale:
        fmt = formats["scale_a"]
        ones = (fmt.one,) * (instruction.k // instruction.scale_size)
        batch["scale_a"] = np.array([v.scale_a or ones for v in vectors], dtype=fmt.dtype)
        batch["scale_b"] = np.array([v.scale_b or ones for v in vectors], dtype=fmt.dtype)
    return Batch(**batch)


def _spread(vectors: Sequence[Vector], lanes: NDArray[np.int64], k: int, dtype: Any) -> Bits:
    """All K elements of B of each: those named in ``lanes``, the others as the vector says."""
    whole = np.array([len(vector.b) == k for vector in vectors])
    found = np.repeat(np.array([vector.unnamed for vector in vectors], dtype)[:, None], k, axis=1)
    if whole.any():
        found[whole] = rows([vector.b for vector in vectors if len(vector.b) == k], dtype)
    if not whole.all():
        some = found[~whole]
        np.put_along_axis(some, lanes[~whole], rows([v.b for v in vectors if len(v.b) != k], dtype), axis=1)
        found[~whole] = some
    return found
