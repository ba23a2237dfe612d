"""Which vectors of a comparison are counted by cell: the first of each family that it compared, tiles and separate.

A sample is a function of the instruction, the seed and what was compared, so that parts of a plan give the same
counts whoever compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.cell_counts import SPECIALS, CellCounts
from mmaprobe.generators import generate, generate_tiles
from mmaprobe.generators.tiles import Shape
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits, join
from mmaprobe.validation.coverage.reach import reach_of
from mmaprobe.validation.coverage.rules import RULES, name_of, specials
from mmaprobe.validation.coverage.terms import terms_of

SAMPLE = 384
"""Vectors of a comparison that are counted at most, shared out among its families: a few milliseconds, which is little
beside the millions of vectors of a campaign's larger parts (``benchmarks/bench_bookkeeping.py``)."""
ALONE_OF = 4
"""Where a family has whole tiles one in so many of its sample is a separate vector."""
OF_A_TILE = 8
"""Outputs of one tile that are counted: others are much the same."""


@dataclass(frozen=True)
class ComparedRun:
    """Vectors of a family that were compared one after another: ``tiles`` by the rule of a ``version``, whole or
    (``window``) their first rows and columns, or else ``count`` separate ones, from index ``start`` on."""

    family: str
    start: int
    count: int
    tiles: int = 0
    version: int | None = None
    window: Shape | None = None


def sampled(made: Instruction, seed: int, runs: Iterable[ComparedRun]) -> Batch | None:
    """The sample of what was compared, in one-vector shapes; None where that is nothing."""
    every = [run for run in runs if run.count]
    each = SAMPLE // max(len({run.family for run in every}), 1)
    tiled = {run.family for run in every if run.tiles}
    parts = []
    for run in every:
        if run.tiles:
            parts.append(_of_tiles(made, seed, run, max(1, each * (ALONE_OF - 1) // ALONE_OF // OF_A_TILE)))
        else:
            most = max(1, each // ALONE_OF) if run.family in tiled else each
            parts.append(generate(made, run.family, seed, run.start, min(run.count, most)))
    return join(parts) if parts else None


def _of_tiles(made: Instruction, seed: int, run: ComparedRun, most: int) -> Batch:
    """A few outputs of each of the first tiles, in different rows and columns, as separate vectors."""
    tiles = generate_tiles(made, run.family, seed, run.start, min(run.tiles, most), run.version, run.window)
    m, n = run.window or (made.m, made.n)
    outputs = m * n
    places = np.unique((np.arange(OF_A_TILE) * (outputs // OF_A_TILE or 1) + np.arange(OF_A_TILE)) % outputs)
    rows, columns = places // n, places % n
    found: dict[str, Bits] = {}
    for name, value in tiles.items():
        if name in PER_RESULT:
            found[name] = value[:, rows, columns].reshape(-1)
        else:
            lanes = value[:, :, columns].swapaxes(1, 2) if name in ("b", "scale_b") else value[:, rows]
            found[name] = lanes.reshape(-1, lanes.shape[2])
    return Batch(**found)


def cells_of(made: Instruction, vectors: Batch) -> CellCounts:
    """How many of these vectors are in which cell; cells that the formats can reach and none is in are 0."""
    terms, reach = terms_of(made, vectors), reach_of(made)
    cells: dict[str, dict[str, int]] = {}
    for rule in RULES:
        numbers, counts = np.unique(rule.numbers(terms, reach), return_counts=True)
        found = dict.fromkeys(rule.cells(reach), 0) | dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        cells[rule.name] = {name_of(rule, number, reach): count for number, count in found.items()}
    codes = {name: (there, int(where.sum())) for name, (there, where) in specials(terms, reach).items()}
    cells[SPECIALS] = {name: count for name, (there, count) in codes.items() if there or count}
    return CellCounts(vectors.size, cells, {rule.name: why for rule in RULES if (why := rule.why(reach))})
