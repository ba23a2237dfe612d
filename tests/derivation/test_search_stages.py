"""The stages of the search: what goes on to moves that add and remove."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.search.stages import ENDS, Near, Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.parameters.datapath import Encode
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import from_table

FORM = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_80")
DEVICE = open_device("model:sm_80")
RIGHT = datapath_for("sm_80", FORM)
IMITATION = replace(RIGHT, product=replace(RIGHT.product, label="operands"))
START = replace(RIGHT, result=Encode("f32"))


@pytest.mark.parametrize("in_vain", [True, False])
def test_what_agreed_in_vain_does_not_keep_others_from_moves(in_vain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A structure that plain answers bear out and the ends of the range do not is no reason to end there."""
    search = Search(State(Session(DEVICE, FORM, 0)))
    _, seen, _ = search._ask_plain(1)
    monkeypatch.setattr(search, "_raced", lambda near: iter(()))
    monkeypatch.setattr(search, "_by_ends", lambda near, seen: iter(near))
    monkeypatch.setattr(search, "_moved", lambda near, seen: Near(RIGHT, 0.0) if near.path == START else near)
    near = [Near(IMITATION, 0.0), Near(START, 9.0)]
    if in_vain:
        assert not list(search._taken_on(near[:1]))
    assert (RIGHT in {each.path for each in search._further(near, seen)}) == in_vain


def test_other_structures_get_the_numbers_of_the_nearest() -> None:
    """A sum of all lanes at once that only rounds as the device does leads to the one in steps that is the device's."""
    form = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80")
    right = datapath_for("sm_80", form)
    at_once = mutate(right, "step", "16")
    search = Search(State(Session(DEVICE, form, 0)))
    _, seen, _ = search._ask_plain(1)
    found = search._elsewhere(Near(at_once, seen.total(at_once)), seen)
    assert found[0].loss == 0
    assert found[0].path.step_length == right.step_length == 8
    assert not search._elsewhere(Near(right, 0.0), seen)


def test_what_a_probe_reads_goes_on_where_it_has_hardly_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flush between steps leaks into plain answers: a little loss is no reason to try all other structures first."""
    search = Search(State(Session(DEVICE, FORM, 0)))
    monkeypatch.setattr(search, "_taken_on", lambda near: (each.path for each in near))
    monkeypatch.setattr(search, "_further", lambda near, seen, turns: near)
    _, seen, _ = search._ask_plain(1)
    near = [Near(RIGHT, 4.5)]
    assert not list(search._agreeing(near, seen, 0))
    assert list(search._agreeing(near, seen, 0, 6.0)) == [RIGHT]


def test_products_that_are_exact_by_magnitudes_are_tried_rounded() -> None:
    """A format that products are rounded to may show in the sign of a zero alone: each in the nearest way."""
    small = {
        "a": "e5m2", "b": "e4m3", "c": "bf16", "d": "f32", "k": 4,
        "tree": {"node": "fused", "terms": ["c", "0,1"], "fraction_bits": 24, "to": {"format": "f32"}},
        "step": 2, "product": {"to": {"format": "f16", "rounding": "RZ", "underflow": "positive"}},
    }  # fmt: skip
    true = from_table(small, "rounded products")
    made = replace(FORM, a="e5m2", b="e4m3", c="bf16", d="f32", k=4)
    search = Search(State(Session(DatapathDevice(made, true), made, 3)))
    search._ask_plain(1)
    search._ask_ends(true)
    exact = replace(true, product=replace(true.product, to=None))
    found = list(search._rounded(exact, search._seen(ENDS)))
    assert {path.product.to and path.product.to.format for path in found} >= {"f16", "bf16", "f32"}
    assert ("f16", "RZ") in {(to.format, to.rounding) for path in found if (to := path.product.to)}
