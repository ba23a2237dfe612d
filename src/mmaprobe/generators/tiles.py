"""Whole tiles from generated vectors: every output of a tile is a vector of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators.families import generate
from mmaprobe.operands.batch import PER_RESULT, Batch


def generate_tiles(
    instruction: Instruction, family: str, seed: int, start: int, count: int, version: int | None = None
) -> Batch:
    """``count`` tiles, each of max(M, N) consecutive vectors: row i of A is the a of the tile's vector i, column j
    of B the b of its vector j, and C[i, j] (random bits, too) the c of vector i where i + j is even, else of vector j.
    """
    m, n = instruction.m, instruction.n
    side = max(m, n)
    vectors = generate(instruction, family, seed, start, count * side, version)
    parts = {}
    for name in instruction.shapes(1):
        value = getattr(vectors, name).reshape(count, side, -1)
        if name in PER_RESULT:
            rows, columns = value[:, :m], value[:, :n].swapaxes(1, 2)
            parts[name] = np.where(np.add.outer(np.arange(m), np.arange(n)) % 2 == 0, rows, columns)
        else:
            parts[name] = value[:, :n].swapaxes(1, 2) if name in ("b", "scale_b") else value[:, :m]
    return Batch(**{name: np.ascontiguousarray(value) for name, value in parts.items()})


def vector_at(tiles: Batch, tile: int, row: int, column: int) -> Batch:
    """The one vector whose result is D[tile, row, column]."""
    places: dict[str, Any] = dict.fromkeys(PER_RESULT, (tile, row, column))
    places |= dict.fromkeys(("b", "scale_b"), (tile, ..., column))
    return Batch(**{name: value[places.get(name, (tile, row))][None] for name, value in tiles.items()})


def with_vectors(tiles: Batch, row: int, column: int, vectors: Batch) -> Batch:
    """Copies of the first tile, one a vector, in which D[row, column] is that of the vector."""
    parts = {}
    for name, value in tiles.items():
        parts[name] = np.repeat(value[:1], vectors.size, axis=0)
        place = (..., row, column) if name in PER_RESULT else (..., column)
        parts[name][place if name in (*PER_RESULT, "b", "scale_b") else (slice(None), row)] = getattr(vectors, name)
    return Batch(**parts)
