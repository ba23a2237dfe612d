"""Our rates on tiles, one thread: the engine on its own layout, and the Python call on row-major arrays."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import mmaprobe
from cases.engine_layout import layout_call
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators import generate
from mmaprobe.models import engine
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath

SECONDS = 0.2
ROWS = 1 << 16


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
    """Million outputs a second: natively, and through the Python call.

    Natively is the engine's own layout where the datapath has a kernel, else the engine on rows of single vectors."""
    count = tiles.a.shape[0]
    outputs = count * made.m * made.n
    model = mmaprobe.model(arch, made.id)
    scales = {name: getattr(tiles, name) for name in ("scale_a", "scale_b") if getattr(tiles, name) is not None}
    python = outputs / quickest(lambda: model(tiles.a, tiles.b, tiles.c, **scales)) / 1e6
    native = layout_call(datapath, tiles)
    if native is None:
        vectors = generate(made, "clustered", 1, 0, min(outputs, ROWS))
        return vectors.size / quickest(lambda: engine.evaluate(datapath, vectors)) / 1e6, python
    return outputs / quickest(native) / 1e6, python
