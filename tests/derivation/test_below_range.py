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
    assert vectors.c is not None
    a, b, c = (formats.decode(f16, operand) for operand in (vectors.a, vectors.b, vectors.c))
    for decoded in (a, b):
        assert (decoded.kind == formats.NORMAL).all()
    assert set(np.unique(c.kind)) == {formats.NORMAL, formats.ZERO}
    assert (a.exponent + b.exponent + 2 * f16.fraction_bits).min() == 2 * f16.min_exponent


def test_beside_a_zero_c_every_product_is_faint() -> None:
    """In an eighth of them, with either sign of C, only the sign of a zero shows what a sum loses."""
    vectors = faint_vectors(SUM, 3, 500)
    assert vectors.c is not None
    alone = (vectors.c & 0x7FFF) == 0
    assert 500 / 16 < alone.sum() < 500 / 5
    assert set(vectors.c[alone].tolist()) == {0, 0x8000}
    f16 = formats.get("f16")
    a, b = (formats.decode(f16, operand) for operand in (vectors.a[alone], vectors.b[alone]))
    products = a.exponent + b.exponent + 2 * f16.fraction_bits
    assert (products.max(axis=1) - products.min(axis=1)).max() <= 2


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
