"""Matrix instructions of AMD: the models against what is published."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mmaprobe
from by_hand import code, exact, p
from mmaprobe.catalog import lookup
from mmaprobe.catalog.batch import Batch
from mmaprobe.catalog.lookup import instructions
from mmaprobe.devices.model import open_model
from mmaprobe.generators.families import families_for, generate
from mmaprobe.models import engine, stages

ARCHITECTURES = ("gfx908", "gfx90a", "gfx942")


def run(arch: str, name: str, a: list[float], b: list[float], c: float = 0.0) -> Fraction:
    made = lookup.instruction(name, arch)
    rows = [np.array([[code(fmt, x) for x in values + [0.0] * (made.k - len(values))]], mmaprobe.formats.get(fmt).dtype)
            for fmt, values in ((made.a, a), (made.b, b))]  # fmt: skip
    start = np.array([code(made.d, c)], mmaprobe.formats.get(made.d).dtype)
    return exact(made.d, int(mmaprobe.model(arch, name).dot(rows[0], rows[1], start)[0]))


EQUATION_10 = {
    ("gfx908", "v_mfma_f32_16x16x16f16"): -0.875, ("gfx908", "v_mfma_f32_16x16x8bf16"): -0.875,
    ("gfx90a", "v_mfma_f32_16x16x8bf16"): -0.375, ("gfx90a", "v_mfma_f32_16x16x16bf16_1k"): 0.0,
    ("gfx90a", "v_mfma_f32_16x16x16f16"): 0.0, ("gfx90a", "v_mfma_f64_16x16x4f64"): -0.875,
    ("gfx942", "v_mfma_f32_16x16x16_f16"): -0.5, ("gfx942", "v_mfma_f32_16x16x16_bf16"): -0.5,
    ("gfx942", "v_mfma_f32_16x16x32_bf8_bf8"): -1.0,
}  # fmt: skip


@pytest.mark.parametrize(("arch", "name"), EQUATION_10)
def test_the_founding_papers_sum(arch: str, name: str) -> None:
    """MMA-Sim, equation 10 and table 8: -2^23 - 0.5 - 0.25 - 0.125 + 2^23."""
    found = run(arch, name, [-p(13), -0.5, -0.25, -0.125], [p(10), 1.0, 1.0, 1.0], p(23))
    assert found == Fraction(EQUATION_10[arch, name])


def test_a_small_negative_c_costs_a_quarter() -> None:
    """MMA-Sim, the example of the founding paper: 2048 2048 - 2048 2048 - 0.000001 on CDNA3."""
    c = -float(np.float32(0.000001))
    assert run("gfx942", "v_mfma_f32_16x16x16_f16", [2048, -2048], [2048, 2048], c) == Fraction(-1, 4)


@pytest.mark.parametrize(
    ("x", "same", "other"), [(0.25, 0, 0), (0.75, 0, 0), (1.5, 1, 1), (-0.25, 0, -1), (-0.75, 0, -1), (-1.5, -1, -2)]
)
def test_the_notebook_of_mi300x(x: float, same: int, other: int) -> None:
    """microsoft/MMA-Sim, probe_amd_cdna3: fp8, in units of 2^-10 beside +-2^14; RZ in a parity, RD between them."""
    for position, units in ((2, same), (3, other)):
        a, b = [0.0] * 16, [0.0] * 16
        a[0], b[0], a[4], b[4] = p(7), p(7), -p(7), p(7)
        a[position], b[position] = x * p(-5), p(-5)
        assert run("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", a, b) == units * Fraction(p(-10))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_engine_and_stages_agree(arch: str) -> None:
    device = open_model(arch)
    for made in instructions(arch):
        if not device.supports(made):
            continue
        path = device.datapath(made)
        for family in families_for(made):
            vectors: Batch = generate(made, family, 3, 0, 100)
            assert (engine.evaluate(path, vectors) == stages.evaluate(path, vectors)).all(), (made.id, family)
