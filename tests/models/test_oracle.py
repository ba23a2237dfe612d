"""Three interpreters, one rule: NumPy stages, native engine and the Fraction oracle agree bit for bit.

``MMAPROBE_EXAMPLES`` multiplies the number of random datapaths; with ``-s`` the
numbers of datapaths and vectors that agreed are printed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
from cases import engine as engine_cases
from cases import strategies
from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.models.model import bind, evaluator
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters import datapath as parameters
from mmaprobe.parameters.datapath import Add, Datapath, Encode, Exact, Fma, Products, Special
from mmaprobe.parameters.lookup import datapath_for, in_control_state, load
from mmaprobe.parameters.table import from_table, to_table
from oracle.numbers import encode_value
from oracle.sparse import selected

EXAMPLES = int(os.environ.get("MMAPROBE_EXAMPLES", "1"))
VECTORS = 12
AGREED: Counter[str] = Counter()
often = settings(
    max_examples=200 * EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES == 1
)


def by_oracle(datapath: Datapath, vectors: Batch) -> list[int]:
    """The oracle's answers for a batch of vectors."""
    table = to_table(datapath)
    columns = {name: value.tolist() for name, value in vectors.items()}
    out = []
    for i in range(vectors.size):
        one = {name: column[i] for name, column in columns.items()}
        scales = (one["scale_a"], one["scale_b"]) if "scale_a" in one else None
        out.append(oracle.evaluate(table, one["a"], one["b"], one.get("c"), scales, one.get("random")))
    return out


def joined(batches: list[Batch]) -> Batch:
    """Several batches as one."""
    columns = [dict(batch.items()) for batch in batches]
    return Batch(**{name: np.concatenate([column[name] for column in columns]) for name in columns[0]})


@pytest.fixture(scope="module", autouse=True)
def tally() -> Iterator[None]:
    """Prints how much agreed when the module is done."""
    yield
    print("\n" + ", ".join(f"{name}: {number}" for name, number in sorted(AGREED.items())))


def check(datapath: Datapath, vectors: Batch) -> None:
    """Stages as oracle, and the engine as both where it takes the datapath."""
    want = by_oracle(datapath, vectors)
    runs = {"stages": stages.evaluate(datapath, vectors)}
    if engine.refusal(datapath) is None:
        runs["engine"] = engine.evaluate(datapath, vectors)
    for name, got in runs.items():
        for i, (mine, theirs) in enumerate(zip(got.tolist(), want, strict=True)):
            if mine != theirs:
                one = {operand: value[i].tolist() for operand, value in vectors.items()}
                raise AssertionError(f"{name} {mine:#x}, oracle {theirs:#x}\n{to_table(datapath)}\n{one}")
        AGREED[f"{name} datapaths"] += 1
        AGREED[f"{name} vectors"] += vectors.size


@pytest.mark.long
@often
@given(strategies.datapaths(), st.integers(0, 2**32 - 1))
def test_random_datapaths(datapath: Datapath, seed: int) -> None:
    check(datapath, strategies.vectors(datapath, seed, VECTORS))


@pytest.mark.long
@often
@given(strategies.scaled_datapaths(), st.integers(0, 2**32 - 1))
def test_random_block_scaled_datapaths(datapath: Datapath, seed: int) -> None:
    check(datapath, strategies.vectors(datapath, seed, VECTORS))


@often
@given(strategies.integer_datapaths(), st.integers(0, 2**32 - 1))
def test_random_integer_datapaths(datapath: Datapath, seed: int) -> None:
    check(datapath, strategies.vectors(datapath, seed, VECTORS))


def shipped() -> dict[str, Datapath]:
    """Every different datapath of the shipped parameter files, under the first name it has."""
    known: dict[Datapath, str] = {}
    for architecture in (*lookup.architectures(), "x86-64+amd", "x86-64+intel"):
        for primitive, entry in load(architecture).entries.items():
            known.setdefault(entry.datapath, f"{architecture}/{primitive}")
            for state in ({"daz": ""}, {"ftz": ""}, {"daz": "", "ftz": "", "rounding": "rd"}, {"rounding": "rz"}):
                name = f"{architecture}/{primitive}{{{','.join(state)}}}"
                known.setdefault(in_control_state(entry.datapath, state, entry.follows), name)
    return {name: datapath for datapath, name in known.items()}


SHIPPED = shipped()


