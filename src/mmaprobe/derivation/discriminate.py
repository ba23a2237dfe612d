"""Few vectors that tell hypotheses apart, from the answers that these would give to many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe.derivation.survivors import Living
from mmaprobe.operands.batch import Batch, Bits

SAMPLE = 64
"""Hypotheses evaluated on a whole pool; all of them, or as many as make so many evaluations, when the sample agrees."""
EVALUATIONS = 500_000


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
