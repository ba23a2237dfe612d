"""Settling: a datapath that is wrong somewhere is brought to the one that computes the answers."""

from __future__ import annotations

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.certify import Settlement
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.derivation.vectors.rivals import attack_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate

TRUE = datapath_for("gfx942", instruction("v_mfma_f32_32x32x4_2b_f16", "gfx942"))
FORM = instruction("v_mfma_f32_32x32x4_2b_f16", "gfx942")


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {"tree.to.first": "none", "tree.rounding": "RO"},
        {"tree.to.first": "none", "tree.rounding": "RNO", "tree.terms.0.fraction_bits": "30"},
    ],
)
def test_what_imitates_a_cut_is_seen_through(changes: dict[str, str]) -> None:
    believed = TRUE
    for field, value in changes.items():
        believed = mutate(believed, field, value)
    state = State(Session(DatapathDevice(FORM, TRUE), FORM, 5))
    search = Search(state)
    search.run(None)
    found = Settlement(search).run(believed, 20_000)
    assert isinstance(found, Certificate)
    ours, theirs = evaluate_many([state.current, TRUE], attack_vectors(FORM, TRUE, [believed], 7, 40_000))
    assert (ours == theirs).all()
