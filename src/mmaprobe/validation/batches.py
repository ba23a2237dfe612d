"""How a family's vectors are cut into batches: of many sizes by chance, and some of them asked twice.

A fault may hang on a batch's size, on how many came before, or on having been asked the same before; so sizes go from 1
to ``LARGEST`` vectors, and no device can know which batch comes again.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import vectors_per_tile
from mmaprobe.generators.families import STREAMED, VERSIONS
from mmaprobe.generators.tiles import Shape, has_tiles, tile_version, tile_window
from mmaprobe.validation.coverage.sample import ComparedRun

CHUNK = 1 << 15
"""Vectors of an ordinary batch at most."""
LARGEST = 1 << 17
"""Vectors of the largest batch: one of each family that has so many."""
MEMORY = 1 << 28
"""Bytes of operands beyond which no batch is larger than an ordinary one."""
SMALL = 192
"""Small batches of a validation at most (and one a family)."""
SHARE = 5000
"""Vectors of a validation for each small batch."""
WIDEST = 5
"""Small batches have fewer tiles or vectors than two to this power."""
TILES_OF = 4
"""Of four of a tile instruction's vectors three are outputs of whole tiles; the other is alone on a diagonal."""
AIMED_OF = 2048
"""The same where all of a tile's outputs are what the family aims at: of so many vectors all but one are outputs."""
FIRST_OF = 64
"""Of those one of so many at least is alone, and two models compare it first: outputs of a tile share rows and columns,
so that what one vector in ten shows may need a tile or two, but ten vectors on their own."""
FIRST = 512
"""More than so many are alone only by the share above."""


@dataclass(frozen=True)
class Chunk:
    """``count`` vectors of a family from ``start`` on, or the outputs of ``tiles``, made by the rule of a ``version``
    (None: that of the family's vectors), whole or (``window``) their first rows and columns; ``twice``: one of two
    batches that are the same."""

    family: str
    start: int
    count: int
    tiles: int = 0
    fused: bool = False
    twice: bool = False
    version: int | None = None
    window: Shape | None = None


@dataclass(frozen=True)
class _Tiling:
    """How many of a family's vectors are outputs of tiles: ``tiles`` of so many ``outputs`` and indices (``side``), all
    of them what the family aims at or not."""

    vectors: int
    tiles: int
    outputs: int
    side: int
    version: int | None
    window: Shape | None
    aimed: bool

    @property
    def count(self) -> int:
        """Outputs of all."""
        return self.tiles * self.outputs

    @property
    def alone(self) -> int:
        """Vectors on their own."""
        return self.vectors - self.count

    @property
    def starts(self) -> tuple[int, int]:
        """Indices of the first vector on its own and of the first tile, from that of the share on."""
        return (0, self.alone) if self.aimed else (self.tiles * self.side, 0)


