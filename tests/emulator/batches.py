"""Batches for emulated kernels: every bit of every operand random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Run = Callable[[Source, Instruction, Batch, Callable[[dict[str, Array]], Array]], Array]


def outcome(run: Run, source: Source, made: Instruction) -> list[str]:
    """The operands of an emulated kernel that do not arrive where its second source says, D where it does not come
    from there."""
    batch = random_batch(made, 2, 5)
    rng = np.random.default_rng(6)
    limit = (1 << made.formats()["d"].bits) - 1
    results: list[Array] = []
    steps: list[dict[str, Array]] = []

    def unit(seen: dict[str, Array]) -> Array:
        steps.append(seen)
        results.append(rng.integers(0, limit, (len(seen["b"]), made.m, made.n), np.uint64, endpoint=True))
        return results[-1]

    d = run(source, made, batch, unit)
    wrong = [] if (d == np.concatenate(results)).all() else ["d"]
    assert all(step.keys() == dict(batch.items()).keys() for step in steps), "operands that the instruction lacks"
    return wrong + [
        name for name, codes in batch.items() if (np.concatenate([step[name] for step in steps]) != codes).any()
    ]


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
