"""Where in their tiles mismatches lie: whether only in every so-manieth row, column or lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, has, vectors_per_tile

LEAST_PLACES = 24
"""Mismatches below which nothing is said: of so many by chance less than one in 2**20 are all even or all odd."""
LEAST_TILES = 12
"""Tiles with mismatches below which nothing is said of rows and columns."""
LANES = 64
"""Items of a batch of a lane-wise instruction after which its lanes come again: a wave, or four registers of 16."""
FEW = 4
"""Rows, columns or lanes that are named one by one."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class ChunkPlaces:
    """Indices of the first mismatches of a chunk, in order, of ``tiles`` whole tiles or (0) separate vectors.

    ``whole``: they are all of the chunk; else what follows the last one was not looked at.
    """

    indices: Numbers
    tiles: int
    whole: bool


@dataclass(frozen=True)
class _Axis:
    """Numbers along one side of a tile that lie between 0 and ``extent``."""

    name: str
    numbers: Numbers
    extent: int


def slots(device: Device, instruction: Instruction) -> int:
    """After how many separate vectors of a batch their places come again: lanes, or a tile's diagonal; 1 where a
    device knows no places."""
    if has(device, "run_vectors"):
        return 1
    return LANES if instruction.lane_wise else vectors_per_tile(instruction)


def pattern(device: Device, instruction: Instruction, found: Iterable[ChunkPlaces]) -> tuple[str, ...]:
    """``only every 4th column, from 1``, ``only row 3``: what all places of mismatches have in common, if anything.

    Every mismatch of the rows (tiles) that a chunk's indices cover is known, so that rows and columns that are not
    there were right.  Nothing is said of fewer than ``LEAST_PLACES``, or of fewer tiles than ``LEAST_TILES``.
    """
    found = list(found)
    name, each = "lane" if instruction.lane_wise else "place on the diagonal", slots(device, instruction)
    separate = _Axis(name, _joined([_covered(some, each) % each for some in found if not some.tiles]), each)
    said = tuple(word for axis in _tiles(instruction, found) if (word := _said(axis)))
    return said or tuple(filter(None, (_said(separate),)))


def _tiles(instruction: Instruction, found: list[ChunkPlaces]) -> Iterator[_Axis]:
    """Rows and columns of tiles, where there are enough tiles: outputs of one tile share vectors."""
    m, n = instruction.m, instruction.n
    for name, extent, whole, step in (("row", m, m * n, n), ("column", n, n, 1)):
        covered = [_covered(each, whole) for each in found if each.tiles]
        tiles = sum(np.unique(indices // (m * n)).size for indices in covered)
        numbers = _joined([indices // step % extent for indices in covered])
        yield _Axis(name, numbers if tiles >= LEAST_TILES else numbers[:0], extent)


def _covered(places: ChunkPlaces, group: int) -> Numbers:
    """The indices that lie in groups of so many outputs of which all mismatches are known."""
    if places.whole or not places.indices.size:
        return places.indices
    return places.indices[places.indices < (int(places.indices[-1]) + 1) // group * group]


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _said(axis: _Axis) -> str:
    """The period of the numbers of an axis, or the few of them that there are."""
    if axis.numbers.size < LEAST_PLACES or axis.extent < 2:
        return ""
    seen = np.unique(axis.numbers)
    period = int(np.gcd.reduce(np.diff(seen))) if seen.size > 1 else 1
    if period > 1 and seen.size == len(range(seen[0] % period, axis.extent, period)):
        return f"only every {_ordinal(period)} {axis.name}, from {seen[0] % period}"
    if seen.size <= FEW and 2 * seen.size < axis.extent:
        return f"only {axis.name} {', '.join(map(str, seen))}"
    return f"only every {_ordinal(period)} {axis.name}, from {seen[0] % period}" if period > 1 else ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
