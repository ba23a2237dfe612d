"""Whole tiles: every output of a tile is a vector of its own.

A family's whole tiles are made by one of two rules, which versions tell apart.

- Of a version of its vectors (``versions_of``): max(M, N) consecutive vectors whose rows and columns cross.  Every
  family makes them, for every instruction.
- Of the version in ``TILE_VERSIONS``: rows aim and columns are flat (``families_tile``, ``tiles_aimed``; under block
  scales ``tiles_scaled``), so that what the family aims at holds off the diagonal, too.  It names tiles only:
  ``cancel.2`` has outputs of tiles (``INSTRUCTION/cancel.2/SEED/INDEX@ROW,COLUMN``) and no separate vectors, which stay
  those of ``cancel.1``.

A tile of either has the index of its first vector, and takes as many.  ``tile_version`` says which rule the tiles of a
validation follow; a campaign fused into a GPU's kernel makes tiles of vectors, and so does whatever takes its place.
Two models see no tiles, so that of large ones whose rows aim they compare the first rows and columns alone
(``tile_window``), and of instructions of several blocks each block is a tile.
What names a tile names its version: recipes, chunks, summaries.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import (
    FAMILIES,
    MOST_LANES,
    TILE_VERSIONS,
    VERSIONS,
    check_family,
    generate,
    stream_number,
)
from mmaprobe.generators.families_tile import TILE_FAMILIES
from mmaprobe.generators.tiles_aimed import tile_codes
from mmaprobe.generators.tiles_codes import code_tiles
from mmaprobe.operands.batch import PER_RESULT, Batch

COLUMNS = 8
"""Columns of a tile whose rows aim in a validation, at most: the results of a row aim alike, so that in wider tiles the
kills of a tile vary more than eight times as much as those of independent vectors (``benchmarks/kill_matrix.py``)."""
WINDOW = 16
"""Rows of tiles that two models compare, at most: of more, kills vary more (``benchmarks/kill_matrix.py``)."""
ROWS = 16
"""Rows of a strip of the engine layout (``csrc/cpu/kernels/tiles.hpp``)."""
MOST_BLOCK = 64
"""Lanes of a scale block that rows can aim in at most: what ``csrc/cpu/generators/aimed_tiles.hpp`` has room for."""
LEAST_BLOCK = 64
"""Outputs of a block that is a tile between models, at least: of fewer, rows cost more than vectors."""
Shape = tuple[int, int]
"""Rows and columns."""


@cache
def dependences() -> Mapping[str, float]:
    """Of families whose rows aim: how many times as much the number of mismatches varies from tile to tile as from one
    lot of as many separate vectors to the next, in the median over faults; measured by
    ``benchmarks/tile_dependence.py``."""
    text = (resources.files("mmaprobe.generators") / "data" / "dependence.toml").read_text("utf-8")
    found = tomllib.loads(text)["dependence"]
    return {name: found[name] for name in TILE_VERSIONS if name in found}


def has_tiles(instruction: Instruction, windows: bool = False) -> bool:
    """Whether outputs of whole tiles are compared, for two models (``windows``) those of blocks, too."""
    outputs = instruction.m * instruction.n
    return outputs > 1 and (instruction.blocks == 1 or (windows and outputs >= LEAST_BLOCK))


def takes_aims(instruction: Instruction) -> bool:
    """Whether rows can aim: dense tiles of floats without random bits, of lanes that the generator has."""
    t = domain(instruction)
    plain = not (t.space.chunk or instruction.random)
    floats = t.a.is_float and t.b.is_float and (t.c.is_float or not t.c.present) and min(t.a.fraction, t.b.fraction) > 0
    lanes = t.space.k <= MOST_LANES and t.space.group_lanes % ROWS == 0 and t.space.group_lanes <= MOST_BLOCK
    return bool(plain and floats and lanes and instruction.m * instruction.n > 1)


def tile_version(instruction: Instruction, family: str, windows: bool = False) -> int:
    """The version of a family that tiles of an instruction are made by in a validation, whole ones or ``windows``."""
    own, whole = TILE_VERSIONS.get(family), has_tiles(instruction, windows)
    aims = own is not None and whole and (windows or instruction.n <= COLUMNS) and can_aim(instruction, family)
    return own if own is not None and aims else VERSIONS[family]


def tile_window(instruction: Instruction) -> Shape:
    """The rows and columns of a tile whose rows aim that two models compare: all, or the first of a large one."""
    return min(instruction.m, WINDOW), min(instruction.n, COLUMNS)


def can_aim(instruction: Instruction, family: str) -> bool:
    """Whether a family that has a rule for tiles has it for those of an instruction, too."""
    rule = TILE_FAMILIES.get(family)
    return takes_aims(instruction) and (rule is None or rule.can_aim(domain(instruction)))


def generate_tiles(
    instruction: Instruction, family: str, seed: int, start: int, count: int, version: int | None = None,
    window: Shape | None = None,
) -> Batch:  # fmt: skip
    """``count`` tiles of max(M, N) indices each from vector ``start`` on, by the rule of a version (the present one of
    the family's vectors where none is named).

    Of vectors: row i of A is the a of the tile's vector i, column j of B the b of its vector j, and C[i, j] (random
    bits, too) the c of vector i where i + j is even, else of vector j.  ``window``: of tiles whose rows aim the first
    rows and columns alone.  Raises the errors of ``generate``.
    """
    if version is not None and version == TILE_VERSIONS.get(family):
        return native_tiles(instruction, family, seed, start, count, window=window)
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


def check_aimed(instruction: Instruction, family: str, seed: int, start: int, count: int) -> None:
    """UsageError where a family's own tiles do not exist for an instruction, or an index is outside 64 bits."""
    check_family(instruction, family)
    if not can_aim(instruction, family):
        what = "dense tiles of floats without random bits"
        if takes_aims(instruction):
            what = "tiles of other formats"
        raise UsageError(f"{instruction.id}: {family}.{TILE_VERSIONS[family]} makes {what}")
    last = start + count * max(instruction.m, instruction.n)
    if not 0 <= seed < 1 << 64 or not 0 <= start <= last <= 1 << 64:
        raise UsageError(f"seed {seed} and tiles {start}+{count} must fit 64 bits without sign")


