"""Models: an instruction's datapath as a function on arrays of bit patterns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.catalog.sparsity import check_metadata
from mmaprobe.models import engine, modifiers, sparse, stages
from mmaprobe.operands.batch import Batch, Bits, outputs_of
from mmaprobe.operands.bound import BoundInstruction
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for, file_named

VECTORS_AT_A_TIME = 1 << 16
"""Vectors of one call of the engine: so much memory the answers and their numbers take."""

Evaluate = Callable[[Datapath, Batch], Bits]


def evaluator(datapath: Datapath) -> Evaluate:
    """What evaluates this datapath best: the native engine, or the stages where it refuses."""
    return engine.evaluate if engine.refusal(datapath) is None else stages.evaluate


@dataclass(frozen=True, repr=False)
class Model(BoundInstruction):
    """The bit-accurate model of an instruction; call it with tiles, or ``dot`` with vectors.

    ``sorts``: the compiled code puts sparse metadata in order first.
    """

    kind: ClassVar[str] = "model"

    datapath: Datapath
    sorts: bool = False

    def dense(self, vectors: Batch) -> Batch:
        """What the datapath sees of the vectors: as modifiers change them, of sparse ones the selected lanes."""
        return _dense(self.instruction, vectors, self.sorts)


def bind(instruction: Instruction, datapath: Datapath, sorts: bool = False, owner: str = "") -> Model:
    """The instruction computed by this datapath, ``owner``'s; ``sorts``: sparse metadata is put in order first."""
    return Model(
        instruction,
        partial(run_tiles, instruction, datapath, sorts=sorts),
        partial(run_vectors, instruction, datapath, sorts=sorts),
        datapath,
        sorts,
        owner=owner,
    )


def model(name: str, instruction: str) -> Model:
    """The model of an instruction (by id or short form) on an architecture, or by the parameter file of this path.

    Its datapath is the instruction's lowering there over the parameters, which
    else are those that ship, in the control state that the id names.
    UsageError for an unknown name, a broken file, or where no datapath is known.
    """
    file = file_named(name)
    architecture = name if file is None else file.architecture
    found = lookup.instruction(instruction, architecture)
    return bind(found, datapath_for(architecture, found, file), lowering(found, architecture).sort is not None, name)


def run_vectors(instruction: Instruction, datapath: Datapath, vectors: Batch, sorts: bool = False) -> Bits:
    """d (n,) of separate vectors, sparse ones by the lanes that their metadata selects."""
    return evaluator(datapath)(datapath, _dense(instruction, vectors, sorts))


def _dense(instruction: Instruction, vectors: Batch, sorts: bool) -> Batch:
    vectors = modifiers.of_vectors(instruction, vectors)
    return sparse.dense_vectors(instruction, vectors, sorts) if instruction.chunk else vectors


def run_tiles(instruction: Instruction, datapath: Datapath, tiles: Batch, sorts: bool = False) -> Bits:
    """D of tiles of ``Instruction.shapes``."""
    evaluate = partial(evaluator(datapath), datapath)
    tiles = modifiers.of_tiles(instruction, tiles)
    if not instruction.chunk:
        lead = tiles.a.shape[:-1]
        whole = engine.evaluate_tiles(datapath, _flat(tiles))
        return evaluate_tiles(evaluate, tiles) if whole is None else whole.reshape(*lead, tiles.b.shape[-1])
    assert tiles.metadata is not None
    check_metadata(instruction, tiles.metadata, sorts)
    flat = _flat(tiles)
    size = max(1, VECTORS_AT_A_TIME // (instruction.m * instruction.n))
    d = [
        evaluate_tiles(evaluate, sparse.dense_rows(instruction, flat.slice(start, start + size)))
        for start in range(0, max(flat.size, 1), size)
    ]
    return np.concatenate(d).reshape(*tiles.a.shape[:-1], instruction.n)


def _flat(tiles: Batch) -> Batch:
    """Tiles under one axis."""
    return Batch(**{name: value.reshape(-1, *value.shape[-2:]) for name, value in tiles.items()})


def evaluate_tiles(evaluate: Callable[[Batch], Bits], tiles: Batch) -> Bits:
    """D of tiles a ([batch, blocks,] M, K), ...: every pair of a row and a column is one vector."""
    *lead, m, n = (*tiles.a.shape[:-1], tiles.b.shape[-1])
    flat = {name: value.reshape(-1, *value.shape[-2:]) for name, value in tiles.items()}
    count = flat["a"].shape[0]
    d: list[Bits] = []
    size = max(1, VECTORS_AT_A_TIME // (m * n))
    for start in range(0, max(count, 1), size):
        part = {name: value[start : start + size] for name, value in flat.items()}
        d.append(evaluate(outputs_of(Batch(**part))))
    return np.concatenate(d).reshape(*lead, m, n)
