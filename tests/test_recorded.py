"""Recorded outputs of real GPUs against the models: every bit of every result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.model import open_model

CORPUS = Path(os.environ.get("MMAPROBE_CORPUS", "no corpus"))
HERE = (CORPUS / "manifest.json").is_file()
SETS: list[dict[str, Any]] = json.loads((CORPUS / "manifest.json").read_text()) if HERE else []
EMULATED = {"H200/e4m3/f16", "H200/e5m2/f16", "B200/e4m3/f32", "B200/e4m3/f16", "B200/e5m2/f32", "B200/e5m2/f16"}
"""FP8 mma.sync where the compiler builds it from f16 instructions: its lowering is not modelled yet."""

pytestmark = pytest.mark.skipif(not HERE, reason="MMAPROBE_CORPUS does not name a folder with manifest.json")


def vectors_of(recorded: dict[str, Any]) -> tuple[Batch, Any]:
    """The set's vectors, lanes that the recording left zero included, and the recorded results."""
    made = instruction(recorded["instruction"])
    with np.load(CORPUS / "vectors.npz", allow_pickle=False) as arrays:
        a, b, c, d = (arrays[f"{recorded['key']}/{name}"] for name in "abcd")
    short = ((0, 0), (0, made.k - a.shape[1]))
    return Batch(np.pad(a, short), np.pad(b, short), c), d


@pytest.mark.parametrize("recorded", [s for s in SETS if s["key"] not in EMULATED], ids=lambda s: s["key"])
def test_the_model_gives_the_recorded_bits(recorded: dict[str, Any]) -> None:
    vectors, d = vectors_of(recorded)
    assert vectors.size == recorded["count"] > 0
    result = open_model(recorded["arch"]).run_vectors(instruction(recorded["instruction"]), vectors)
    assert result.dtype == d.dtype
    assert np.count_nonzero(result != d) == 0


def test_the_sets_left_out_are_those_without_a_datapath() -> None:
    unknown = {s["key"] for s in SETS if not open_model(s["arch"]).supports(instruction(s["instruction"]))}
    assert unknown == EMULATED
