"""Modifiers that change the operands around a datapath: which MFMA block, lane or half register feeds what.

``cbsz`` and ``abid`` feed 2^cbsz neighbouring blocks of D from one block of A;
``blgp`` permutes the 64 lanes that hold B; ``neg_lo`` and ``neg_hi`` negate every
other lane of 16-bit operands.  All are functions of tiles (or vectors) to the
same.  Source: AMD CDNA1 to CDNA3 ISA, MFMA; ROCm/amd_matrix_instruction_calculator
1.3.2.  Of ``abid`` a note kept with AMD's emulator says otherwise (lane l takes
lane l mod S + S abid, S = 64 / 2^cbsz, which agrees for a full broadcast only);
the rule here is that of the calculator, the lab notes and the HIP documentation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import moves_operands, operand_signs
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, flipped

_LANES = np.arange(64)
_USED = (
    _LANES, _LANES % 32, _LANES % 32 + 32, (_LANES + 16) % 64, *(_LANES % 16 + first for first in (0, 16, 32, 48)),
)  # fmt: skip
"""The lane of B that each lane uses, for blgp 0 to 7."""


def of_tiles(made: Instruction, tiles: Batch) -> Batch:
    """Tiles of ``Instruction.shapes`` as the unit multiplies them."""
    if not made.takes:
        return tiles
    tiles = _negated(made, tiles, {"a": -1, "b": -2})
    if not moves_operands(made):
        return tiles
    given = made.modifier
    blocks = np.arange(made.blocks)
    size = 1 << int(given.get("cbsz", "0"))
    a = tiles.a[:, blocks // size * size + int(given.get("abid", "0"))] if size > 1 else tiles.a
    source = _b_source(made.n, made.k, made.blocks, int(given.get("blgp", "0")))
    b = tiles.b.reshape(tiles.size, -1)[:, source].reshape(tiles.b.shape)
    return replace(tiles, a=a, b=b)


def of_vectors(made: Instruction, vectors: Batch) -> Batch:
    """Separate vectors as the unit multiplies them; UsageError where a modifier moves operands within a tile."""
    if not made.takes:
        return vectors
    if moves_operands(made):
        raise UsageError(f"{made.id} moves operands within a tile; call it with tiles, not with single vectors")
    return _negated(made, vectors, {"a": -1, "b": -1})


@cache
def _b_source(n: int, k: int, blocks: int, blgp: int) -> NDArray[np.intp]:
    """For each element of B (blocks, K, N), flat: the element that feeds it.

    Element (b, k, j) lies in slot k mod s of lane j + N (b + blocks (k div s)),
    with s = K N blocks / 64 elements in a lane.
    """
    slots = k * n * blocks // len(_LANES)
    block, inner, column = np.meshgrid(np.arange(blocks), np.arange(k), np.arange(n), indexing="ij")
    lane = _USED[blgp][column + n * (block + blocks * (inner // slots))]
    place = lane // n
    source = (place % blocks) * k + place // blocks * slots + inner % slots
    return (source * n + lane % n).reshape(-1).astype(np.intp)


def _negated(made: Instruction, batch: Batch, axes: dict[str, int]) -> Batch:
    """Operands that are negated in every other lane along their axis of lanes; the rest is the datapath's."""
    changes = {}
    for name, (even, odd) in operand_signs(made).items():
        if even != odd:
            changes[name] = flipped(getattr(batch, name), axes[name], (even, odd), made.formats()[name].sign_mask)
    return replace(batch, **changes)
