"""Settling: a datapath that is wrong somewhere is brought to the one that computes the answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import certify
from mmaprobe.derivation.certificate import OTHERWISE, Certificate
from mmaprobe.derivation.certify import OTHERS, Settlement
from mmaprobe.derivation.hypotheses.structures import fused_structures
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.derivation.vectors.rivals import attack_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.models import engine
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import fields_said, from_table, to_table

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


def settling(believed: Datapath, others: int = OTHERS) -> Settlement:
    """A settlement of this datapath, before anything was asked, its plainer neighbours left."""
    state = State(Session(DatapathDevice(FORM, TRUE), FORM, 5))
    state.believed = believed
    settlement = Settlement(Search(state), others)
    said = fields_said(believed)
    settlement.left = [near for near in neighbours(believed) if fields_said(near.datapath) < said]
    return settlement


FLUSHED = mutate(mutate(TRUE, "operand_a.subnormals", "signed_zero"), "operand_b.subnormals", "signed_zero")


def test_what_says_less_is_believed_at_once() -> None:
    settlement = settling(FLUSHED)
    assert {near.field for near in settlement.left} >= {"operand_a.subnormals", "operand_b.subnormals"}
    assert settlement._plainer()
    said = settlement.state.current
    assert (said.operand_a.subnormals, said.operand_b.subnormals) == ("keep", "keep")


def test_what_the_engine_cannot_hold_is_not_believed_for_saying_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its vectors would cost some hundred times as much, for the same function."""
    settlement = settling(FLUSHED)
    monkeypatch.setattr(engine, "refusal", lambda path: None if path == FLUSHED else "too wide")
    assert not settlement._plainer()
    assert settlement.state.current == FLUSHED


ZEROS = mutate(TRUE, "tree.to.zero", "ieee" if TRUE.root.zero == "positive" else "positive")


def test_what_agreed_as_well_is_held_to_what_refutes_neighbours() -> None:
    """Two changes away, so no neighbour: it is an entry as long as nothing tells it."""
    settlement = settling(TRUE)
    far = mutate(mutate(TRUE, "special.code", "0x7fc00001"), "tree.to.first", "none")
    settlement.state.others = [far, TRUE, far, ZEROS]
    settlement._look()
    others = [near for near in settlement.left if near.field == OTHERWISE]
    assert [near.datapath for near in others] == [far]
    assert "special.code 0x7fc00001" in others[0].value
    certificate = settlement._certificate()
    assert certificate.otherwise == ((others[0].value, to_table(far)),)
    assert not [entry for entry in certificate.entries if entry.field == OTHERWISE]
    assert settlement._refuted(0, range(2)) is False
    assert others[0][:2] in settlement.state.proofs
    assert settlement._certificate().otherwise == ()


def test_another_way_to_write_the_same_function_is_no_entry() -> None:
    made = instruction("mma.m16n8k16.f32.f16.f16.f32")
    path = datapath_for("sm_90a", made)
    state = State(Session(DatapathDevice(made, path), made, 5))
    state.believed = path
    settlement = Settlement(Search(state))
    same = mutate(mutate(path, "tree.to.overflow", "infinity"), "product.overflow_exponent", "4000")
    state.others = [same]
    settlement._look()
    asked = [near.datapath for near in settlement.near if near.field == OTHERWISE]
    assert asked == [same]
    settlement._argued()
    assert not [near for near in settlement.near if near.field == OTHERWISE]


def test_a_proof_is_looked_for_with_a_part_of_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof may take every step for each field; what it took is not missing from the rest."""
    settlement, asked = settling(TRUE), []

    def endless(one: Datapath, other: Datapath, looking: Callable[[Datapath], None]) -> None:
        while len(asked) < 10_000:
            asked.append(one)
            looking(one)

    monkeypatch.setattr(certify, "same_function", endless)
    allowance = settlement.state.allowance
    before = allowance.left
    assert not settlement._same(mutate(TRUE, "tree.to.first", "none"))
    assert 0 < len(asked) < 10_000
    assert allowance.left == pytest.approx(before * (1 - certify.PROOF))
    assert not allowance.ended


def test_of_many_that_agreed_as_well_all_are_named() -> None:
    """Those that are too many to be held to anything, as long as they agree with what is asked for others."""
    settlement = settling(TRUE, others=1)
    codes = ["0x7fc00001", "0x7fc00003", "0x7fc00007"]
    others = [mutate(mutate(TRUE, "special.code", code), "tree.to.first", "none") for code in codes]
    settlement.state.others = others
    settlement._look()
    assert [near.datapath for near in settlement.near if near.field == OTHERWISE] == others[:1]
    assert [from_table(table) for _, table in settlement._certificate().otherwise] == others
    settlement._refuted(0, range(2))
    assert settlement._certificate().otherwise == ()


def test_another_structure_with_the_same_numbers_comes_before_details(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the structures that a probe left the one that agrees with everything, where no neighbour does."""
    form = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80")
    true = datapath_for("sm_80", form)
    state = State(Session(DatapathDevice(form, true), form, 5))
    search = Search(state)
    search._ask_plain(1)
    search.known = list(fused_structures(form.k, True))
    state.believed = mutate(true, "step", "16")
    settlement = Settlement(search)
    monkeypatch.setattr(settlement, "_moved_near", lambda more, most=None: False)
    monkeypatch.setattr(search, "mended", lambda path: None)
    monkeypatch.setattr(state, "move", lambda candidates: False)
    assert settlement._repair() is None
    assert state.current.step_length == true.step_length == 8
