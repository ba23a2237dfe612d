"""The stages of the search: what goes on to moves that add and remove."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.search import skeletons, stages
from mmaprobe.derivation.search.fields import complemented
from mmaprobe.derivation.search.lane_orders import alike
from mmaprobe.derivation.search.skeletons import all_structures
from mmaprobe.derivation.search.stages import ENDS, Near, Search
from mmaprobe.derivation.session import Session, State
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Datapath, Encode, Fused, walk
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


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("sm_80", FORM.id),
        ("sm_80", "mma.m8n8k4.f64.f64.f64.f64"),
        ("sm_120a", "mma.m16n8k64.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"),
        ("gfx1200", "v_wmma_f32_16x16x16_f16"),
        ("gfx1100", "v_wmma_f32_16x16x16_bf16"),
    ],
)
def test_opposites_leave_something_in_a_sign_frame_alone(architecture: str, name: str) -> None:
    """A power of two and its opposite cancel, unless a sum negates by ones' complement."""
    form = instruction(name, architecture)
    search = Search(State(Session(open_device(f"model:{architecture}"), form, 0)))
    search._ask_plain(1)
    assert search.complements == (architecture == "gfx1100")
    search._ask_plain(2)
    assert search.complements == (architecture == "gfx1100")


def test_a_sum_in_a_sign_frame_is_found_among_all_structures() -> None:
    """Without what few units have, which is looked at last."""
    form = instruction("v_dot2_f32_f16", "gfx1100")
    found = derive(open_device("model:gfx1100"), form)
    assert found.datapath is not None
    assert complemented(found.datapath)
    assert "what few units have" not in {name for name, _ in found.spent.stages}


def test_another_structure_keeps_how_sums_negate_and_carry() -> None:
    form = instruction("v_wmma_f32_16x16x16_f16", "gfx1100")
    path = mutate(datapath_for("gfx1100", form), "tree.carry_bits", "5")
    every = all_structures(form)
    moved = [made for each in every if (made := alike(form, each, path)) is not None and complemented(made)]
    assert len(moved) > 32
    assert all(node.carry_bits == 5 for made in moved for node in walk(made.tree) if isinstance(node, Fused))


def test_what_imitated_hands_its_numbers_to_other_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fresh vectors refute it and no way leads further: with what few units have, and once."""
    search = Search(State(Session(DEVICE, FORM, 0)))
    search._ask_plain(1)
    asked: list[Datapath] = []
    monkeypatch.setattr(search, "_down", lambda path, seen, odd_first: (path, 0.0 if path == RIGHT else 1.5))
    monkeypatch.setattr(search, "_signed", lambda path, seen: (path, 0.0 if path == RIGHT else 1.5))
    monkeypatch.setattr(search, "_fresh", lambda paths: int(paths[0] != RIGHT))
    monkeypatch.setattr(search, "_with_rare", lambda path, seen: asked.append(path) or (path, 0.0))
    monkeypatch.setattr(search, "_simplest", lambda path, seen: path)
    monkeypatch.setattr(search, "structured", lambda path: iter([IMITATION, START, RIGHT]))
    assert list(search.finished(IMITATION)) == [RIGHT]
    assert set(asked) == {START, RIGHT}
    assert not list(search.finished(IMITATION, otherwise=False))


@pytest.mark.parametrize(
    ("status", "stages_in_order"),
    [("exact", ["rarely", "all", "all"]), ("bounded", ["all", "rarely", "all"])],
)
def test_what_few_units_have_waits_where_the_structure_is_not_known(
    status: Any, stages_in_order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a window leaves of a summation tree may not hold the right structure: all others come first."""
    search, ran = Search(State(Session(DEVICE, FORM, 0))), list[str]()
    near = [Near(RIGHT, 99.0)]

    def stage(name: str) -> Any:
        def run(*_: Any) -> Iterator[Datapath]:
            ran.append(name)
            yield from ()
            return near

        return run

    monkeypatch.setattr(stages, "read", lambda state: Finding("summation_tree", status, "", None))
    monkeypatch.setattr(skeletons, "read_structures", lambda *_: all_structures(FORM)[:1])
    for name in ("_ranked", "_lowered", "_further"):
        monkeypatch.setattr(search, name, lambda *_: near)
    monkeypatch.setattr(search, "_rarely", stage("rarely"))
    monkeypatch.setattr(search, "_of_all", stage("all"))
    monkeypatch.setattr(search, "rarer", lambda path: iter(()))
    assert not list(search._structures())
    assert ran == stages_in_order
