"""Matrix instructions of AMD: the models against what is published."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog import lookup
from mmaprobe.catalog.lookup import architectures, instructions
from mmaprobe.cli import main
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.model import open_model
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.generators.families import families_for, generate
from mmaprobe.models import engine, stages
from mmaprobe.parameters.lookup import entry_for, load
from mmaprobe.report.tables import listing
from second_source.by_hand import code, exact, p

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


@pytest.mark.parametrize(
    ("arch", "name"),
    [("gfx90a", "v_mfma_f64_16x16x4f64"), ("gfx90a", "v_mfma_f64_4x4x4f64"),
     ("gfx942", "v_mfma_f64_16x16x4_f64"), ("gfx942", "v_mfma_f64_4x4x4_4b_f64")],
)  # fmt: skip
def test_binary64_is_multiply_adds_to_nearest(arch: str, name: str) -> None:
    """One fused multiply-add after the other in ascending k, each rounded once, to nearest even, by exact fractions."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((200, 4)) * 2.0 ** rng.integers(-3, 4, (200, 4)) for _ in range(2))
    c = rng.standard_normal(200)
    expected = []
    for x, y, total in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        for left, right in zip(x, y, strict=True):
            total = float(Fraction(left) * Fraction(right) + Fraction(total))
        expected.append(total)
    assert mmaprobe.model(arch, name).dot(a, b, c).tolist() == expected


def test_a_small_negative_c_costs_a_quarter() -> None:
    """MMA-Sim, the example of the founding paper: 2048 2048 - 2048 2048 - 0.000001 on CDNA3."""
    c = -float(np.float32(0.000001))
    assert run("gfx942", "v_mfma_f32_16x16x16_f16", [2048, -2048], [2048, 2048], c) == Fraction(-1, 4)


LADDER = [
    # C beside 2^14 - 2^14 of fp8 (one step): kept down to 25 below the largest exponent, floored at 24, dropped beyond
    ("v_mfma_f32_16x16x32_fp8_fp8", [p(7), -p(7)], [p(7), p(7)], -p(14 - 24), -p(14 - 24)),
    ("v_mfma_f32_16x16x32_fp8_fp8", [p(7), -p(7)], [p(7), p(7)], -p(14 - 25), -p(14 - 24)),
    ("v_mfma_f32_16x16x32_fp8_fp8", [p(7), -p(7)], [p(7), p(7)], -p(14 - 26), 0),
    ("v_mfma_f32_16x16x32_fp8_fp8", [p(7), -p(7)], [p(7), p(7)], p(14 - 25), 0),
    # with f16 there is no such cut-off: any negative C is floored to one unit
    ("v_mfma_f32_16x16x16_f16", [p(7), 0, -p(7)], [p(7), 0, p(7)], -p(14 - 26), -p(14 - 24)),
    ("v_mfma_f32_16x16x16_f16", [p(7), 0, -p(7)], [p(7), 0, p(7)], -p(-149), -p(14 - 24)),
    # products are cut toward zero at 24 bits below the largest of them, and a cancelled sum keeps that exponent
    ("v_mfma_f32_16x16x16_f16", [p(12), -p(12), p(0)], [p(12), p(12), p(0)], 0, 1),
    ("v_mfma_f32_16x16x16_f16", [p(12), -p(12), -p(-1)], [p(12), p(12), p(0)], 0, 0),
    # a zero product takes no part in the maximum: the exponent of its operands does not count
    ("v_mfma_f32_16x16x16_bf16", [p(60), p(-40)], [0, p(-40)], -p(-100), p(-80) - p(-100)),
    ("v_mfma_f32_16x16x16_bf16", [p(60), p(-40)], [0, p(-40)], -p(-110), p(-80) - p(-104)),
    # steps of 8: what cancels in the first is gone before the second
    ("v_mfma_f32_16x16x16_f16", [p(12), -p(12)] + [0] * 6 + [p(-9)], [p(12), p(12)] + [0] * 6 + [p(-9)], 0, p(-18)),
    ("v_mfma_f32_16x16x16_f16", [p(12), -p(12)] + [0] * 5 + [p(-9)], [p(12), p(12)] + [0] * 5 + [p(-9)], 0, 0),
    # the product sum is floored at 32 bits below the largest exponent, here C's; 31 bits of the sum are kept, then RNE
    ("v_mfma_f32_16x16x16_f16", [p(-12)], [p(-12)], 1.0, 1.0),
    ("v_mfma_f32_16x16x16_f16", [p(-12), p(-14)], [p(-12), p(-14)], 1.0, 1 + p(-23)),
    ("v_mfma_f32_16x16x16_f16", [p(-12), p(-15), p(-24)], [p(-12), p(-16), p(-24)], 1.0, 1 + p(-23)),
    ("v_mfma_f32_16x16x16_f16", [p(-12), p(-16)], [p(-12), p(-16)], 1.0, 1.0),
]  # fmt: skip
"""CDNA3 on vectors whose parts decide each rule of the two-stage sum, worked out by hand (arithmetic of MMA-Sim)."""


