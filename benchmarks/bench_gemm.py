"""Speed of whole products: python benchmarks/bench_gemm.py [--smoke]

Each row with what is wanted of it, on two cores: the time of a product by a schedule (processor time of all threads,
shared among the cores that it ran on, best of a few: what it takes where nothing else runs), its ratio to NumPy's in
the same run and on as many threads, or the share of what the engine computes on tiles of the primitive's own
instruction; then the memory that a product takes beside A, B and D.  The schedules of primitives are this benchmark's:
one range, promotion every 128 products for e4m3.  They say what is computed, not what a library does.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")  # the order that the schedule has, before NumPy is loaded
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import numpy as np

import mmaprobe
from cases.engine_layout import layout_call
from mmaprobe import formats
from mmaprobe.models.gemm import BLOCK, Gemm
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.schedule import (
    Accumulators,
    GemmKernel,
    GemmStep,
    Join,
    Promotion,
    Ranges,
    Region,
    Schedule,
    Scope,
)

PEAK, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Case:
    """A primitive, tiles of its instruction, and the seconds wanted of 4096 x 4096 x 1024."""

    name: str
    architecture: str
    primitive: str
    tile: tuple[int, int]
    wanted: float
    promotion: Promotion | None = None

    def product(self) -> Gemm:
        """The product in one range of steps of the primitive."""
        path = load(self.architecture).entries[self.primitive].datapath
        step = GemmStep("primitive", self.architecture, self.primitive)
        one = GemmKernel("one", Ranges(), Join("f32", start="first"), Accumulators("f32"), step, self.promotion)
        return mmaprobe.gemm(Schedule(path.a, path.b, path.d, Scope("none"), (one,), (Region("one", rest=True),)))


F16 = Case("f16 (Hopper wgmma)", "sm_90a", "HGMMA.F32[f16,f16->f32,k16]", (64, 256), 0.8)
E4M3 = Case(
    "e4m3, promoted (Hopper wgmma)", "sm_90a", "QGMMA.F32.E4M3.E4M3[e4m3,e4m3->f32,k32]", (64, 256), 0.8,
    Promotion(4, "f32"),
)  # fmt: skip
BF16 = Case("vdpbf16ps", "x86-64", "VDPBF16PS[bf16,bf16->f32]", (16, 16), 20.0)


def numbers(fmt: str, shape: tuple[int, int]) -> Bits:
    """Codes of numbers near 1, of both signs."""
    rng, made = np.random.default_rng(1), formats.get(fmt)
    codes = made.one + rng.integers(-(3 << made.fraction_bits), 1 << made.fraction_bits, shape)
    return (codes | made.sign_mask * rng.integers(0, 2, shape)).astype(made.dtype)


def seconds(work: Callable[[], object], trials: int, cores: int = CORES) -> float:
    """Of each core that takes part."""
    best = float("inf")
    for _ in range(trials):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / cores


def tile_rate(case: Case, trials: int) -> float:
    """Products a second of the engine on tiles of the instruction, in its own layout, on one core."""
    path, (m, n) = load(case.architecture).entries[case.primitive].datapath, case.tile
    count = max(1, (1 << 22) // (m * n * path.k))
    a, b = numbers(path.a, (count * m, path.k)), numbers(path.b, (count * path.k, n))
    c = np.zeros((count, m, n), formats.get(path.d).dtype)
    call = layout_call(path, Batch(a=a.reshape(count, m, -1), b=b.reshape(count, -1, n), c=c))
    assert call is not None
    return count * m * n * path.k / seconds(call, trials, 1)


def line(what: str, found: str, wanted: str) -> None:
    print(f"{what:58} {found:>34}   wanted: {wanted}", flush=True)


def by_primitive(case: Case, shape: tuple[int, int, int], wanted: float, trials: int) -> None:
    """The time of a shape, and the share of the engine's rate; one block of D is one core's."""
    (m, n, k), product = shape, case.product()
    fmt = product.schedule.a
    a, b = numbers(fmt, (m, k)), numbers(fmt, (k, n))
    cores = CORES if m > BLOCK[0] or n > BLOCK[1] else 1
    took = seconds(lambda: product(a, b), trials, cores)
    share = m * n * k / took / cores / tile_rate(case, 10 * trials)
    line(f"{case.name}, {m} x {n} x {k}", f"{took:.3f} s, {share:.0%} of tiles' rate", f"{wanted} s, 60%")


def against_numpy(shape: tuple[int, int, int], trials: int) -> None:
    (m, n, k), rng = shape, np.random.default_rng(0)
    product = mmaprobe.gemm("openblas_haswell_f32")
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    theirs, ours = seconds(lambda: a @ b, trials), seconds(lambda: product(a, b), trials)
    line(f"OpenBLAS' f32, {m} x {n} x {k}", f"{ours:.3f} s, {ours / theirs:.2f} times NumPy", "at most 3 times")


def peak() -> int:
    """The most memory that was held since it was last asked to begin anew, in bytes."""
    found = next(row for row in PEAK.read_text("utf-8").splitlines() if row.startswith("VmHWM"))
    return int(found.split()[1]) << 10


def memory(case: Case, shape: tuple[int, int, int]) -> None:
    """What a product holds at most beside its operands and D."""
    (m, n, k), product = shape, case.product()
    a, b = numbers(product.schedule.a, (m, k)), numbers(product.schedule.b, (k, n))
    product(a[:8], b[:, :8])
    RESET.write_text("5", "utf-8")
    before = peak()
    d = product(a, b)
    line(f"memory beside A, B, D: {case.name}", f"{(peak() - before - d.nbytes) / 2**20:.1f} MiB", "64 MiB")


def main() -> None:
    smoke = "--smoke" in sys.argv
    side, k, trials = (128, 64, 1) if smoke else (4096, 1024, 3)
    print(f"{CORES} cores")
    against_numpy((128,) * 3 if smoke else (1000,) * 3, trials)
    against_numpy((side, side, k), trials)
    for case in (F16, E4M3, BF16):
        by_primitive(case, (side, side, k), case.wanted, trials)
    by_primitive(F16, (128, 128, k if smoke else 16384), 0.05, trials)
    if not smoke:
        by_primitive(F16, (8192,) * 3, 25.0, 1)
    for case in (F16, E4M3):
        memory(case, (side, side, k))


if __name__ == "__main__":
    main()
