"""Three interpreters, one rule: NumPy stages, native engine and the Fraction oracle agree bit for bit.

``MMAPROBE_EXAMPLES`` multiplies the number of random datapaths; with ``-s`` the
numbers of datapaths and vectors that agreed are printed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import strategies
from mmaprobe.catalog import lookup
from mmaprobe.catalog.batch import Batch
from mmaprobe.models import engine, stages
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import in_control_state, load
from mmaprobe.parameters.table import from_table, to_table

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
        out.append(oracle.evaluate(table, one["a"], one["b"], one.get("c"), scales))
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


@often
@given(strategies.datapaths(), st.integers(0, 2**32 - 1))
def test_random_datapaths(datapath: Datapath, seed: int) -> None:
    check(datapath, strategies.vectors(datapath, seed, VECTORS))


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


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_datapaths(name: str) -> None:
    datapath = SHIPPED[name]
    count = min(200, 60 + 240 // datapath.k) * EXAMPLES
    vectors = joined([strategies.vectors(datapath, seed, count // 6) for seed in range(6)])
    check(datapath, vectors)


@given(strategies.any_datapath())
def test_tables_come_back(datapath: Datapath) -> None:
    assert from_table(to_table(datapath)) == datapath
    assert from_table(to_table(datapath, full=True)) == datapath
