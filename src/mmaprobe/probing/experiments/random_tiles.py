"""Random tiles of operands: uniform bits, values around 1, and some with NaNs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.session.session import ProbeSession


def random_tiles(session: ProbeSession, rng: np.random.Generator, items: int) -> Batch:
    """``items`` tiles: even items uniform bits, odd ones near 1, every fourth with NaNs in lane 0 (floats)."""
    out: dict[str, Bits] = {}
    operand_formats = session.formats
    for name, shape in session.instruction.shapes(items).items():
        if name == "metadata":
            out[name] = rng.choice(np.array(legal_items(session.instruction.chunk), np.uint8), shape)
            continue
        fmt = operand_formats[name]
        codes = rng.integers(0, fmt.code_limit, size=shape, dtype=np.uint64)
        if fmt.is_float and fmt.signed:
            width = fmt.fraction_bits + fmt.padding
            near = rng.integers(0, 1 << (width + 2), size=shape, dtype=np.uint64) + np.uint64(fmt.one - (1 << width))
            signs = rng.integers(0, 2, size=shape, dtype=np.uint64) * np.uint64(fmt.sign_mask)
            codes[1::2] = (near | signs)[1::2]
        elif name.startswith("scale"):
            codes[1::2] = fmt.one
        if name == "a" and fmt.nan_code is not None:
            codes[3::4, ..., 0] = fmt.nan_code
        out[name] = codes.astype(fmt.dtype)
    return Batch(**out)


def items_for(session: ProbeSession, outputs: int) -> int:
    """How many items carry about this many outputs: 4 to 128."""
    each = session.instruction.m * session.instruction.n * session.instruction.blocks
    return min(max(outputs // each, 4), 128)


def join(tiles: Sequence[Batch]) -> Batch:
    """One batch of all the tiles, in order."""
    return Batch(**{name: np.concatenate([getattr(t, name) for t in tiles]) for name, _ in tiles[0].items()})
