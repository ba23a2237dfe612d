"""Every argument that two datapaths are the same function is held against vectors of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions
from mmaprobe.catalog.states import modes
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import neighbourhood

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


@pytest.mark.sampled(2)
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
