"""Fused campaigns of AMD: their own text on the host, through the lanes of a wave; and what clang makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.amd_datapaths import path_like
from emulator.campaign import HostCampaign
from emulator.registers import Array
from emulator.wave import run_wave
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, instruction
from mmaprobe.devices.gpu.campaign import LaunchOrder
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate_tiles
from mmaprobe.generators.families import FAMILIES, stream_number
from mmaprobe.models.model import run_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.code_object import number
from mmaprobe.toolchain.build import build_campaign
from mmaprobe.toolchain.source import Source
from mmaprobe.validation.fused import checksum, source_of
from second_source.amd_modes import NEAREST, instructions, modes, starting_modes

FORMS = [
    ("v_mfma_f32_16x16x16_f16", "gfx942"),
    ("v_mfma_f32_4x4x4_16b_bf16", "gfx942"),
    ("v_mfma_f32_16x16x8_xf32", "gfx942"),
    ("v_smfmac_f32_16x16x64_fp8_bf8", "gfx942"),
    ("v_mfma_f64_16x16x4_f64", "gfx942"),
    ("v_mfma_i32_16x16x32_i8", "gfx942"),
    ("v_mfma_scale_f32_16x16x128_f8f6f4", "gfx950"),
    ("v_wmma_f32_16x16x16_f16", "gfx1100"),
    ("v_wmma_f16_16x16x16_f16{wave=64}", "gfx1100"),
    ("v_swmmac_f32_16x16x32_bf16{index_key=1}", "gfx1200"),
    ("v_dot2_f32_f16", "gfx1100"),
    ("v_dot8_i32_i4", "gfx942"),
]
SEED, START, TILES = 7, 1 << 33, 5


def path_of(made: Instruction, architecture: str) -> Datapath:
    """The shipped datapath, or one like it."""
    try:
        return datapath_for(architecture, made)
    except UsageError:
        return path_like(made)


def campaign(name: str, architecture: str) -> tuple[Source, Instruction, Datapath]:
    made = instruction(name, architecture)
    path = path_of(made, architecture)
    source = source_of(made, architecture, path)
    assert source is not None
    return source, made, path


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "architecture"), FORMS)
def test_tiles_and_verdict(name: str, architecture: str) -> None:
    """What a wave's lanes load are the CPU's tiles, what they store is judged right, and one wrong bit is found."""
    source, made, path = campaign(name, architecture)
    host, tile = HostCampaign(source, made), replace(made, blocks=1)
    row, column = min(1, made.m - 1), min(2, made.n - 1)
    count = made.blocks + TILES if made.lane_wise else TILES
    assert host.step == source.items == made.blocks
    seen: list[Batch] = []
    faults: list[int] = []

    def core(found: dict[str, Array]) -> Array:
        arrays = {key: value.reshape(-1, *tile.shapes(1)[key][1:]) for key, value in found.items()}
        formats = made.formats()
        typed = {key: value.astype(formats[key].dtype if key in formats else np.uint8) for key, value in arrays.items()}
        seen.append(Batch(**typed))
        d = run_tiles(tile, path, seen[-1]).astype(np.uint64)
        if len(seen) in faults:
            d[0, row, column] ^= np.uint64(4)
        return d.reshape(-1, made.blocks, made.m, made.n) if made.blocks > 1 else d

    def unit(batch: Batch, _: int) -> Bits:
        whole = {key: value.reshape(made.shapes(1)[key]) for key, value in batch.items()}
        return run_wave(replace(source, items=1), made, Batch(**whole), core, architecture).reshape(-1, made.m, made.n)

    for family in families_for(made)[: 4 if made.k < 128 else 1]:
        order = LaunchOrder(FAMILIES.index(family), stream_number(family), SEED, START, count)
        expected = generate_tiles(made, family, SEED, START, count)
        seen.clear()
        found = host.run(order, unit)
        for operand, value in expected.items():
            assert (np.concatenate([getattr(batch, operand) for batch in seen])[:count] == value).all(), operand
        assert (int(found["mismatches"]), int(found["wrong"].sum())) == (0, 0), family
        assert int(found["checksum"]) == checksum(run_tiles(tile, path, expected)), family
    seen.clear()
    faults.append(1)
    found = host.run(order, unit)
    assert (int(found["mismatches"]), int(found["examples"][0]["place"])) == (1, row << 16 | column)


DOWN = 2 * 5
"""Towards minus infinity, of binary32 and of binary64 and binary16."""
COMPILED = [
    # id, target, what computes the model's sums, the rounding of all of it
    ("v_mfma_f32_16x16x16f16", "gfx90a", "v_pk_mul_f32", NEAREST),
    ("v_mfma_i32_16x16x4_4b_i8", "gfx942", "v_dot4", None),
    ("v_smfmac_f32_32x32x16_f16", "gfx942", "v_fma", DOWN),
    ("v_mfma_f64_4x4x4_4b_f64", "gfx950", "v_fma", NEAREST),
    ("v_wmma_i32_16x16x16_iu8{wave=64}", "gfx1100", "v_dot4", None),
    ("v_swmmac_i32_16x16x32_iu8", "gfx1201", "v_dot4", None),
    ("v_wmma_f32_16x16x16_f16{wave=64}", "gfx1100", "v_cvt_f32_i32", NEAREST),
    ("v_swmmac_f32_16x16x32_bf16{index_key=1}", "gfx1200", "v_cvt_f32_i32", NEAREST),
    ("v_wmma_f32_16x16x32_f16", "gfx1250", "v_fma", DOWN),
    ("v_wmma_i32_16x16x64_iu8", "gfx1250", "v_dot4", None),
]
FLOATS = ("v_fma", "v_add_f64", "v_add_f32", "v_pk_", "v_cvt_f32", "v_cvt_f16")
"""What rounds: found where a model is evaluated, nowhere else."""


@pytest.mark.needs("clang")
@pytest.mark.parametrize(("name", "architecture", "by", "rounding"), COMPILED)
def test_clang_compiles_it(name: str, architecture: str, by: str, rounding: int | None) -> None:
    """One matrix instruction, the catalog's; no local memory; the model's sums in their mode on every path to them."""
    source, _, _ = campaign(name, architecture)
    built = build_campaign(source)
    assert (built.status, built.reason, source.campaign, source.shared) == ("compiled", "", "fused", 0)
    assert built.kernel is not None
    code = built.kernel.binary
    assert built.resources["local_bytes"] == built.resources["spilled_vgprs"] == 0
    assert source.groups > 1
    assert 0 < built.resources["shared_bytes"] <= 64 << 10
    assert ("agprs" in built.resources) == architecture.startswith("gfx9")
    starts = starting_modes(code)
    assert starts == {"round_mode_32": 0, "round_mode_16_64": 0, "denorm_mode_32": 3, "denorm_mode_16_64": 3}
    lines = modes(code, source.threads)
    assert [found for line, found in lines if line.startswith(MATRIX)] == [{NEAREST}]
    assert sum(line.startswith(by) for line, _ in lines) >= 4
    rounded = {found for line, found in lines if line.startswith(FLOATS) and not line.startswith("v_pk_m")}
    assert rounded == (set() if rounding is None else {frozenset({rounding})})


DOTS = [
    ("v_dot2_f32_bf16{wave=64}", "gfx1100"),
    ("v_dot4_i32_iu8", "gfx1201"),
    ("v_dot8_i32_i4", "gfx942"),
    ("v_dot4c_i32_i8", "gfx908"),
]


@pytest.mark.needs("clang")
@pytest.mark.parametrize(("name", "architecture"), DOTS)
def test_clang_compiles_a_dot_product_a_lane(name: str, architecture: str) -> None:
    """One in the whole kernel: the model that judges it does not sum by it, whatever the compiler makes of that."""
    source, made, _ = campaign(name, architecture)
    built = build_campaign(source)
    assert (built.status, built.reason, source.campaign, source.items) == ("compiled", "", "fused", made.blocks)
    assert built.kernel is not None
    assert built.resources["local_bytes"] == built.resources["spilled_vgprs"] == 0
    lines = instructions(built.kernel.binary, source.threads)
    assert sum(line.startswith("v_dot") for line in lines) == 1


INTERPRETED = [("v_mfma_f32_16x16x16f16", "gfx908"), ("v_mfma_f32_4x4x2bf16", "gfx908")]
"""Exact sums: no model in a GPU's own terms has them."""


