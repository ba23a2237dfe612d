"""The stages of the search: what goes on to moves that add and remove."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.search.stages import Near, Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.devices.base import open_device
from mmaprobe.parameters.datapath import Encode
from mmaprobe.parameters.lookup import datapath_for

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
