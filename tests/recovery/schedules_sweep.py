"""Blind recovery of random schedules of matrix products: ``python tests/recovery/schedules_sweep.py [--count 300]``.

``--result bf16`` (or f16): operands and results of this format; every third one rounds its partial sums to it.

Each is a product that can only be asked.  What is found must give the bits of the truth at shapes and at a K that were
not asked; what is not found must be said to be open.  Exit status 1 where an answer was wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from cases.random_products import Modelled, differ, drawn, rounded
from mmaprobe.derivation.schedules.identify import identify

OTHER_K = (201, 1003)
"""Ks at which what was found is held against the truth."""


def main() -> int:
    """The outcome of each, and the counts."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--result", choices=["f32", "bf16", "f16"], default="f32")
    words.add_argument("--k", type=int, default=96)
    given = words.parse_args()
    rng, ends = np.random.default_rng(given.seed), Counter[str]()
    for number in range(given.count):
        truth, start = drawn(rng), time.process_time()
        if given.result != "f32":
            truth = rounded(truth, given.result, given.result if number % 3 == 2 else "f32")
        found = identify(Modelled(truth, (24, 24, given.k)), seed=number)
        wrong = 0 if found.schedule is None else sum(differ(found.schedule, truth, k) for k in OTHER_K)
        end = "wrong" if wrong or found.status == "wrong" else found.status
        ends[end] += 1
        if end != "exact":
            print(f"{number}: {end}, {found.why}: {truth.kernels[0]}", flush=True)
        else:
            print(f"{number}: exact, {found.calls} calls, {time.process_time() - start:.1f} s", flush=True)
    print(", ".join(f"{count} {end}" for end, count in sorted(ends.items())))
    return int(ends["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
