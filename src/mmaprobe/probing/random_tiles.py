"""Random tiles of operands: uniform bits, values around 1, and some with NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.probing.session import Session


def random_tiles(session: Session, rng: np.random.Generator, items: int) -> Batch:
    """``items`` tiles: even items uniform bits, odd ones near 1, every fourth with NaNs in lane 0 (floats)."""
    out: dict[str, Bits] = {}
    operand_formats = session.formats
    for name, shape in session.instruction.shapes(items).items():
        fmt = operand_formats[name]
        codes = rng.integers(0, fmt.code_limit, size=shape, dtype=np.uint64)
        if fmt.is_float and fmt.signed:
            width = fmt.fraction_bits + fmt.padding
            near = rng.integers(0, 1 << (width + 2), size=shape, dtype=np.uint64) + np.uint64(fmt.one - (1 << width))
            signs = rng.integers(0, 2, size=shape, dtype=np.uint64) * np.uint64(fmt.sign_mask)
            codes[1::2] = (near | signs)[1::2]
        if name == "a" and fmt.nan_code is not None:
            codes[3::4, ..., 0] = fmt.nan_code
        out[name] = codes.astype(fmt.dtype)
    return Batch(**out)


def items_for(session: Session, outputs: int) -> int:
    """How many items carry about this many outputs: 2 at least, 64 at most."""
    each = session.instruction.m * session.instruction.n * session.instruction.blocks
    return min(max(outputs // each, 2), 64)


def choose(name: str, lead: tuple[int, ...], row: int, column: int) -> tuple[Any, ...]:
    """The part of an operand that output (row, column) of item ``lead`` sees."""
    if name == "c":
        return (*lead, row, column)
    return (*lead, slice(None), column) if name in ("b", "scale_b") else (*lead, row, slice(None))
