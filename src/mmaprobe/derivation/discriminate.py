"""Few vectors that tell hypotheses apart, from the answers that these would give to many; asked until none is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.session import Mask, View
from mmaprobe.derivation.survivors import Living
from mmaprobe.devices.base import vectors_per_tile
from mmaprobe.operands.batch import Batch, Bits, take

Pool = Callable[[int, int], Batch]
"""Vectors from a seed, so many."""

SAMPLE = 64
"""Hypotheses evaluated on a whole pool first.  Tuned by ``tests/recovery``, as are the sizes below."""
EVALUATIONS = 500_000
"""Evaluations of a datapath on a vector where the sample agrees: all hypotheses, or as many as make so many."""
POOL = 256
"""Candidates of the first pool; after each that tells nothing apart twice as many."""
LEAST = 8
"""Vectors of a round at least, where a tile has fewer."""
MOST = 32
"""Vectors of a round at most, where a tile has more."""
ROUNDS = 40
"""Rounds of an elimination at most; one that finds a vector drops a hypothesis."""


def telling(
    table: Bits, width: int | None = None, *, from_first: bool = False, filled: bool = False
) -> NDArray[np.int64]:
    """Columns of a table (hypotheses, vectors), at most ``width``, that together tell its rows apart as far as all do.

    Each is taken for the most classes that it makes of those so far; ``from_first``: for the most rows that it tells
    from the first one, whichever of the others are alike.  ``filled``: once nothing more is told apart, the columns
    with the most values fill up the width, for hypotheses outside the table.
    """
    useful = np.flatnonzero((table != table[0]).any(axis=0))
    width = len(useful) if width is None else width
    if not useful.size:
        return useful
    if from_first:
        return useful[_covering(table[1:, useful] != table[0, useful], width)]
    ranks = np.stack([np.unique(table[:, i], return_inverse=True)[1].reshape(-1) for i in useful], axis=1)
    chosen = _splitting(ranks, width)
    if filled:
        rest = np.argsort(-ranks.max(axis=0), kind="stable")
        chosen += [int(i) for i in rest[~np.isin(rest, chosen)][: width - len(chosen)]]
    return useful[chosen]


def _splitting(ranks: NDArray[np.int64], width: int) -> list[int]:
    """Columns of numbered values, each the one that makes the most classes."""
    classes = np.zeros(len(ranks), np.int64)
    chosen: list[int] = []
    while len(chosen) < width:
        joint = np.sort(classes[:, None] * len(ranks) + ranks, axis=0)
        counts = 1 + (joint[1:] != joint[:-1]).sum(axis=0)
        best = int(counts.argmax())
        if counts[best] == len(np.unique(classes)):
            break
        chosen.append(best)
        classes = np.unique(classes * len(ranks) + ranks[:, best], return_inverse=True)[1]
    return chosen


def _covering(differs: NDArray[np.bool_], width: int) -> list[int]:
    """Columns that differ, each in the most rows in which none so far does."""
    left, counts = np.ones(len(differs), bool), differs.sum(axis=0)
    chosen: list[int] = []
    while counts.any() and len(chosen) < width:
        chosen.append(int(counts.argmax()))
        told = left & differs[:, chosen[-1]]
        counts = counts - differs[told].sum(axis=0)
        left &= ~told
    return chosen


def splitters(rng: np.random.Generator, alive: Living, vectors: Batch, width: int) -> NDArray[np.int64]:
    """``telling`` of a sample of the hypotheses (when it agrees, of all of them or very many), the width filled."""
    for sample in (SAMPLE, max(SAMPLE, EVALUATIONS // vectors.size)):
        found = telling(alive.sample(rng, sample).evaluate(vectors), width, filled=True)
        if found.size or len(alive) <= sample:
            return found
    return np.empty(0, np.int64)


def eliminate(
    view: View,
    hypotheses: Living,
    pool: Pool,
    *,
    seed: int,
    patience: int = 1,
    holds: Callable[[Bits], Mask] | None = None,
    rounds: int = ROUNDS,
) -> Living:
    """Ask the vectors that split the hypotheses best until ``patience`` fresh pools split nothing
    (little is enough: what is left meets larger pools when neighbours are refuted).

    ``pool(seed, count)`` makes candidate vectors, twice as many after each dry one.  Each round evaluates a sample of
    the living hypotheses on the pool, takes a tile or two of vectors that together
    tell most of the sample apart, asks the device, and drops whatever disagrees;
    with ``holds`` on the answers for which it says so alone.  After ``rounds`` it ends.
    """
    width = min(max(vectors_per_tile(view.session.instruction), LEAST), MOST)
    rng = np.random.default_rng(seed)
    alive = view.living(hypotheses)
    dry = 0
    turn = 0
    while len(alive) > 1 and dry < patience and turn < rounds:
        vectors = pool(seed + 1009 * turn, POOL << dry)
        turn += 1
        chosen = splitters(rng, alive, vectors, width)
        if not chosen.size:
            dry += 1
            continue
        asked, answers = view.ask(take(vectors, chosen), holds)
        dry = 0 if len(answers) else 1
        alive = alive.agreeing(asked, answers)
    return alive
