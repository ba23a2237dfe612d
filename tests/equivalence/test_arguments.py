"""Every argument that two datapaths are the same function is held against vectors of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import mmaprobe
from cases.strategies import any_datapath, vectors
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions
from mmaprobe.catalog.states import modes
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import (
    Accumulator,
    Datapath,
    Encode,
    Fused,
    Products,
    Special,
    Term,
    Zero,
)
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood, neighbours
from mmaprobe.parameters.table import from_table

ARCHITECTURES = ("x86-64+intel", "x86-64+amd", "aarch64", "sm_70", "sm_75", "sm_80", "sm_89", "sm_90a")
WIDE = ("x86-64+intel", "x86-64+amd", "sm_80", "sm_89", "sm_90a")
"""Those with most datapaths, seconds each."""


def distinct(architecture: str) -> dict[Datapath, Instruction]:
    found: dict[Datapath, Instruction] = {}
    for state in (state for base in instructions(architecture) for state in modes(base)):
        try:
            found.setdefault(datapath_for(architecture, state), state)
        except UsageError:
            continue
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=pytest.mark.long if name in WIDE else ()) for name in ARCHITECTURES]
)
def test_neighbours_called_equivalent_are(architecture: str) -> None:
    checked = 0
    for datapath, instruction in distinct(architecture).items():
        same = [n for n in neighbourhood(datapath) if argument(datapath, n)]
        if not same:
            continue
        answers = evaluate_many([datapath, *(n.datapath for n in same)], mixed_vectors(instruction, 3, 4000))
        for neighbour, answer in zip(same, answers[1:], strict=True):
            assert (answer == answers[0]).all(), (instruction.id, neighbour.field, neighbour.value)
        checked += len(same)
    assert checked


@pytest.mark.long
def test_arguments_do_not_cover_what_differs() -> None:
    """The other way round: most neighbours without an argument differ on vectors, and none that differs has one."""
    for datapath, instruction in distinct("sm_90a").items():
        near = neighbourhood(datapath)
        answers = evaluate_many([datapath, *(n.datapath for n in near)], mixed_vectors(instruction, 5, 1500))
        wrong = (answers[1:] != answers[0]).any(axis=1)
        argued = np.array([bool(argument(datapath, n)) for n in near])
        assert wrong.sum() > (~argued).sum() / 2, instruction.id
        assert not (argued & wrong).any(), instruction.id


def argued_rightly(path: Datapath) -> None:
    """Every neighbour of a datapath can be made and argued about, and what is argued to be the same function is."""
    near = [n for n in neighbourhood(path) if argument(path, n)]
    some = vectors(path, 3, 60)
    answers = evaluate(path, some)
    for neighbour in near:
        assert (evaluate(neighbour.datapath, some) == answers).all(), (neighbour.field, neighbour.value)


@pytest.mark.long
@settings(max_examples=12, deadline=None, derandomize=True)
@given(path=any_datapath())
def test_arguments_hold_of_random_datapaths(path: Datapath) -> None:
    argued_rightly(path)


@pytest.mark.long
@settings(max_examples=300, deadline=None, derandomize=True)
@given(path=any_datapath())
def test_arguments_hold_of_many_random_datapaths(path: Datapath) -> None:
    argued_rightly(path)


ONCE_ARGUED_WRONGLY: dict[str, tuple[dict[str, Any], str, str]] = {
    "a first cut carries over the largest value": (
        {"a": "bf16", "b": "bf16", "c": "f32", "d": "f32", "k": 1,
         "tree": {"node": "add", "x": "0", "y": "c", "to": {"format": "tf32", "overflow": "largest"}},
         "result": {"format": "f32", "first": "2 RNO", "overflow": "largest"}},
        "result.overflow", "infinity"),
    "a chain rounds at every lane": (
        {"a": "bf16", "b": "bf16", "c": "bf16", "d": "bf16", "k": 2,
         "tree": {"node": "fma", "acc": "c", "lanes": "0,1", "to": {"format": "bf16", "rounding": "RZ"}}},
        "between", "f64"),
    "a payload that d does not hold": (
        {"a": "f64", "b": "f64", "c": "bf16", "d": "bf16", "k": 1,
         "tree": {"node": "fma", "acc": "c", "lanes": "0", "to": {"format": "bf16"}},
         "special": {"nan": "global", "code": 0x7FC0, "priority": "a0 b0"}},
        "special.quiet", "false"),
    "products are limited before a negative c is added": (
        {"a": "u16", "b": "u16", "c": "s32", "d": "s32", "k": 2,
         "tree": {"node": "exact", "terms": ["0,1", "c"], "to": {"format": "s32", "overflow": "largest"}}},
        "accumulation", "after"),
    "a complement sees the sign of what cancels": (
        {"a": "e2m1", "b": "e2m1", "c": "none", "d": "f32", "k": 2,
         "tree": {"node": "fused", "fraction_bits": 4, "complement": True, "to": {"format": "f32", "zero": "positive"},
                  "terms": [{"of": {"node": "fused", "fraction_bits": "none", "terms": ["0,1"]}}]}},
        "tree.to.rounding", "RD"),
    "a product beyond its bound is an infinity, which the format does not hold": (
        {"a": "e2m1", "b": "e2m1", "c": "none", "d": "f32", "k": 1, "step": 1, "product": {"overflow_exponent": 4},
         "tree": {"node": "fma", "acc": "c", "lanes": "0", "to": {"format": "f32"}}},
        "products", "e4m3"),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE_ARGUED_WRONGLY)
def test_what_was_once_argued_wrongly_is_not_argued(name: str) -> None:
    table, field, value = ONCE_ARGUED_WRONGLY[name]
    path = from_table(table, name)
    rival = mutate(path, field, value)
    assert argument(path, Neighbour(field, value, rival)) is None
    assert any(
        (evaluate(path, some) != evaluate(rival, some)).any() for some in (vectors(path, i, 400) for i in range(9))
    )


@pytest.mark.parametrize("vectors", [None, "10", 1.5, True, -1, 10**30])
def test_a_number_of_vectors_is_a_whole_number(vectors: Any) -> None:
    with pytest.raises(mmaprobe.UsageError, match="vectors is"):
        mmaprobe.validate("model:x86-64+intel", "model:x86-64+intel", "x86.vdpbf16ps", vectors, 0)


def test_seeds_families_and_operands_of_wrong_types_are_errors_of_usage() -> None:
    device, name = "model:x86-64+intel", "x86.vdpbf16ps"
    for call in (
        lambda: mmaprobe.probe(device, name, seed="x"),
        lambda: mmaprobe.derive(device, name, seed="x"),
        lambda: mmaprobe.validate(device, device, name, 10, 0, 3),  # type: ignore[arg-type]
        lambda: mmaprobe.device(device).run(name, None),  # type: ignore[arg-type]
    ):
        with pytest.raises(mmaprobe.UsageError):
            call()


@pytest.mark.parametrize(("d", "numbers_alone"), [("e5m10f", True), ("e3m2", True), ("f16", False), ("e5m6fn", False)])
def test_a_format_that_holds_numbers_alone_saturates_whatever_is_said(d: str, numbers_alone: bool) -> None:
    tree = {"node": "exact", "terms": ["0,1", "c"], "to": {"format": d, "rounding": "RZ"}}
    path = from_table({"a": "f16", "b": "f16", "c": d, "d": d, "k": 2, "tree": tree, "special": {"code": 0x1F}})
    rival = mutate(path, "tree.to.overflow", "infinity")
    assert any(near.field == "tree.to.overflow" for near in neighbours(path)) is not numbers_alone
    assert (same_function(path, rival) is not None) is numbers_alone
    told = any(
        (evaluate(path, some) != evaluate(rival, some)).any() for some in (vectors(path, i, 400) for i in range(3))
    )
    assert told is not numbers_alone


@pytest.mark.parametrize("mode", ["rd", "ru", "rz", None])
def test_a_sum_too_small_to_overflow_is_inward_of_the_infinity(mode: str | None) -> None:
    """FMOPA of f16: two products beside a C of f32.  Rounded outward the largest C does overflow, to the infinity."""
    path = datapath_for("aarch64", lookup.instruction("arm.fmopa.f16" + (f"{{rounding={mode}}}" if mode else "")))
    for value in ("infinity", "largest"):
        found = argument(path, Neighbour("tree.to.overflow", value, mutate(path, "tree.to.overflow", value)))
        told = value == "largest" and mode in ("rd", "ru")
        assert (found is None) is told
    largest, one = 0x7F7FFFFF | (0x80000000 if mode == "rd" else 0), 0x3C00
    minus = one | (0x8000 if mode == "rd" else 0)
    batch = Batch(np.array([[one, 0]], np.uint16), np.array([[minus, 0]], np.uint16), np.array([largest], np.uint32))
    assert bool(evaluate(path, batch)[0] == largest) is (mode not in ("rd", "ru"))


@pytest.mark.parametrize(("bits", "whole"), [("275", True), ("267", True), ("137", False), ("36", False)])
def test_a_term_is_whole_that_no_other_reaches(bits: str, whole: bool) -> None:
    """The largest C lies 176 places above the last one of two products of f16; its own last places are its own."""
    path = datapath_for("aarch64", lookup.instruction("arm.fmopa.f16{rounding=rz}"))
    near = next(each for each in neighbourhood(path) if each.value == f"what is uncut with c at {bits} bits RZ")
    assert (argument(path, near) is not None) is whole
    c, tiny = np.array([0x7F7FFFFF], np.uint32), np.array([[0x8001, 0]], np.uint16)
    batch = Batch(tiny, np.array([[0x0001, 0]], np.uint16), c)
    assert bool((evaluate(path, batch) == evaluate(near.datapath, batch)).all()) is whole


@pytest.mark.parametrize("mode", ["RO", "RA", "RZ", "RNE"])
def test_a_cut_may_make_a_zero_of_its_sign(mode: str) -> None:
    """-2^-20 far below the exponent that a zero shows is cut to -0 by some roundings; with a c of -0 the sum is -0."""
    products = Fused((Term(Zero(), 24, mode), Term(Products((0, 1)), 24, mode)), Encode())
    outer = Fused(
        (Term(products, 24, mode, zero_exponent=60), Term(Accumulator(), 24, mode, zero_exponent=60)), Encode()
    )
    path = Datapath("f16", "f16", "f32", "f32", 2, outer, special=Special(code=0x7FC00000))
    rival = mutate(path, "tree.to.zero", "positive")
    tiny, one = 0x8010, 0x3C00
    given = Batch(
        np.array([[tiny, 0]], np.uint16), np.array([[one, one]], np.uint16), np.array([0x80000000], np.uint32)
    )
    told = bool((evaluate(path, given) != evaluate(rival, given)).any())
    assert told is (mode in ("RZ", "RNE"))
    assert not (told and same_function(path, rival) is not None)
