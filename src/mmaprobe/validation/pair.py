"""Two devices, and how their answers are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native, formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_blocks, run_vectors
from mmaprobe.operands.batch import Batch, Bits


@dataclass
class Pair:
    """The device under test and its reference on one instruction; ``nan``: ``bits``, or ``any`` for NaNs that equal
    one another."""

    dut: Device
    ref: Device
    instruction: Instruction
    nan: str = "bits"

    def answer(self, device: Device, vectors: Batch) -> Bits:
        """d of separate vectors."""
        return run_vectors(device, self.instruction, vectors)

    def answer_tiles(self, device: Device, batch: Batch) -> Bits:
        """D of whole tiles."""
        return run_blocks(device, self.instruction, batch)

    def differences(self, x: Bits, y: Bits, limit: int) -> tuple[int, NDArray[np.int64]]:
        """How many items differ, and the indices of the first ``limit``."""
        x, y = np.ascontiguousarray(x.reshape(-1)), np.ascontiguousarray(y.reshape(-1))
        count, where = _native.compare(x, y, limit)
        if count == 0 or self.nan == "bits":
            return int(count), np.asarray(where, dtype=np.int64)
        indices = np.flatnonzero(self.unequal(x, y))
        return int(indices.size), indices[:limit]

    def unequal(self, x: Bits, y: Bits) -> NDArray[np.bool_]:
        """Where two answers differ; two NaNs do not under ``nan="any"``."""
        differ: NDArray[np.bool_] = x != y
        if self.nan == "any":
            fmt = formats.get(self.instruction.d)
            differ &= ~(formats.is_nan(fmt, x) & formats.is_nan(fmt, y))
        return differ
