"""Blind recovery of random schedules of matrix products: ``python tests/recovery/schedules_sweep.py RECORD``.

``--result bf16`` (or f16): operands and results of this format; every third one rounds its partial sums to it.
``--kind primitive`` (or ``fp8``, ``promoted``): steps are primitives that ship.

Each is a product that can only be asked.  What is found must give the bits of the truth at shapes and at a K that were
not asked; what is not found must be said to be open.  Each is a line of RECORD when it is done, and is not asked again.
Exit status 1 where an answer was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from cases.random_products import STEP_KINDS, Modelled, differ, drawn, drawn_steps, rounded
from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.parameters.schedule import Schedule

OTHER_K = (201, 1003)
"""Ks at which what was found is held against the truth."""


def outcome(number: int, truth: Schedule, k: int) -> dict[str, Any]:
    """How an identification ended: exact, bounded or wrong, after how many calls and seconds of processor time."""
    start = time.process_time()
    found = identify(Modelled(truth, (24, 24, k)), seed=number)
    wrong = 0 if found.schedule is None else sum(differ(found.schedule, truth, other) for other in OTHER_K)
    end = "wrong" if wrong or found.status == "wrong" else found.status
    row: dict[str, Any] = {"number": number, "end": end, "calls": found.calls}
    row["seconds"] = round(time.process_time() - start, 1)
    return row if end == "exact" else row | {"why": list(found.why), "kernel": repr(truth.kernels[0])}


def finished(record: Path) -> dict[int, dict[str, Any]]:
    """The lines of a record by number; one that was cut off is none."""
    lines = record.read_text("utf-8").split("\n")[:-1] if record.exists() else []
    return {row["number"]: row for row in map(json.loads, lines)}


def main() -> int:
    """Every outcome that the record has not, and the counts."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("record", type=Path, help="file of the outcomes, a line each")
    words.add_argument("--count", type=int, default=300)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--result", choices=["f32", "bf16", "f16"], default="f32")
    words.add_argument("--k", type=int, default=96)
    words.add_argument("--kind", choices=["single", *STEP_KINDS], default="single")
    given = words.parse_args()
    rng, done = np.random.default_rng(given.seed), finished(given.record)
    for number in range(given.count):
        truth = drawn(rng) if given.kind == "single" else drawn_steps(rng, given.kind)
        if given.kind == "single" and given.result != "f32":
            truth = rounded(truth, given.result, given.result if number % 3 == 2 else "f32")
        if number not in done:
            done[number] = outcome(number, truth, given.k)
            with given.record.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(done[number]) + "\n")
    ends = Counter(done[number]["end"] for number in range(given.count))
    print(", ".join(f"{count} {end}" for end, count in sorted(ends.items())))
    return int(ends["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
