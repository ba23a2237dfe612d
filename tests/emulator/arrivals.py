"""Whether operands arrive where a second source says, and D comes back from there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from emulator.batches import random_batch
from emulator.lanes import Unit, shape_d
from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Run = Callable[[Source, Instruction, Batch, Unit], NDArray[np.unsignedinteger]]


def wrong_operands(run: Run, source: Source, instruction: Instruction) -> list[str]:
    """The operands that do not arrive, D where it does not come back; of a last, partial group too."""
    batch = random_batch(instruction, source.items + 1, 5)
    rng = np.random.default_rng(6)
    fmt = instruction.formats()["d"]
    results: list[Array] = []
    steps: list[dict[str, Array]] = []

    def unit(seen: dict[str, Array]) -> Array:
        steps.append(seen)
        shape = (len(seen["a"]), *shape_d(instruction))
        results.append(rng.integers(0, (1 << fmt.bits) - 1, shape, np.uint64, endpoint=True))
        return results[-1]

    d = run(source, instruction, batch, unit)
    wrong = [] if (d == np.concatenate(results)[: batch.size]).all() else ["d"]
    for operand, codes in batch.items():
        rebuilt = np.concatenate([step[operand] for step in steps])
        if (rebuilt[: batch.size] != codes).any() or rebuilt[batch.size :].any():
            wrong.append(operand)
    return wrong