def small_batches(vectors: int, families: int) -> int:
    """How many small batches each family of a validation gets."""
    return max(1, min(vectors // SHARE, SMALL) // families)


def even(instruction: Instruction, family: str, start: int, count: int, size: int) -> Iterator[Chunk]:
    """Chunks of ``size`` vectors, for models that never see a batch: vectors on their own, then tiles."""
    tiling = _tiles(instruction, family, count, True)
    single, tile = (start + at for at in tiling.starts)
    yield from _placed(family, single, _equal(tiling.alone, size))
    yield from _placed(family, tile, _equal(tiling.tiles, max(1, size // tiling.outputs)), tiling)


def varied(instruction: Instruction, family: str, start: int, count: int, small: int, seed: int) -> Iterator[Chunk]:
    """Whole tiles first (for a tile instruction), then separate vectors: each in batches of all sizes, some twice."""
    tiling = _tiles(instruction, family, count, False)
    single, tile = (start + at for at in tiling.starts)
    tiles, outputs = tiling.tiles, tiling.outputs
    few = -(-small // 2) if tiles else small
    if tiles:
        most = max(1, LARGEST // outputs)
        head, rest = _sizes(
            tiles, max(1, CHUNK // outputs), most, _room(instruction), few, _random(family, start, seed)
        )
        yield from _with_repeats(_placed(family, tile, head, tiling))
        yield from _placed(family, tile + sum(head) * tiling.side, rest, tiling)
    yield from alone(instruction, family, single, tiling.alone, few, seed)


def alone(instruction: Instruction, family: str, start: int, count: int, small: int, seed: int) -> Iterator[Chunk]:
    """Separate vectors in batches of all sizes, some of them twice."""
    room = _room(instruction) * vectors_per_tile(instruction)
    head, rest = _sizes(count, CHUNK, LARGEST, room, small, _random(family, start, seed))
    yield from _with_repeats(_placed(family, start, head))
    yield from _placed(family, start + sum(head), rest)


def _random(family: str, start: int, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(family.encode()), start])


def end_of(instruction: Instruction, chunk: Chunk) -> int:
    """The index of the first vector after a chunk."""
    return chunk.start + (chunk.tiles * max(instruction.m, instruction.n) or chunk.count)


def compared_runs(
    instruction: Instruction, family: str, start: int, count: int, windows: bool = False
) -> Iterator[ComparedRun]:
    """So many vectors of a family as ``even`` (``windows``) or ``varied`` take them: tiles and those on their own."""
    tiling = _tiles(instruction, family, count, windows)
    single, tile = (start + at for at in tiling.starts)
    tiled = ComparedRun(family, tile, tiling.count, tiling.tiles, tiling.version, tiling.window)
    runs = [ComparedRun(family, single, tiling.alone), *[tiled] * bool(tiling.tiles)]
    yield from runs if windows else reversed(runs)


def _tiles(instruction: Instruction, family: str, count: int, windows: bool) -> _Tiling:
    """The tiles among so many vectors of a family: whole ones, or where rows aim ``windows`` of them."""
    version = tile_version(instruction, family, windows)
    aims = version != VERSIONS[family]
    m, n = tile_window(instruction) if aims and windows else (instruction.m, instruction.n)
    aimed = aims or family in STREAMED
    share = AIMED_OF if aimed else TILES_OF
    outputs, whole = m * n, (m, n) == (instruction.m, instruction.n)
    separate = max(-(-count // share), min(count // FIRST_OF, FIRST) * aimed)
    tiles = (count - separate) // outputs if has_tiles(instruction, windows) else 0
    own = version if aims else None
    return _Tiling(count, tiles, outputs, max(instruction.m, instruction.n), own, None if whole else (m, n), aimed)


def _room(instruction: Instruction) -> int:
    """Tiles whose operands take ``MEMORY``, about."""
    widths = {name: fmt.dtype.itemsize for name, fmt in instruction.formats().items()}
    each = sum(math.prod(shape) * widths.get(name, 1) for name, shape in instruction.shapes(1).items())
    return MEMORY // each


def _sizes(
    count: int, ordinary: int, largest: int, room: int, few: int, random: np.random.Generator
) -> tuple[list[int], Iterator[int]]:
    """Sizes that add up to ``count``: ``few`` small ones that take an eighth at most, one of a sixteenth and one as
    large as can be, in any order; and the rest."""
    drawn = np.exp2(random.random(few) * WIDEST).astype(int)
    small = drawn[np.cumsum(drawn) <= count // 8].tolist()
    medium = min(count // 16, ordinary)
    left = count - sum(small) - medium
    large = min(left, max(min(largest, room), ordinary))
    head = [each for each in (*small, medium, large) if each]
    order = [head[int(i)] for i in random.permutation(len(head))]
    return order, _by_chance(left - large, ordinary, random)


def _by_chance(count: int, most: int, random: np.random.Generator) -> Iterator[int]:
    """Sizes of half the most to the most that add up to ``count``."""
    while count:
        here = min(count, int(random.integers(most - most // 2, most + 1)))
        yield here
        count -= here


def _equal(count: int, size: int) -> Iterator[int]:
    return (min(size, count - done) for done in range(0, count, size))


def _placed(family: str, start: int, sizes: Iterable[int], tiling: _Tiling | None = None) -> Iterator[Chunk]:
    """Chunks of these sizes one after another: of tiles, or of separate vectors."""
    for size in sizes:
        if tiling is None:
            yield Chunk(family, start, size)
        else:
            yield Chunk(family, start, size * tiling.outputs, size, version=tiling.version, window=tiling.window)
        start += size * (tiling.side if tiling else 1)


def _with_repeats(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks; of every four that are not the largest one again at once, and one when all were asked."""
    every = list(chunks)
    largest = max(every, key=lambda chunk: chunk.count, default=None)
    others = [chunk for chunk in every if chunk is not largest]
    at_once, later = others[::4], others[2::4]
    marked = {chunk: replace(chunk, twice=True) for chunk in (*at_once, *later)}
    for chunk in every:
        yield marked.get(chunk, chunk)
        if chunk in at_once:
            yield marked[chunk]
    yield from (marked[chunk] for chunk in later)
