"""Speed of the engine on one core: python benchmarks/bench_engine.py [BUILD ...] [--smoke]

Prints million vectors a second for each datapath of ``tests/cases/engine.py``
that the targets name (thread CPU time, best of three), on uniform bits (many
NaNs and infinities) and on clustered exponents (none).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from cases.engine import DATAPATHS, batch
from mmaprobe import _native
from mmaprobe.models import engine

CASES = (
    "fma f32", "fma f64", "vdpbf16ps", "dpps", "vpdpbusd", "vpdpwssd", "AMX bf16", "AMX f16", "T-FDPA f16",
    "T-FDPA e4m3", "mxf4nvf4", "CDNA1 f16", "CDNA1 bf16", "CDNA2 bf16_1k", "CDNA3 bf16",
)  # fmt: skip


def rate(name: str, mode: str, count: int) -> float:
    """Million vectors a second."""
    datapath = DATAPATHS[name]
    vectors = batch(datapath, mode, seed=1, count=count)
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        engine.evaluate(datapath, vectors)
        best = min(best, time.thread_time() - start)
    return count / best / 1e6


def main() -> None:
    smoke = "--smoke" in sys.argv
    builds = [name for name in sys.argv[1:] if name != "--smoke"] or _native.engine_builds()
    for build in builds:
        os.environ["MMAPROBE_ISA"] = build
        print(f"build {build}, million vectors a second: uniform bits, clustered exponents")
        for name in CASES:
            count = 1000 if smoke else 200_000
            print(f"  {name:16} {rate(name, 'uniform', count):8.1f} {rate(name, 'clustered', count):8.1f}")


if __name__ == "__main__":
    main()
