"""Whether an output depends on anything but its own row, column and C.

Random tiles; then the same tiles with every operand that output (i, j) should
not see replaced: other rows of A, other columns of B, other elements of C,
other MFMA blocks and other items of the batch (the lanes of a lane-wise unit).

Answer: ``{"independent": bool, "trials": n}``.  A pass is ``bounded``: it is n trials; a
failure is ``contradictory``, since then no function of one vector describes the device.
"""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.batch import Batch
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.random_tiles import choose, items_for, random_tiles
from mmaprobe.probing.session import Session

QUESTION = "independence"
TRIALS = 24


def probe_independence(session: Session) -> Finding:
    """Dependence on other outputs (see the module)."""
    rng = np.random.default_rng(session.seed)
    items = items_for(session, 512)
    shape = session.instruction.shapes(items)
    for trial in range(TRIALS):
        first, second = random_tiles(session, rng, items), random_tiles(session, rng, items)
        lead = tuple(int(rng.integers(n)) for n in shape["a"][:-2])
        row, column = int(rng.integers(session.instruction.m)), int(rng.integers(session.instruction.n))
        mixed = dict(second.items())
        for name, value in first.items():
            mixed[name] = mixed[name].copy()
            mixed[name][choose(name, lead, row, column)] = value[choose(name, lead, row, column)]
        where = (*lead, row, column)
        one, other = session.run_tiles(first)[where], session.run_tiles(Batch(**mixed))[where]
        if one != other:
            answer = {"independent": False, "trials": trial + 1}
            text = f"output {where} changed from {int(one):#x} to {int(other):#x} when only other outputs' operands did"
            return session.finding(QUESTION, "contradictory", answer, text)
    answer = {"independent": True, "trials": TRIALS}
    return session.finding(QUESTION, "bounded", answer, f"no change in {TRIALS} trials on {items} tiles")