@pytest.mark.needs("clang")
@pytest.mark.parametrize(("name", "architecture"), INTERPRETED)
def test_clang_compiles_the_interpreter(name: str, architecture: str) -> None:
    """It sums in integers, so no rounding mode is ever set; its registers lie in local memory."""
    source, _, _ = campaign(name, architecture)
    built = build_campaign(source)
    assert (built.status, built.reason, source.campaign, source.shared) == ("compiled", "", "fused", 0)
    assert built.kernel is not None
    lines = instructions(built.kernel.binary, source.threads)
    assert sum(line.startswith(MATRIX) for line in lines) == 1
    assert not any("HW_REG_MODE" in line for line in lines)
    assert 0 < built.resources["local_bytes"] < 4096


MATRIX = ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac")
STRAY = r"""
extern "C" __attribute__((global)) void mmaprobe_run(double* x, int n) {
  double a = x[0], b = x[1];
  if (n) asm volatile("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 10\n\tv_fma_f64 %0, %1, %1, %1" : "=v"(a) : "v"(b));
  asm volatile("v_fma_f64 %0, %1, %1, %1\n\ts_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0" : "=v"(b) : "v"(a));
  x[2] = a * b;
}
"""


@pytest.mark.needs("clang")
def test_modes_are_those_of_the_paths() -> None:
    """A sum that some path reaches in another mode."""
    made = Clang().compile_source(Source("stray", "gfx942", STRAY, threads=64))
    found = [modes for line, modes in modes(made.binary, 64) if line.startswith(("v_fma", "v_mul"))]
    assert found == [{DOWN}, {NEAREST, DOWN}, {NEAREST}]


@pytest.mark.needs("clang")
def test_in_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no tile fits: waves of the same width that make and judge, and no matrix instruction."""
    monkeypatch.setattr("mmaprobe.toolchain.campaign.MOST_SHARED", 0)
    source, _, _ = campaign("v_wmma_i32_16x16x16_iu8{wave=64}", "gfx1100")
    built = build_campaign(source)
    assert (source.campaign, source.threads, built.status, built.opcodes) == ("staged", 64, "compiled", {})
    assert built.kernel is not None
    assert number(built.kernel.binary, "wavefront_size") == 64
    assert built.resources["local_bytes"] == built.resources["shared_bytes"] == 0


def test_blocks_always_fit() -> None:
    """In stages a tile is an item, which of several blocks it is not."""
    made = {form.first.id: (form.first, home) for home in ("gfx90a", "gfx942", "gfx1201") for form in forms(home)}
    blocks = [pair for pair in made.values() if pair[0].blocks > 1]
    assert len(blocks) > 40
    for instruction_, home in blocks:
        source = source_of(instruction_, home, path_of(instruction_, home))
        assert source is not None
        assert source.campaign == "fused"
