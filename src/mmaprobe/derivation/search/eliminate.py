"""Structures that plain vectors leave, told apart by terms far below the others where no end of a range matters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.discriminate import splitters
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.range_ends import all_zeros, flushed
from mmaprobe.derivation.session import State
from mmaprobe.derivation.survivors import Living
from mmaprobe.derivation.vectors.below_range import faint_vectors, reaches_lower
from mmaprobe.devices.base import vectors_per_tile
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.rewrite import map_encodes

MOST = 1024
"""Of so many hypotheses all are held against a vector before it is asked."""
CHECKED = 16
"""So many of them choose the vectors of a pool."""
POOL, ROUNDS, DRY = 256, 8, 2
LEAST, WIDTH = 8, 32
"""Vectors of a round: those of a tile, within these bounds."""


def sharpened(state: State, alive: Living) -> Living:
    """What faint vectors leave of the hypotheses: those with a normal answer, and one from each hypothesis whatever it
    flushes, shows of a zero and makes of an overflow.  All are left where there are too many to check."""
    if not 1 < len(alive) <= MOST or not reaches_lower(state.instruction):
        return alive
    rng = np.random.default_rng([state.seed, 0x5A])
    width = min(max(vectors_per_tile(state.instruction), LEAST), WIDTH)
    turn, dry = 0, 0
    while len(alive) > 1 and dry < DRY and turn < ROUNDS:
        vectors = faint_vectors(state.instruction, state.seed + 13 * turn, POOL << dry)
        vectors = _endless(alive.sample(rng, CHECKED).first(CHECKED), vectors, state.allowance)
        chosen = splitters(rng, alive, vectors, width) if vectors.size else np.empty(0, np.int64)
        asked = take(vectors, chosen)
        asked = _endless(alive.first(MOST), asked, state.allowance) if chosen.size else asked
        turn, dry = turn + 1, 0 if asked.size else dry + 1
        if asked.size:
            asked, answers = state.session.all.ask(asked, partial(normal, state.instruction))
            alive = alive.agreeing(asked, answers)
    return alive


def _endless(paths: list[Datapath], vectors: Batch, allowance: Allowance) -> Batch:
    """The vectors that get the same answer whatever these datapaths do at the ends of a range."""
    zeros = all_zeros(formats.get(paths[0].d).max_exponent)
    ways = [paths, *([change(path) for path in paths] for change in (flushed, zeros, _largest))]
    try:
        first, *others = (allowance.evaluate(way, vectors) for way in ways)
    except UsageError:  # the engine cannot hold one of them
        return take(vectors, [])
    same = np.all([(first == other).all(axis=0) for other in others], axis=0)
    return take(vectors, np.flatnonzero(same))


def _largest(path: Datapath) -> Datapath:
    return map_encodes(path, lambda to: replace(to, overflow="largest"))
