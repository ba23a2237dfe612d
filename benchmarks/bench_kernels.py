"""Speed of the kernels on one core: python benchmarks/bench_kernels.py [BUILD ...] [--smoke]

Million vectors a second (thread CPU time, best of several) of m16n8 tiles on
clustered exponents: in the engine's own layout, through the call on row-major
tiles, of separate vectors, and by the interpreter on those; then the kernel on
uniform bits, and its ratio to the interpreter. ``mmaprobe bench`` gives shares
of the machine's roof.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import numpy as np

from cases.engine import batch
from cases.engine_layout import layout_call, tiles_of
from mmaprobe import _native, formats
from mmaprobe.models import engine, program_rows
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load

FORMS = (
    ("sm_90a", "HMMA.16816.F32[f16,f16->f32]"),
    ("sm_90a", "HMMA.16816.F16[f16,f16->f16]"),
    ("sm_80", "HMMA.16816.F32[f16,f16->f32]"),
    ("sm_90a", "HMMA.16816.F32.BF16[bf16,bf16->f32]"),
    ("sm_90a", "HMMA.1688.F32.TF32[tf32,tf32->f32]"),
    ("sm_90a", "QGMMA.F32.E4M3.E4M3[e4m3,e4m3->f32,k32]"),
    ("gfx1100", "WMMA.F16[f16,f16->f32,k16]"),
    ("gfx1100", "WMMA.BF16[bf16,bf16->f32,k16]"),
    ("gfx1100", "WMMA.F16[f16,f16->f16,k16]"),
    ("gfx1201", "WMMA.F16.W32[f16,f16->f32,k16]"),
    ("gfx1201", "WMMA.BF16.W32[bf16,bf16->bf16,k16]"),
)
KERNEL = program_rows.COLUMNS["header"].index("kernel")


def rate(work: Callable[[], object], vectors: int, trials: int) -> float:
    """Million vectors a second."""
    best = float("inf")
    for _ in range(trials):
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return vectors / best / 1e6


def interpreter(path: Datapath, vectors: Batch, build: str) -> Callable[[], object]:
    """A call of the interpreter: the program without its kernel."""
    found = program(path)
    assert found is not None
    words = found.copy()
    words[KERNEL] = 0
    out = np.empty((1, vectors.size), formats.get(path.d).dtype)
    operands = [vectors.a, vectors.b, vectors.c, vectors.scale_a, vectors.scale_b, None]
    return lambda: _native.engine_evaluate([words], operands, out, build)


def line(name: str, path: Datapath, build: str, count: int, trials: int) -> str:
    """One row of the table."""
    vectors = batch(path, "clustered", 1, count)
    tiles = tiles_of(vectors, 16, 8)
    native, uniform = layout_call(path, tiles), layout_call(path, tiles_of(batch(path, "uniform", 1, count), 16, 8))
    if native is None or uniform is None:
        return f"  {name:44} no kernel"
    found = [
        rate(native, count, trials),
        rate(lambda: engine.evaluate_tiles(path, tiles), count, trials),
        rate(lambda: engine.evaluate(path, vectors), count, trials),
        rate(interpreter(path, vectors, build), count, max(2, trials // 8)),
        rate(uniform, count, trials),
    ]
    return f"  {name:44}" + "".join(f"{x:9.1f}" for x in found) + f"{found[0] / found[3]:8.0f}x"


def main() -> None:
    smoke = "--smoke" in sys.argv
    builds = [name for name in sys.argv[1:] if name != "--smoke"] or _native.engine_builds()
    for build in builds:
        os.environ["MMAPROBE_ISA"] = build
        print(f"build {build}" + " " * 38 + "layout  tiles  vectors  interpreter  uniform  layout/interpreter")
        for architecture, primitive in FORMS:
            path = load(architecture).entries[primitive].datapath
            print(line(f"{architecture} {primitive}", path, build, 2048 if smoke else 1 << 16, 2 if smoke else 40))


if __name__ == "__main__":
    main()
