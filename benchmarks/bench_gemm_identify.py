"""Calls and time to identify a matrix product: python benchmarks/bench_gemm_identify.py [--smoke]

NumPy's OpenBLAS with the kernels of four processors, one thread, in a child process; then a model.  Processor time is
this process' alone, wall time has the library's calls in it.  ``--smoke``: the model at a small shape.
"""

from __future__ import annotations

import sys
import time

from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.devices.products import open_product
from mmaprobe.errors import DeviceError

NUMPY = "function:numpy:matmul?m=256&n=256&k={k}&format={format}&threads=1&env.OPENBLAS_CORETYPE={core}"
CASES = (
    *(NUMPY.format(k=1000, format=fmt, core=core) for fmt in ("f32", "f64")
      for core in ("Haswell", "Sandybridge", "SkylakeX", "Nehalem")),
    NUMPY.format(k=16384, format="f32", core="Haswell"),
)  # fmt: skip
SMALL = ("gemm:openblas_sandybridge_f64?m=6&n=6&k=24",)


def main() -> int:
    """A line a product."""
    print("wanted: NumPy f32 256 x 256 x 1000 in 60 calls and 2 s, K = 16,384 in 120 calls and 20 s")
    print(f"{'calls':>6} {'processor s':>12} {'wall s':>8}  status   product")
    for name in SMALL if "--smoke" in sys.argv else (*CASES, *SMALL):
        product = open_product(name)
        wall, own = time.perf_counter(), time.process_time()
        try:
            found = identify(product)
        except DeviceError as error:
            print(f"{'':28} not here  {name}: {error}", flush=True)
            continue
        wall, own = time.perf_counter() - wall, time.process_time() - own
        print(f"{found.calls:6} {own:12.2f} {wall:8.2f}  {found.status:8} {name}", flush=True)
        for each in found.why:
            print(f"       {each}")
    print("the model's own time is in the last line's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
