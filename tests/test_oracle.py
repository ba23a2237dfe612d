"""Three interpreters, one rule: NumPy stages, native engine and the Fraction oracle agree bit for bit.

``MMAPROBE_EXAMPLES`` multiplies the number of random datapaths.
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oracle
import strategies
from mmaprobe.catalog.batch import Batch
from mmaprobe.models import stages
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table, to_table

EXAMPLES = int(os.environ.get("MMAPROBE_EXAMPLES", "1"))
VECTORS = 12
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


def assert_agree(datapath: Datapath, vectors: Batch, got: np.ndarray, want: list[int]) -> None:
    for i, (mine, theirs) in enumerate(zip(got.tolist(), want, strict=True)):
        if mine != theirs:
            one = {name: value[i].tolist() for name, value in vectors.items()}
            raise AssertionError(f"{mine:#x}, oracle {theirs:#x}\n{to_table(datapath)}\n{one}")


@often
@given(strategies.datapaths(), st.integers(0, 2**32 - 1))
def test_stages_as_oracle(datapath: Datapath, seed: int) -> None:
    vectors = strategies.vectors(datapath, seed, VECTORS)
    assert_agree(datapath, vectors, stages.evaluate(datapath, vectors), by_oracle(datapath, vectors))


@often
@given(strategies.scaled_datapaths(), st.integers(0, 2**32 - 1))
def test_stages_as_oracle_with_scales(datapath: Datapath, seed: int) -> None:
    vectors = strategies.vectors(datapath, seed, VECTORS)
    assert_agree(datapath, vectors, stages.evaluate(datapath, vectors), by_oracle(datapath, vectors))


@often
@given(strategies.integer_datapaths(), st.integers(0, 2**32 - 1))
def test_stages_as_oracle_on_integers(datapath: Datapath, seed: int) -> None:
    vectors = strategies.vectors(datapath, seed, VECTORS)
    assert_agree(datapath, vectors, stages.evaluate(datapath, vectors), by_oracle(datapath, vectors))


@given(strategies.any_datapath())
def test_tables_come_back(datapath: Datapath) -> None:
    assert from_table(to_table(datapath)) == datapath
    assert from_table(to_table(datapath, full=True)) == datapath