@pytest.mark.sampled(60)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_datapaths(name: str) -> None:
    datapath = SHIPPED[name]
    count = min(200, 60 + 240 // datapath.k) * EXAMPLES
    vectors = joined([strategies.vectors(datapath, seed, count // 6) for seed in range(6)])
    check(datapath, vectors)


def instructions() -> dict[str, tuple[Instruction, Datapath]]:
    """One instruction of each different whole datapath and kind of metadata: lowering over its primitive's."""
    known: dict[tuple[Datapath, int], tuple[str, Instruction]] = {}
    for architecture in (*lookup.architectures(), "x86-64+intel"):
        for instruction in lookup.instructions(architecture):
            with suppress(UsageError):  # no datapath is known
                found = datapath_for(architecture, instruction), instruction.chunk
                known.setdefault(found, (f"{architecture}/{instruction.id}", instruction))
    return {name: (instruction, datapath) for (datapath, _), (name, instruction) in known.items()}


INSTRUCTIONS = instructions()


@pytest.mark.sampled(70)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_on_generated_vectors(name: str) -> None:
    """Every family of hard vectors."""
    instruction, datapath = INSTRUCTIONS[name]
    parts = [generate(instruction, family, 7, 0, 4 * EXAMPLES) for family in families_for(instruction)]
    vectors = joined(parts)
    if vectors.metadata is not None:
        rows = zip(vectors.b.tolist(), vectors.metadata.tolist(), strict=True)
        b = np.array([selected(row, items, instruction.chunk) for row, items in rows], vectors.b.dtype)
        dense = replace(vectors, b=b, metadata=None)
        model = bind(instruction, datapath)
        assert (model.run_vectors(vectors) == evaluator(datapath)(datapath, dense)).all()
        vectors = dense
    check(datapath, vectors)


@pytest.mark.parametrize("name", engine_cases.DATAPATHS)
def test_named_datapaths(name: str) -> None:
    """The algorithms of every known unit, on two makers of vectors."""
    datapath = engine_cases.DATAPATHS[name]
    count = EXAMPLES * min(24, 4 + 96 // datapath.k)
    check(datapath, strategies.vectors(datapath, 1, count))
    for mode in engine_cases.MODES:
        check(datapath, engine_cases.batch(datapath, mode, seed=3, count=count))


CANCELLATION = {
    "CDNA1 f16": -0.875, "CDNA1 bf16": -0.875, "CDNA2 bf16_1k": 0.0, "CDNA3 bf16": -0.5, "T-FDPA f16": -0.75,
    "T-FDPA bf16 chain": -0.5, "T-FDPA f16, Volta chain": 0.0, "T-FDPA e5m2 to e8m13": 0.0,
}  # fmt: skip
"""What units make of 2^23 - 2^13 2^10 - .5 - .25 - .125 (exactly -0.875): equation 10 of the founding paper."""


@pytest.mark.parametrize("name", CANCELLATION)
def test_published_cancellation(name: str) -> None:
    datapath = engine_cases.DATAPATHS[name]
    operands = {"a": [-(2.0**13), -0.5, -0.25, -0.125], "b": [2.0**10, 1, 1, 1]}
    batch = {}
    for operand, values in operands.items():
        fmt = formats.get(getattr(datapath, operand))
        codes = [encode_value(fmt.name, Fraction(value), value < 0, "RNE") for value in values]
        batch[operand] = np.array([codes + [0] * (datapath.k - 4)], fmt.dtype)
    vectors = Batch(**batch, c=np.array([0x4B000000], np.uint32))
    check(datapath, vectors)
    assert stages.evaluate(datapath, vectors).view(np.float32).tolist() == [CANCELLATION[name]]


@pytest.mark.parametrize("tininess", ["before", "after", "encoded"])
@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
def test_flush_next_to_the_lowest_normal(rounding: str, tininess: Any) -> None:
    """2^-126 (1 +- j 2^-26) and a few far below, both signs, every flush."""
    lowest = (1023 - 126) << 52
    values = [lowest + j * (1 << 26) for j in range(-12, 13)] + [lowest - (n << 52) for n in (1, 22, 23, 24, 25, 60)]
    a = np.array([[sign | value] for value in values for sign in (0, 1 << 63)], np.uint64)
    vectors = Batch(a, np.full_like(a, formats.get("f64").one))
    for flush in parameters.SUBNORMALS:
        to = Encode("f32", rounding, subnormals=flush, tininess=tininess)
        check(Datapath("f64", "f64", None, "f32", 1, Exact((Products((0,)),), to)), vectors)


def test_one_product_may_start_a_chain() -> None:
    """fma(a1, b1, a0 b0), the first product exact: once a crash of the stages."""
    to = Encode()
    for tree in (Fma(Products((0,)), (1, 2), to), Add(Products((0,)), Exact((Products((1, 2)),)), to)):
        datapath = Datapath("bf16", "f16", "f32", "f32", 3, tree, special=Special("local", 0x7FC00000))
        check(datapath, strategies.vectors(datapath, 5, 40))


def test_several_products_are_not_one_operand() -> None:
    with pytest.raises(UsageError, match="products of one lane"):
        Datapath("f16", "f16", "f32", "f32", 3, Fma(Products((0, 1)), (2,), Encode()))


@given(strategies.any_datapath())
def test_tables_come_back(datapath: Datapath) -> None:
    assert from_table(to_table(datapath)) == datapath
    assert from_table(to_table(datapath, full=True)) == datapath
