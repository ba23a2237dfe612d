"""Whether an output depends on anything but its own row, column and C.

Random tiles; then the same tiles in which only some items, blocks, rows and columns
are kept and all other operands replaced: other rows of A, other columns of B, other
elements of C, other MFMA blocks and other items of the batch (the lanes of a lane-wise
unit).  What stands at a kept row and a kept column must not change.

Answer: ``{"independent": bool, "trials": n}``.  A pass is ``bounded``: it is n trials; a
failure is ``contradictory``, since then no function of one vector describes the device.
"""

from __future__ import annotations

import numpy as np

from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.experiments.random_tiles import items_for, random_tiles
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.showing import counted

TRIALS = 4
"""Launches with other outputs changed."""
OUTPUTS = 512
"""Outputs of one launch at least."""


async def probe_independence(session: ProbeSession) -> Finding:
    """Dependence on other outputs (see the module)."""
    rng = np.random.default_rng(session.bench.seed)
    items = items_for(session, OUTPUTS)
    first = random_tiles(session, rng, items)
    alone = await session.run_tiles(first)
    for trial in range(TRIALS):
        kept = [_some(rng, size) for size in alone.shape]
        mixed = Batch(**{
            name: _mixed(name, value, getattr(random, name), kept)
            for random in [random_tiles(session, rng, items)]
            for name, value in first.items()
        })  # fmt: skip
        both = await session.run_tiles(mixed)
        changed = np.argwhere((alone != both) & _grid(kept))
        if changed.size:
            where = tuple(int(i) for i in changed[0])
            answer = {"independent": False, "trials": trial + 1}
            text = f"output {where} changed from {int(alone[where]):#x} to {int(both[where]):#x}"
            return session.finding("contradictory", answer, f"{text} when only other outputs' operands did")
    answer = {"independent": True, "trials": TRIALS}
    return session.finding("bounded", answer, f"no change in {TRIALS} trials on {counted(items, 'tile')}")


def _some(rng: np.random.Generator, size: int) -> Bits:
    """A random half of an axis, at least one place; the only place of an axis of one."""
    kept = rng.random(size) < 0.5
    kept[rng.integers(size)] = True
    return kept.astype(np.uint8)


def _grid(kept: list[Bits]) -> Bits:
    """Which outputs are at kept places of every axis."""
    return np.asarray(np.prod(np.meshgrid(*kept, indexing="ij"), axis=0), dtype=bool)


def _mixed(name: str, value: Bits, other: Bits, kept: list[Bits]) -> Bits:
    """The operand where the kept outputs see it, another one elsewhere."""
    *lead, rows, columns = kept
    if name == "c":
        mask = _grid(kept)
    elif name in ("b", "scale_b"):
        mask = _grid([*lead, np.ones(value.shape[-2], np.uint8), columns])
    else:
        mask = _grid([*lead, rows, np.ones(value.shape[-1], np.uint8)])
    return np.where(mask, value, other)


PROBE = Probe(
    order=20,
    asks="do the operands of other outputs matter",
    rivals="yes, no",
    experiment=probe_independence,
    of_tiles=True,
    sound=lambda answer: answer["independent"],
)