@pytest.mark.parametrize(("name", "a", "b", "c", "d"), LADDER)
def test_two_stage_sums_of_cdna3(name: str, a: list[float], b: list[float], c: float, d: float) -> None:
    assert run("gfx942", name, a, b, c) == Fraction(d)


def test_products_from_2_to_128_are_infinite() -> None:
    """CDNA3: even where they cancel; CDNA1 adds them exactly, CDNA2 rounds each to an infinity and gives NaN."""
    large, zero = np.array([[0x7F00, 0xFF00]], np.uint16), np.zeros(1, np.uint32)  # 2^127, -2^127
    two = np.full((1, 2), 0x4000, np.uint16)

    def bits(arch: str, name: str, a: Any) -> int:
        k = lookup.instruction(name, arch).k
        rows = [np.pad(x, ((0, 0), (0, k - 2))) for x in (a, two)]
        return int(mmaprobe.model(arch, name).dot(*rows, zero)[0])

    positive = np.array([[0x7F00, 0x7F00]], np.uint16)
    assert bits("gfx942", "v_mfma_f32_16x16x16_bf16", positive) == 0x7F800000
    assert bits("gfx942", "v_mfma_f32_16x16x16_bf16", large) == 0x7FC00000
    assert bits("gfx908", "v_mfma_f32_16x16x8bf16", large) == 0
    assert bits("gfx90a", "v_mfma_f32_16x16x8bf16", large) == 0x7FC00000


def test_near_overflow_the_exact_sum_of_cdna1_decides() -> None:
    """It rounds to the largest f32; mmasim 2.1.1 says infinity, from a sum in double precision (not measured)."""
    found = run("gfx908", "v_mfma_f32_16x16x8bf16", [217 * p(40), 217 * p(30)], [151 * p(48), 151 * p(43)],
                float(np.uint32(0x7F7FFFFF).view(np.float32)))  # fmt: skip
    assert found == exact("f32", 0x7F7FFFFF)


def test_cdna2_flushes() -> None:
    """Subnormal operands and results become zero; CDNA1 and CDNA3 keep them (AMD, MI200 numerics)."""
    for arch, spelt, kept in (("gfx908", "f16", True), ("gfx90a", "f16", False), ("gfx942", "_f16", True)):
        assert run(arch, f"v_mfma_f32_16x16x16{spelt}", [p(-24)], [4.0], 0.0) == (Fraction(p(-22)) if kept else 0)
        assert run(arch, f"v_mfma_f32_16x16x16{spelt}", [0.0], [0.0], p(-149)) == (Fraction(p(-149)) if kept else 0)
    assert run("gfx90a", "v_mfma_f32_16x16x16bf16_1k", [p(-100)], [p(-27)], 0.0) == 0
    assert run("gfx90a", "v_mfma_f32_16x16x16bf16_1k", [p(-100)], [p(-26)], 0.0) == Fraction(p(-126))


def test_xf32_ignores_the_low_bits() -> None:
    """A NaN whose payload lies only there is an infinity (Triton, pull request 11783); the rest is cut, not rounded."""
    model = mmaprobe.model("gfx942", "v_mfma_f32_16x16x8_xf32")
    a = np.zeros((3, 8), np.uint32)
    a[:, 0] = 0x7F800001, 0x3F801FFF, 0x7FC00000
    b = np.zeros((3, 8), np.uint32)
    b[:, 0] = 0x3F800000
    assert model.dot(a, b, np.zeros(3, np.uint32)).tolist() == [0x7F800000, 0x3F800000, 0x7FC00000]


