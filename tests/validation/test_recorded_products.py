"""The recorded matrix products are of the operands that their seeds name, as ``validation/recorded/gemm.py`` has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECORD = Path(__file__).parents[2] / "validation" / "recorded" / "gemm-h100-torch-2.11.0.npz"
CLOSE = {"f16": 1e-2, "bf16": 0.1, "f32": 1e-3, "tf32": 0.1}
"""How far an element may be from the product of the unrounded operands: K is 1000, they are standard normal."""


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    with np.load(RECORD) as file:
        return {name: json.loads(str(file[name])) if name == "meta" else file[name] for name in file.files}


def kept(size: int) -> np.ndarray:
    return np.unique(np.linspace(0, size - 1, 64).astype(int))


def test_where_both_lanes_are_one_and_what_repeats(record: dict[str, Any]) -> None:
    """Where p[i] is q[j] the product is -M^2; every other element counts lanes."""
    assert len(record["meta"]["cases"]) >= 49
    for case in record["meta"]["cases"]:
        assert case["repeats"], case["name"]
        m, n, k = map(int, case["name"].split("_")[-3:])
        rng = np.random.default_rng(case["seed"])
        for part in range(2):
            p, q = rng.integers(0, k, m), rng.integers(0, k, n)
            found = record[f"{case['name']}_count{part}"]
            same = p[kept(m)][:, None] == q[kept(n)]
            assert ((found < 0) == same).all(), case["name"]
            assert found.max() <= k


@pytest.mark.parametrize("name", CLOSE)
def test_normal_products_are_of_their_operands(name: str, record: dict[str, Any]) -> None:
    m, n, k = 256, 256, 1000
    case = next(each for each in record["meta"]["cases"] if each["name"] == f"{name}_{m}_{n}_{k}")
    rng = np.random.default_rng(case["seed"])
    for _ in range(2):
        rng.integers(0, k, m), rng.integers(0, k, n)
    a, b = (rng.standard_normal(shape).astype(np.float32).astype(np.float64) for shape in ((m, k), (k, n)))
    apart = np.abs((a @ b)[np.ix_(kept(m), kept(n))] - record[f"{case['name']}_normal"])
    assert apart.max() < CLOSE[name] * np.sqrt(k)
