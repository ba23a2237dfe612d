"""A kernel of ``mma.sync`` as a function on batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emulator.lanes import Unit, run_lanes
from emulator.registers import WarpUnit
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source


def run_warp(source: Source, instruction: Instruction, batch: Batch, unit: Unit) -> NDArray[np.unsignedinteger]:
    """D of a batch, each group of items by the 32 lanes of a warp."""
    return run_lanes(source, instruction, batch, unit, WarpUnit(instruction))
