"""The model of Hopper is what an H100 answered: every vector of the recording that is in the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import UsageError

RUN = Path(__file__).parents[2] / "validation" / "evidence" / "sm_90a-beafa0e45cde"
LEAST, VECTORS = 620, 133_000
"""Instructions and vectors that are compared."""


@pytest.fixture(scope="module")
def recording() -> Replay:
    opened = open_device(f"replay:{RUN / 'recording.tar.gz'}")
    assert isinstance(opened, Replay)
    return opened


def test_every_recorded_vector(recording: Replay) -> None:
    """Witnesses of metadata in another order than PTX allows apart, which the model does not take."""
    model, wrong, refused, asked = open_device("model:sm_90a"), {}, [], []
    for made in recording.instructions():
        vectors, d = recording.recorded(made)
        try:
            differ = int((run_vectors(model, made, vectors) != d).sum())
        except UsageError as error:
            refused.append(str(error))
            continue
        asked.append(d.size)
        if differ:
            wrong[made.id] = differ
    assert not wrong
    assert len(asked) >= LEAST
    assert sum(asked) >= VECTORS
    assert len(refused) <= 2
    assert all("metadata of item" in said for said in refused)
