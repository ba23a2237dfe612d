"""Record whole matrix products of a library on a GPU: ``python validation/recorded/gemm.py OUT.npz SECONDS``.

Of each format and shape two products that show the order of a sum, and one of normal random numbers.

``count``: A is u but for M in lane p[i] of row i, B is u but for -M in lane q[j] of column j, with p and q drawn by
``numpy.random.default_rng(seed)`` (p, then q, for ``count0``, again for ``count1``).  D[i, j] in units of u^2 is how
many products were added after the larger of both lanes, or beside the sum that held them.  ``normal``: A, then B,
standard normal of the same generator, in f32.  Of results beyond 64 x 64 a sample is kept, at the rows and columns
``kept(m)`` and ``kept(n)``.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import torch

FORMATS = ("f16", "bf16", "f32", "tf32", "e4m3", "e4m3_bf16", "e4m3_fast", "f64", "f16_f16")
"""Operands; results are f32, or what is behind the stroke; ``fast``: without promotion of partial sums."""
SHAPES = (
    (256, 256, 1000), (256, 256, 1024), (256, 256, 4096), (64, 64, 16384), (1024, 1024, 1024), (4096, 4096, 4096),
    (8, 8, 4096), (2048, 2048, 16384),
)  # fmt: skip
UNITS = {"f16": (-12, 15), "f16_f16": (-6, 15), "bf16": (-20, 20), "tf32": (-20, 20), "f32": (-20, 20),
         "f64": (-40, 20), "e4m3": (-6, 8)}  # fmt: skip
"""The exponents of u and M."""


def kept(size: int) -> np.ndarray:
    """The rows, or columns, of which results are kept."""
    return np.unique(np.linspace(0, size - 1, 64).astype(int))


def product(name: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A times B by the library."""
    if name in ("f16", "bf16"):
        kind = torch.float16 if name == "f16" else torch.bfloat16
        return torch.mm(a.to(kind), b.to(kind), out_dtype=torch.float32)
    if name == "f16_f16":
        return torch.mm(a.half(), b.half()).float()
    if name.startswith("e4m3"):
        one, kind = torch.ones((), device="cuda"), torch.float8_e4m3fn
        result = torch.bfloat16 if name != "e4m3" else torch.float32
        columns = b.t().contiguous().to(kind).t()
        fast = name.endswith("fast")
        found = torch._scaled_mm(a.to(kind), columns, scale_a=one, scale_b=one, out_dtype=result, use_fast_accum=fast)
        return found.float()
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return torch.mm(a, b)


def counts(name: str, rng: np.random.Generator, m: int, n: int, k: int) -> np.ndarray:
    """D of one product that shows the order, in units of u^2."""
    unit, large = (2.0**exponent for exponent in UNITS[name.partition("_")[0] if "e4m3" in name else name])
    a, b = np.full((m, k), unit), np.full((k, n), unit)
    a[np.arange(m), rng.integers(0, k, m)] = large
    b[rng.integers(0, k, n), np.arange(n)] = -large
    dtype = np.float64 if name == "f64" else np.float32
    made = product(name, *(torch.tensor(each.astype(dtype)).cuda() for each in (a, b)))
    return (made.double().cpu().numpy() / unit**2)[np.ix_(kept(m), kept(n))].astype(np.float32)


def normal(name: str, rng: np.random.Generator, m: int, n: int, k: int) -> tuple[np.ndarray, bool]:
    """D of normal operands, and whether it is the same bits a second time."""
    a, b = (torch.tensor(rng.standard_normal(shape).astype(np.float32)).cuda() for shape in ((m, k), (k, n)))
    if name == "f64":
        a, b = a.double(), b.double()
    first, again = (product(name, a, b) for _ in range(2))
    return first.cpu().numpy()[np.ix_(kept(m), kept(n))], bool((first == again).all())


def main(path: str, seconds: float) -> None:
    """Record until the seconds are over."""
    begin, arrays, cases = time.monotonic(), dict[str, np.ndarray](), list[dict[str, Any]]()
    for name in FORMATS:
        for shape in SHAPES:
            if time.monotonic() - begin > seconds or ("e4m3" in name and any(each % 16 for each in shape)):
                continue
            m, n, k = shape
            seed, key = m + 7 * n + 13 * k, "_".join(map(str, (name, *shape)))
            rng = np.random.default_rng(seed)
            for part in range(2):
                arrays[f"{key}_count{part}"] = counts(name, rng, *shape)
            arrays[f"{key}_normal"], repeats = normal(name, rng, *shape)
            cases.append({"name": key, "seed": seed, "repeats": repeats})
    said = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(0)}
    np.savez_compressed(path, meta=json.dumps(said | {"cases": cases}), **arrays)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
