"""Speed of the generators on one core: python benchmarks/bench_generators.py [BUILD ...] [--smoke]

Prints million vectors a second of each family (thread CPU time, best of three)
and GB/s of operands for uniform bits.
"""

from __future__ import annotations

import sys
import time

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators import families_for
from mmaprobe.generators.families import native_batch

SHAPES = [
    ("f32", "f32", "f32", 1), ("f64", "f64", "f64", 1), ("bf16", "bf16", "f32", 2), ("bf16", "bf16", "f32", 4),
    ("f16", "f16", "f32", 16), ("f16", "f16", "f32", 32), ("e4m3", "e4m3", "f32", 32), ("u8", "s8", "s32", 4),
]  # fmt: skip


def seconds(instruction: Instruction, family: str, count: int, build: str) -> tuple[float, int]:
    """Best thread CPU time of three runs, and the bytes made."""
    best, size = float("inf"), 0
    for _ in range(3):
        start = time.thread_time()
        batch = native_batch(instruction, family, 1, 0, count, build)
        best = min(best, time.thread_time() - start)
        size = sum(codes.nbytes for _, codes in batch.items())
    return best, size


def main() -> None:
    smoke = "--smoke" in sys.argv
    builds = [name for name in sys.argv[1:] if name != "--smoke"] or _native.generator_builds()
    for build in builds:
        print(f"build {build}, million vectors a second")
        for a, b, c, k in SHAPES:
            name = f"{c}.{a}.{b}.k{k}"
            instruction = Instruction(name, name, "bench", 1, 1, k, a, b, c, c)
            cells = []
            for family in families_for(instruction):
                count = 1000 if smoke else 1 + 500_000 // k
                best, size = seconds(instruction, family, count, build)
                rate = f" ({size / best / 1e9:.2f} GB/s)" if family == "uniform" else ""
                cells.append(f"{family} {count / best / 1e6:.1f}{rate}")
            print(f"  {name:24} " + "  ".join(cells))


if __name__ == "__main__":
    main()