def native_tiles(
    instruction: Instruction, family: str, seed: int, start: int, count: int, build: str = "",
    window: Shape | None = None,
) -> Batch:  # fmt: skip
    """A family's own tiles by the native module, whole or their first rows and columns; ``build`` names one instruction
    set's code, else the best."""
    check_aimed(instruction, family, seed, start, count)
    m, n = window or (instruction.m, instruction.n)
    k = instruction.k
    strips = -(-m // ROWS)
    groups = domain(instruction).space.groups
    shapes = {"a": (count, strips, k, ROWS), "b": (count, n, k), "c": (count, strips, n, ROWS),
              "scale_a": (count, strips, groups, ROWS), "scale_b": (count, n, groups)}  # fmt: skip
    made = {name: np.empty(shapes[name], f.dtype) for name, f in instruction.formats().items() if name in shapes}
    operands = [made.get(name) for name in ("a", "b", "c", "scale_a", "scale_b")]
    stream, packed = stream_number(family, TILE_VERSIONS[family]), domain(instruction).packed()
    whole = instruction.m, instruction.n
    _native.generate_layout(packed, FAMILIES.index(family), stream, seed, start, count, m, n, operands, build, *whole)
    parts: dict[str, Any] = {name: made[name].swapaxes(1, 2) for name in ("b", "scale_b") if name in made}
    for name in set(made) - set(parts):
        parts[name] = made[name].swapaxes(2, 3).reshape(count, strips * ROWS, made[name].shape[2])[:, :m]
    return Batch(**{name: np.ascontiguousarray(value) for name, value in parts.items()})


def reference_tiles(instruction: Instruction, family: str, seed: int, start: int, count: int) -> Batch:
    """``native_tiles`` by NumPy alone."""
    check_aimed(instruction, family, seed, start, count)
    side = max(instruction.m, instruction.n)
    first = np.arange(count, dtype=np.uint64) * np.uint64(side) + np.uint64(start)
    stream = stream_number(family, TILE_VERSIONS[family])
    t, m, n = domain(instruction), instruction.m, instruction.n
    made = code_tiles(t, seed, first, m, n) if family == "codes" else tile_codes(t, family, stream, seed, first, m, n)
    formats = instruction.formats()
    return Batch(**{name: value.astype(formats[name].dtype) for name, value in made.items()})


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
