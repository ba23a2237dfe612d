"""Terms far below the others, where no end of a range matters."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.vectors.below_range import faint_vectors, reaches_lower
from mmaprobe.devices.base import open_device
from mmaprobe.parameters.lookup import datapath_for

SUM = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
TRUTH = datapath_for("sm_90a", SUM)


def test_faint_vectors_have_normal_operands_and_products_below_those_of_plain_ones() -> None:
    vectors = faint_vectors(SUM, 3, 500)
    f16 = formats.get("f16")
    a, b = (formats.decode(f16, operand) for operand in (vectors.a, vectors.b))
    assert vectors.c is not None
    for decoded in (a, b, formats.decode(f16, vectors.c)):
        assert (decoded.kind == formats.NORMAL).all()
    assert (a.exponent + b.exponent + 2 * f16.fraction_bits).min() == 2 * f16.min_exponent


@pytest.mark.parametrize(
    ("name", "lower"), [("m16n8k16.row.col.f16.f16.f16.f16", True), ("m16n8k8.row.col.f32.f16.f16.f32", False)]
)
def test_they_are_for_operands_that_reach_lower_than_the_result(name: str, lower: bool) -> None:
    assert reaches_lower(instruction(f"mma.sync.aligned.{name}")) is lower


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_sums_of_hopper_rounded_to_f16_are_derived(seed: int) -> None:
    found = derive(open_device("model:sm_90a"), SUM, seed=seed, fresh=5000)
    assert found.status == "exact"
    assert found.datapath is not None
    assert found.launches < 30
    assert np.count_nonzero([entry.verdict == "open" for entry in found.certificate.entries]) == 0
