"""Whether the same operands always give the same bits.

The same random tiles are run again and again: in reversed order, and after tiles of large
values, of zeros and of NaNs (floats), in the same launch and in the one before.

Answer: ``{"deterministic": bool, "runs": n}``.  A pass is ``bounded``: it is n runs; a
failure is ``contradictory``.
"""

from __future__ import annotations

import numpy as np

from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.experiments.random_tiles import items_for, join, random_tiles
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession

OUTPUTS = 512
"""Outputs of one launch at least."""


async def probe_determinism(session: ProbeSession) -> Finding:
    """Repeatability (see the module)."""
    rng = np.random.default_rng(session.bench.seed + 1)
    items = items_for(session, OUTPUTS)
    tiles = random_tiles(session, rng, items)
    back = Batch(**{name: value[::-1].copy() for name, value in tiles.items()})
    large, nans, zeros = (_filled(session, which) for which in range(3))
    seen: list[Bits] = []
    for launch, turned in (
        ((tiles,), (False,)),
        ((back,), (True,)),
        ((large, tiles, zeros, back), (None, False, None, True)),
        ((nans,), (None,)),
        ((tiles, nans, tiles, back), (False, None, False, True)),
    ):
        d = await session.run_tiles(join(launch))
        for part, reverse in zip(_parts(d, launch), turned, strict=True):
            if reverse is not None:
                seen.append(part[::-1] if reverse else part)
        for run, again in enumerate(seen):
            if not np.array_equal(seen[0], again):
                count = int(np.count_nonzero(seen[0] != again))
                return _failed(
                    session, run + 1, f"run {run + 1} differs from the first in {count} of {again.size} outputs"
                )
    answer = {"deterministic": True, "runs": len(seen)}
    return session.finding("bounded", answer, f"{len(seen)} runs of {items} tiles agree")


def _failed(session: ProbeSession, runs: int, how: str) -> Finding:
    session.bench.unstable = how
    return session.finding("contradictory", {"deterministic": False, "runs": runs}, how)


def _parts(d: Bits, launch: tuple[Batch, ...]) -> list[Bits]:
    ends = np.cumsum([tiles.size for tiles in launch])
    return list(np.split(d, ends[:-1]))


def _filled(session: ProbeSession, which: int) -> Batch:
    """A tile of nothing but largest values, NaNs or zeros, to leave behind whatever state there is."""
    out = {}
    for name, shape in session.instruction.shapes(1).items():
        if name == "metadata":
            out[name] = np.full(shape, session.plain_metadata, np.uint8)
            continue
        fmt = session.formats[name]
        code = (fmt.largest, fmt.nan_code or 0, 0)[which]
        out[name] = np.full(shape, code, fmt.dtype)
    return Batch(**out)


PROBE = Probe(
    order=10,
    asks="do the same operands give the same bits again",
    rivals="yes, no",
    experiment=probe_determinism,
    of_tiles=True,
    sound=lambda answer: answer["deterministic"],
)
