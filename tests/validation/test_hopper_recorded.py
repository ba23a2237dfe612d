"""The model of Hopper is what an H100 answered: every vector of the recording that is in the checkout."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.replay import Replay
from mmaprobe.operands.batch import Batch, take

RUN = Path(__file__).parents[2] / "validation" / "evidence" / "sm_90a-beafa0e45cde"
INSTRUCTIONS, VECTORS, BEYOND = 623, 135_638, 2
"""How many are compared at least, and how many vectors have metadata that the model does not take at most."""


def legal(made: Instruction, vectors: Batch) -> np.ndarray:
    """Of which vectors every item of metadata names its places in order, as PTX wants and the model takes."""
    if vectors.metadata is None:
        return np.ones(vectors.size, bool)
    return np.isin(vectors.metadata, legal_items(made.chunk)).all(axis=1)


def test_every_recorded_vector() -> None:
    """All but those of one question, which asks what metadata in another order selects."""
    recording = open_device(f"replay:{RUN / 'recording.tar.gz'}")
    assert isinstance(recording, Replay)
    model, wrong, asked, beyond = open_device("model:sm_90a"), {}, [], 0
    for made in recording.instructions():
        vectors, d = recording.recorded(made)
        taken = legal(made, vectors)
        beyond += int((~taken).sum())
        asked.append(int(taken.sum()))
        if differ := int((run_vectors(model, made, take(vectors, np.flatnonzero(taken))) != d[taken]).sum()):
            wrong[made.id] = differ
    assert not wrong
    assert len(asked) >= INSTRUCTIONS
    assert min(asked) > 0
    assert sum(asked) >= VECTORS
    assert beyond <= BEYOND
