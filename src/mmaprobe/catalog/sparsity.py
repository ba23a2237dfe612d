"""Sparse metadata: which lanes of a chunk the stored elements of A stand for, and which items are legal.

One item covers a chunk of lanes.  Chunk 4 (operands of 8 and 16 bits) keeps two
elements: bits 1:0 are the place of the first, bits 3:2 of the second.  Chunk 8
(4 bits, pairs) does the same with pairs of lanes.  Chunk 2 (tf32) keeps one: 0x4
the first, 0xe the second.  All else is undefined (PTX ISA 9.1, mma.sp; AMD: the
first below the second), and so is an order that nothing sorts: ``mma.sp``
without ``ordered_metadata`` takes the second element before the first where
the compiler puts a sort before the primitive, and only there.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError

Items = NDArray[np.unsignedinteger[Any]]

_HALVES = (0x4, 0xE)
"""The items of metadata that name the first and the second half of a chunk (PTX ISA, sparse mma of tf32)."""
_ITEMS = 256
"""Codes of an item of metadata: one byte."""


def legal_items(chunk: int, unordered: bool = False) -> tuple[int, ...]:
    """The legal metadata items of a chunk; ``unordered``: with the places in either order."""
    if chunk == 2:
        return _HALVES
    places = [(item & 3, item >> 2) for item in range(16)]
    return tuple(i for i, (x, y) in enumerate(places) if x < y or (unordered and x > y))


@cache
def kept_lanes(chunk: int) -> NDArray[np.uint8]:
    """(16, chunk/2): the lanes of the chunk that an item keeps, in the order in which A stores them."""
    if chunk == 2:
        rows = [[int(item == _HALVES[1])] for item in range(16)]
    else:
        width = chunk // 4
        rows = [[place * width + i for place in (item & 3, item >> 2) for i in range(width)] for item in range(16)]
    return np.array(rows, np.uint8)


def kept_positions(instruction: Instruction, metadata: Items) -> NDArray[np.intp]:
    """(..., K/2): the lane of B that meets each stored element of A, for legal metadata (..., K/chunk)."""
    chunk = instruction.chunk
    first = np.arange(0, instruction.k, chunk)[:, None]
    lanes = kept_lanes(chunk)[metadata] + first
    return lanes.reshape(*metadata.shape[:-1], instruction.k // 2)


def selected_lanes(instruction: Instruction, lanes: tuple[int, ...]) -> tuple[int, ...]:
    """The stored elements of A that whole chunks of lanes keep; UsageError for other lanes."""
    chunk = instruction.chunk
    half = chunk // 2
    firsts = lanes[::chunk]
    if lanes != tuple(first + i for first in firsts for i in range(chunk)) or any(first % chunk for first in firsts):
        raise UsageError(f"{instruction.id}: lanes {lanes} are not whole chunks of {chunk}")
    return tuple(first // 2 + i for first in firsts for i in range(half))


@cache
def _is_legal(chunk: int, unordered: bool) -> NDArray[np.bool_]:
    return np.isin(np.arange(_ITEMS), legal_items(chunk, unordered))


def check_metadata(instruction: Instruction, metadata: Items, sorts: bool = False) -> None:
    """UsageError naming the first illegal item of metadata (items, [blocks,] [M,] K/chunk), its place, what is legal.

    ``sorts``: the places of a form without ordered metadata may come in either order.
    """
    unordered = sorts and instruction.unordered
    legal = _is_legal(instruction.chunk, unordered).take(metadata)
    if legal.all():
        return
    place = tuple(int(i) for i in np.argwhere(~legal)[0])
    names = ["item", *["row", "chunk"][-(len(place) - 1) :]]
    if len(place) == 4:
        names.insert(1, "MFMA block")
    where = ", ".join(f"{name} {i}" for name, i in zip(names, place, strict=True))
    item = int(metadata[place])
    values = " ".join(f"{value:#x}" for value in legal_items(instruction.chunk, unordered))
    turned = instruction.unordered and item in legal_items(instruction.chunk, unordered=True)
    why = "; nothing sorts metadata here, so that the later place first is undefined" if turned else ""
    raise UsageError(f"{instruction.id}: metadata of {where} is {item:#x}; it must be one of {values}{why}")
