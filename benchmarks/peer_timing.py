"""Our rates on tiles, one thread: the engine on its own layout, and the Python call on row-major arrays."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import mmaprobe
from engine_layout import layout_call
from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.parameters.datapath import Datapath

SECONDS = 0.2


def quickest(call: Callable[[], object]) -> float:
    """Seconds of thread time that the best of several calls takes."""
    call()
    spent, best = 0.0, float("inf")
    while spent < SECONDS:
        start = time.thread_time()
        call()
        took = time.thread_time() - start
        spent, best = spent + took, min(best, took)
    return max(best, 1e-9)


def our_rates(arch: str, made: Instruction, datapath: Datapath, tiles: Batch) -> tuple[float, float]:
    """Million outputs a second: on the engine's layout (0 where the datapath has no kernel), and through the call."""
    count = tiles.a.shape[0]
    outputs = count * made.m * made.n
    model = mmaprobe.model(arch, made.id)
    operands = (tiles.a, tiles.b, tiles.c, tiles.scale_a, tiles.scale_b)
    call = {name: x for name, x in zip(("a", "b", "c", "scale_a", "scale_b"), operands, strict=True) if x is not None}
    python = outputs / quickest(lambda: model(**call)) / 1e6
    native = layout_call(datapath, tiles)
    return 0.0 if native is None else outputs / quickest(native) / 1e6, python
