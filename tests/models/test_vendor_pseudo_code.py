"""The shipped CPU parameter files, as models, against the vendors' pseudo-code, and this machine against both.

``MMAPROBE_EXAMPLES`` multiplies the 10^4 vectors of each instruction; 100 makes
them 10^6.  Vectors come from the generators, every family in its share.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions, lowering
from mmaprobe.catalog.states import modes
from mmaprobe.devices import cpu
from mmaprobe.devices.base import run_vectors
from mmaprobe.generators import generate, plan
from mmaprobe.models.model import evaluator
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for, load
from oracle import vendor

EXAMPLES = int(os.environ.get("MMAPROBE_EXAMPLES", "1"))
VECTORS = 10_000 * EXAMPLES
SEED = 20261121
PLACES = ("b", "vgx")
"""Modifiers of registers: no sum depends on them."""
HERE = cpu.open_cpu("")


def cases(architecture: str) -> list[Any]:
    """(architecture, instruction in its default state) for everything that the architecture's own file holds.

    Forms that differ in where operands lie alone are one case: an opcode, a state and primitives, on the same vectors.
    """
    own = {entry.primitive for entry in load(architecture).entries.values() if entry.origin == architecture}
    found: dict[Any, Instruction] = {}
    for instruction in instructions(architecture):
        primitives = lowering(instruction, architecture).primitives
        state = tuple(pair for pair in instruction.modifiers if pair[0] not in PLACES)
        if "width" not in instruction.modifier and set(primitives) <= own:
            found.setdefault((instruction.opcode, state, primitives), instruction)
    return [pytest.param(architecture, known, id=f"{architecture}-{known.id}") for known in found.values()]


CASES = [case for name in ("x86-64", "x86-64+amd", "x86-64+intel", "aarch64") for case in cases(name)]
UNITS = [instruction for instruction in HERE.instructions() if "width" not in instruction.modifier]


@lru_cache(maxsize=4)
def vectors(instruction: Instruction, count: int) -> Batch:
    parts = [generate(instruction, family, SEED, start, n) for family, start, n in plan(instruction, count)]
    columns = [dict(part.items()) for part in parts]
    return Batch(**{name: np.concatenate([column[name] for column in columns]) for name in columns[0]})


def count_in(states: int) -> int:
    """Vectors of one control state; together they are the instruction's number."""
    return max(100, VECTORS // states)


def expected(state: Instruction, batch: Batch) -> np.ndarray:
    return vendor.evaluate(state.opcode, state.modifier, batch.a, batch.b, batch.c)


def fixed(state: Instruction) -> bool:
    """Whether the vendor's text fixes the payload of a NaN result (integers have none)."""
    return state.opcode.startswith(vendor.PAYLOAD) or not formats.get(state.d).is_float


def assert_same(state: Instruction, batch: Batch, got: np.ndarray, want: np.ndarray, payload: bool) -> None:
    """Equal bits; without ``payload`` one NaN is as good as another."""
    if not payload:
        d = formats.get(state.d)
        got, want = (np.where(formats.decode(d, x).kind == formats.NAN, d.nan_code or 0, x) for x in (got, want))
    bad = np.flatnonzero(got != want)
    if bad.size:
        one = {name: [hex(x) for x in np.ravel(value[bad[0]]).tolist()] for name, value in batch.items()}
        raise AssertionError(
            f"{state.id}: {bad.size} of {batch.size} differ, first {one}: {got[bad[0]]:#x}, expected {want[bad[0]]:#x}"
        )


@pytest.mark.parametrize(("architecture", "instruction"), CASES)
def test_parameters_as_pseudo_code(architecture: str, instruction: Instruction) -> None:
    """Every control state; NaN payloads as bits where the vendor's text fixes them."""
    states = modes(instruction)
    for state in states:
        batch = vectors(instruction, count_in(len(states)))
        datapath = datapath_for(architecture, state)
        got = evaluator(datapath)(datapath, batch)
        assert_same(state, batch, got, expected(state, batch), payload=fixed(state))


@pytest.mark.parametrize("instruction", UNITS, ids=lambda unit: unit.id)
def test_this_machine_as_both(instruction: Instruction) -> None:
    """The silicon here: its architecture's files with every NaN payload as bits, and the pseudo-code."""
    if not (support := HERE.supports(instruction)):
        pytest.skip(f"{instruction.id}: {support.reason}")
    states = modes(instruction)
    for state in states:
        batch = vectors(instruction, count_in(len(states)))
        got = run_vectors(HERE, state, batch)
        datapath = datapath_for(HERE.architecture, state)
        assert_same(state, batch, got, evaluator(datapath)(datapath, batch), payload=True)
        assert_same(state, batch, got, expected(state, batch), payload=fixed(state))
