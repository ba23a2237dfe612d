"""Batches for emulated kernels: every bit of every operand random."""

from __future__ import annotations

import numpy as np

from emulator.registers import Array
from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import legal_items


def random_batch(instruction: Instruction, size: int, seed: int) -> Batch:
    """Random codes in every operand, those bits too that the unit ignores; metadata legal."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, shape in instruction.shapes(size).items():
        if name == "metadata":
            arrays[name] = rng.choice(np.array(legal_items(instruction.chunk), np.uint8), shape)
            continue
        fmt = instruction.formats()[name]
        bits = fmt.bits + fmt.padding + fmt.ignored_high
        arrays[name] = rng.integers(0, (1 << bits) - 1, shape, np.uint64, endpoint=True).astype(fmt.dtype)
    return Batch(**arrays)