UNMODELLED = {
    "gfx906": 1, "gfx1011": 4, "gfx1012": 4, **{f"gfx103{n}": 4 for n in range(7)}, "gfx10-3-generic": 4,
    "gfx908": 2, "gfx90a": 2, "gfx942": 2, "gfx950": 54, "gfx9-4-generic": 16, "gfx1250": 41, "gfx1251": 41,
}  # fmt: skip
"""Instructions without a datapath; none on the others."""


@pytest.mark.parametrize("arch", [name for name in architectures() if name.startswith("gfx")])
def test_what_is_not_known_is_said(arch: str) -> None:
    """Every instruction has a datapath with its basis, or the model says that none is known and what to run."""
    device = open_model(arch)
    unknown = [made for made in instructions(arch) if not device.supports(made)]
    assert len(unknown) == UNMODELLED.get(arch, 0)
    for made in unknown:
        reason = device.supports(made).reason
        assert reason.startswith(f"no datapath is known for {made.id} on {arch}")
        assert reason.endswith(f"where that hardware is: mmaprobe derive --device hip:0 '{made.id}'")
        assert made.d != "s32"


def test_what_is_not_known_is_said_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with what to type where such a GPU is."""
    assert main(["instructions", "gfx950"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "54 of 81 forms have no datapath, neither published nor measured; where that hardware is:" in said
    assert "mmaprobe run --device hip:0" in said
    name = "v_mfma_f32_16x16x16_f16"
    for words, status in (
        (["explain", "gfx950", name, "1"], 2),
        (["run", "--device", "model:gfx950", "--instruction", name], 3),
    ):
        assert main(words) == status
        (line,) = capsys.readouterr().err.splitlines()
        assert f"where that hardware is: mmaprobe derive --device hip:0 '{name}'" in line


def test_bases() -> None:
    """CDNA's dense sums are published, all that rests on an assumption is predicted; nothing is measured.

    V_DOT of integers is published everywhere.
    """
    bases = {made.id: entry_for("gfx942", made).basis for made in instructions("gfx942") if "v_dot" not in made.id}
    predicted = {name for name, basis in bases.items() if basis == "predicted"}
    assert predicted == {name for name in bases if "smfmac" in name or "_i32_" in name}
    for arch in ("gfx950", "gfx9-4-generic", "gfx1250"):
        found = {name: entry.basis for name, entry in load(arch).entries.items()}
        assert {basis for name, basis in found.items() if not name.startswith("DOT")} == {"predicted"}
        assert {basis for name, basis in found.items() if name.startswith("DOT")} == {"published"}
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
    device = open_model(arch)
    for made in filter(device.supports, instructions(arch)):
        model = mmaprobe.model(arch, made.id)
        for family in families_for(made):
            vectors = model.dense(generate(made, family, 3, 0, 100))
            assert (engine.evaluate(model.datapath, vectors) == stages.evaluate(model.datapath, vectors)).all(), (
                made.id,
                family,
            )


def test_an_id_of_two_architectures_follows_its_device(tmp_path: Path) -> None:
    """``fp8`` is FNUZ on gfx942 and OCP on gfx950: recordings, validation and recipes know which."""
    name = "v_smfmac_f32_16x16x64_fp8_bf8{abid=1}"
    made = lookup.instruction(name, "gfx942")
    device = mmaprobe.device("model:gfx942")
    vectors = generate(made, "uniform", 1, 0, 20)
    write_corpus(tmp_path / "c", record(device, [(made, vectors)]), "a test")
    replay = mmaprobe.device(f"replay:{tmp_path / 'c'}")
    assert list(replay.instructions()) == [made]
    assert (run_vectors(replay, made, vectors) == run_vectors(device, made, vectors)).all()
    assert mmaprobe.validate("model:gfx942", "model:gfx942", name, vectors=200).mismatches == 0
    shown = listing.vector_rows(f"{name}/uniform.1/0/3", "gfx942")
    assert len([row for row in shown if row["operand"] == "a"]) == 32
    with pytest.raises(UsageError, match="name the architecture too"):
        listing.vector_rows(f"{name}/uniform.1/0/3")
