"""Sparse operands: the lanes of B that metadata selects, and with them a dense problem of K/2 lanes.

Stored element j of a row of A meets the lane of B that the row's metadata
names; the products that exist are these K/2, in the order in which A stores
them.  A tile's rows select for themselves, so one becomes M tiles of one row.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import check_metadata, kept_lanes
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits


def dense_vectors(instruction: Instruction, vectors: Batch, sorts: bool = False) -> Batch:
    """The vectors a (n, K/2), b (n, K/2), c, scales of those with b (n, K) and metadata (n, K/chunk).

    ``sorts``: the lowering orders metadata first (``sparsity.check_metadata``).
    UsageError for metadata that is missing, illegal or of the wrong shape.
    """
    metadata = _metadata(instruction, vectors, sorts)
    if vectors.b.shape != (vectors.size, instruction.k):
        raise UsageError(f"operand b: {instruction.id} takes {(vectors.size, instruction.k)}, got {vectors.b.shape}")
    b = _select(instruction, vectors.b[:, :, None], metadata[:, None, :])
    return replace(vectors, b=b.reshape(vectors.size, -1), metadata=None)


def dense_rows(instruction: Instruction, tiles: Batch) -> Batch:
    """Tiles of one row for flat tiles (n, M, K/2), (n, K, N), ... whose metadata is legal: (n M, 1, K/2), ..."""
    n, m = tiles.a.shape[:2]
    assert tiles.metadata is not None
    b = _select(instruction, tiles.b, tiles.metadata)
    rows = {name: value.reshape(n * m, 1, -1) for name, value in tiles.items() if name in ("a", "scale_a", *PER_RESULT)}
    if tiles.scale_b is not None:
        rows["scale_b"] = np.repeat(tiles.scale_b, m, axis=0)
    return Batch(b=b.reshape(n * m, *b.shape[2:]), **rows)


def _metadata(instruction: Instruction, vectors: Batch, sorts: bool) -> Bits:
    shape = (vectors.size, instruction.k // instruction.chunk)
    came = vectors.metadata
    if came is None or came.shape != shape or came.dtype != np.uint8:
        got = "nothing" if came is None else f"{came.dtype} {came.shape}"
        raise UsageError(f"operand metadata: {instruction.id} takes uint8 {shape}, got {got}")
    check_metadata(instruction, came, sorts)
    return came


def _select(instruction: Instruction, b: Bits, metadata: Bits) -> Bits:
    """out (groups, rows, K/2, width): the rows of b (groups, K, width) that metadata (groups, rows, K/chunk) keeps."""
    native = np.ascontiguousarray(b, b.dtype.newbyteorder("="))
    out = np.empty((*metadata.shape[:2], instruction.selected, b.shape[2]), native.dtype)
    if math.prod(out.shape):
        _native.select_lanes(native, np.ascontiguousarray(metadata), kept_lanes(instruction.chunk), out)
    return out
