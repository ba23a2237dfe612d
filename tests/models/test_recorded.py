"""Recorded outputs of real GPUs against the models: every bit of every result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.model import open_model
from mmaprobe.models.model import evaluator
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import entry_for
from mmaprobe.parameters.neighbours import neighbours

CORPUS = Path(os.environ.get("MMAPROBE_CORPUS", "no corpus"))
HERE = (CORPUS / "manifest.json").is_file()
SETS: list[dict[str, Any]] = json.loads((CORPUS / "manifest.json").read_text()) if HERE else []

pytestmark = pytest.mark.needs("corpus")


def vectors_of(recorded: dict[str, Any]) -> tuple[Batch, Any]:
    """The set's vectors, lanes that the recording left zero included, and the recorded results."""
    made = instruction(recorded["instruction"])
    with np.load(CORPUS / "vectors.npz", allow_pickle=False) as arrays:
        a, b, c, d = (arrays[f"{recorded['key']}/{name}"] for name in "abcd")
    short = ((0, 0), (0, made.k - a.shape[1]))
    return Batch(np.pad(a, short), np.pad(b, short), c), d


@pytest.mark.parametrize("recorded", SETS, ids=lambda s: s["key"])
def test_the_model_gives_the_recorded_bits(recorded: dict[str, Any]) -> None:
    vectors, d = vectors_of(recorded)
    assert vectors.size == recorded["count"] > 0
    result = open_model(recorded["arch"]).run_vectors(instruction(recorded["instruction"]), vectors)
    assert result.dtype == d.dtype
    assert np.count_nonzero(result != d) == 0


def test_no_set_is_left_out() -> None:
    assert len(SETS) == 30
    assert all(open_model(s["arch"]).supports(instruction(s["instruction"])) for s in SETS)


FIXED = ("tree.fraction_bits", "tree.rounding", "tree.to.rounding", "product.label=normalised", "step=")
FP8 = ("e4m3", "e5m2")
JUDGED = ("V100/f16/f32", "V100/f16/f16", "H200/bf16/f32", "B200/tf32/f32", "Ada/e4m3/f32", "Ada/e5m2/f16")


def survivors(recorded: dict[str, Any]) -> set[str]:
    """The neighbours of a set's datapath that give the recorded bits as well: what it does not fix."""
    vectors, d = vectors_of(recorded)
    entry = entry_for(recorded["arch"], instruction(recorded["instruction"]))
    fields = (*FIXED, "order=", "operand_a.subnormals=zero", "tree.zero_exponent=none")
    judged = [n for n in neighbours(entry.datapath) if f"{n.field}={n.value}".startswith(fields)]
    alive = [n for n in judged if (evaluator(n.datapath)(n.datapath, vectors) == d).all()]
    return {f"{n.field}={n.value}" for n in alive}


@pytest.mark.parametrize("recorded", [s for s in SETS if s["key"] in JUDGED], ids=lambda s: s["key"])
def test_the_recordings_fix_what_the_parameter_files_say(recorded: dict[str, Any]) -> None:
    alive = survivors(recorded)
    assert "tree.zero_exponent=none" in alive
    if recorded["d"] == "f32" or recorded["a"] in FP8:
        assert not [change for change in alive if change.startswith(FIXED)]
    else:
        assert "tree.fraction_bits=none" in alive
        assert {"tree.to.rounding=RU", "tree.to.rounding=RD", "tree.to.rounding=RZ"}.isdisjoint(alive)
        assert "tree.to.rounding=RNU" in alive
    if recorded["a"] in FP8:
        assert not [change for change in alive if change.startswith("order=")]
    if recorded["a"] == "e4m3":
        assert "operand_a.subnormals=zero" not in alive
