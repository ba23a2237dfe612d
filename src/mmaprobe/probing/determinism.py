"""Whether the same operands always give the same bits.

The same random tiles are run again and again, in reversed order, alone, and
after batches of large values, of NaNs (floats) and of zeros.

Answer: ``{"deterministic": bool, "runs": n}``.  A pass is ``bounded``: it is n runs; a
failure is ``contradictory``.
"""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.batch import Batch
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.random_tiles import items_for, random_tiles
from mmaprobe.probing.session import Session

QUESTION = "determinism"
REPEATS = 6


def probe_determinism(session: Session) -> Finding:
    """Repeatability (see the module)."""
    rng = np.random.default_rng(session.seed + 1)
    items = items_for(session, 1024)
    tiles = random_tiles(session, rng, items)
    back = Batch(**{name: value[::-1].copy() for name, value in tiles.items()})
    first = session.run_tiles(tiles)
    runs = 1
    for repeat in range(REPEATS):
        for before in (None, _filled(session, repeat, items)):
            if before is not None:
                session.run_tiles(before)
            again = session.run_tiles(back)[::-1] if repeat % 2 else session.run_tiles(tiles)
            runs += 1
            if not np.array_equal(first, again):
                count = int(np.count_nonzero(first != again))
                answer = {"deterministic": False, "runs": runs}
                session.unstable = f"run {runs} differs from the first in {count} of {first.size} outputs"
                return session.finding(QUESTION, "contradictory", answer, session.unstable)
    for item in range(min(items, 4)):
        runs += 1
        if not np.array_equal(first[item : item + 1], session.run_tiles(tiles.slice(item, item + 1))):
            answer = {"deterministic": False, "runs": runs}
            session.unstable = f"tile {item} alone differs from itself in a batch"
            return session.finding(QUESTION, "contradictory", answer, session.unstable)
    answer = {"deterministic": True, "runs": runs}
    return session.finding(QUESTION, "bounded", answer, f"{runs} runs of {items} tiles agree")


def _filled(session: Session, which: int, items: int) -> Batch:
    """A batch of nothing but largest values, NaNs or zeros, to leave behind whatever state there is."""
    out = {}
    for name, shape in session.instruction.shapes(items).items():
        fmt = session.formats[name]
        code = (fmt.largest, fmt.nan_code or 0, 0)[which % 3]
        out[name] = np.full(shape, code, fmt.dtype)
    return Batch(**out)
