"""Matrix instructions of AMD: the models against what is published."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mmaprobe
from by_hand import code, exact, p
from mmaprobe.catalog import lookup
from mmaprobe.catalog.lookup import architectures, instructions
from mmaprobe.devices.model import open_model
from mmaprobe.generators.families import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.parameters.lookup import entry_for, load

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


UNMODELLED = {
    "gfx908": 0, "gfx90a": 0, "gfx942": 0, "gfx950": 50, "gfx9-4-generic": 14, "gfx1200": 32, "gfx1201": 32,
    "gfx12-generic": 32, "gfx1250": 41, "gfx1251": 41,
}  # fmt: skip
"""Instructions without a datapath; 12 on every gfx11 part: the floating-point sums of RDNA."""


@pytest.mark.parametrize("arch", [name for name in architectures() if name.startswith("gfx")])
def test_what_is_not_known_is_said(arch: str) -> None:
    """Every instruction has a datapath with its basis, or the model says that none is known and what to run."""
    device = open_model(arch)
    unknown = [made for made in instructions(arch) if not device.supports(made)]
    assert len(unknown) == UNMODELLED.get(arch, 12)
    for made in unknown:
        reason = device.supports(made).reason
        assert reason.startswith(f"no datapath is known for {made.id} on {arch}")
        assert f"run `mmaprobe derive --device ... '{made.id}'`" in reason
        assert made.d != "s32"


def test_bases() -> None:
    """CDNA's dense sums are published, all that rests on an assumption is predicted; nothing is measured."""
    bases = {made.id: entry_for("gfx942", made).basis for made in instructions("gfx942")}
    predicted = {name for name, basis in bases.items() if basis == "predicted"}
    assert predicted == {name for name in bases if "smfmac" in name or "_i32_" in name}
    for arch in ("gfx950", "gfx9-4-generic", "gfx1151", "gfx1250"):
        assert {entry.basis for entry in load(arch).entries.values()} == {"predicted"}
    for arch in ARCHITECTURES:
        for entry in load(arch).entries.values():
            assert entry.source
            assert entry.basis in ("published", "predicted")


def test_sparse_is_the_dense_datapath_of_the_selected_lanes() -> None:
    dense, sparse = (
        load("gfx942").entries["MFMA.F16[f16,f16->f32,k16]"],
        load("gfx942").entries["SMFMAC.F16[f16,f16->f32,k32]"],
    )
    assert dense.datapath == sparse.datapath
    model = mmaprobe.model("gfx942", "v_smfmac_f32_16x16x32_f16")
    a = np.array([1, 10] + [0] * 14, np.float16)
    b = np.arange(32, dtype=np.float16)
    metadata = np.array([0x4 * 3 + 1] + [0x4] * 7, np.uint8)  # lanes 1 and 3 of the first four
    assert model.dot(a, b, np.float32(0.5), metadata=metadata) == 1 * 1 + 10 * 3 + 0.5


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_engine_and_stages_agree(arch: str) -> None:
    for made in instructions(arch):
        model = mmaprobe.model(arch, made.id)
        for family in families_for(made):
            vectors = model.dense(generate(made, family, 3, 0, 100))
            assert (engine.evaluate(model.datapath, vectors) == stages.evaluate(model.datapath, vectors)).all(), (
                made.id,
                family,
            )
