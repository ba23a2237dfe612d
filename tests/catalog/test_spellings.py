"""Other people's names of instructions and of GPUs are found; ambiguous and unknown ones have lists."""

from __future__ import annotations

import json
import re

import pytest

from mmaprobe.catalog.lookup import instruction, meanings, parts
from mmaprobe.catalog.spellings import LOOSE, readings, spellings
from mmaprobe.cli import main
from mmaprobe.errors import UsageError

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
GMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"


@pytest.mark.parametrize(
    ("name", "architecture", "meant"),
    [
        ("m16n8k16.f32.f16.f16.f32", "sm_80", MMA), ("M16N8K16.F32.F16.F16.F32", None, MMA),
        ("wgmma.m64n64k16.f32.f16.f16", "H100", GMMA),
        ("wgmma.m64n64k16.f32.bf16...", None, GMMA.replace("f16.f16", "bf16.bf16")),
        ("HMMA.16816.F32", None, MMA), ("HMMA.16816.F32 R4, R8, R10, R4 ;", "sm_90a", MMA),
        ("HMMA.16816.F32.BF16", None, MMA.replace("f16.f16", "bf16.bf16")),
        ("IMMA.16832.S8.S8", None, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
        ("HGMMA.64x64x16.F32", None, GMMA),
        ("QGMMA.64x32x32.F32.E4M3.E4M3", None, "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3"),
        ("SM90_64x64x16_F32F16F16_SS", None, GMMA), ("SM90_64x64x16_F32F16F16_RS", "sm_90a", GMMA + "{a=regs}"),
        ("cute::SM90::GMMA::MMA_64x64x16_F32F16F16_SS<A, B>", None, GMMA),
        ("SM90::GMMA::SPARSE::GMMA_64x64x32_F32F16F16_SS", None,
         "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16"),
        ("SM80_16x8x16_F32F16F16F32_TN", None, MMA),
        ("SM70_8x8x4_F32F16F16F32_NT", None, "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32"),
        ("SM75_8x8x16_S32S8S8S32_TN_SATURATE", None, "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32"),
        ("SM80_16x8x256_S32U1U1S32_TN_XORPOPC", None, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"),
        ("__builtin_amdgcn_mfma_f32_32x32x8f16", None, "v_mfma_f32_32x32x8f16"),
        ("__builtin_amdgcn_mfma_f32_32x32x8f16", "gfx942", "v_mfma_f32_32x32x8_f16"),
        ("llvm.amdgcn.mfma.f32.32x32x8f16", "MI300X", "v_mfma_f32_32x32x8_f16"),
        ("__builtin_amdgcn_wmma_f32_16x16x16_f16_w64", "gfx1100", "v_wmma_f32_16x16x16_f16{wave=64}"),
        ("__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12", "gfx1201", "v_wmma_f32_16x16x16_f16"),
        ("__builtin_amdgcn_sdot4", "gfx90a", "v_dot4_i32_i8"),
        ("__builtin_amdgcn_fdot2_f32_bf16", "gfx950", "v_dot2_f32_bf16"),
        ("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", None, MMA),
        ("llvm.nvvm.mma.m16n8k8.row.col.tf32", None, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("llvm.nvvm.mma.m8n8k4.row.col.f64", None, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("llvm.nvvm.mma.m16n8k32.row.col.satfinite.s8", None,
         "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
        ("llvm.nvvm.mma.m16n8k32.row.col.s8.u8", None, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"),
        ("llvm.nvvm.wmma.m16n16k16.mma.row.row.f32.f16", None, "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f16"),
    ],
)  # fmt: skip
def test_a_name_of_somebody_elses_is_found(name: str, architecture: str | None, meant: str) -> None:
    assert instruction(name, architecture).id == meant


def test_every_rule_reads_its_own_example() -> None:
    for rule in spellings():
        (example,) = re.findall(r"\((.*)\)", rule.what)
        assert list(rule.read(example)), rule.what
        assert rule.source, rule.what
        assert meanings(example, None), rule.what


@pytest.mark.parametrize(
    ("name", "few"),
    [
        ("wgmma.m64n32k16", ["f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16"]),
        ("DMMA.8x8x4", ["mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "and 4 more"]),
        ("SM100_MMA_F16BF16_SS", ["kind::f16.m64n8k16.f16.f16.f16", "kind::f16.m64n8k16.f32.bf16.bf16"]),
        ("__hmma_m16n16k16_mma_f32f32", ["row.row.m16n16k16.f32.f32", "col.col.m16n16k16.f32.f32"]),
    ],
)
def test_a_name_that_may_mean_several_lists_them(name: str, few: list[str]) -> None:
    with pytest.raises(UsageError) as found:
        instruction(name)
    assert all(one in str(found.value) for one in few)
    assert f"mmaprobe instructions --find {name}" in str(found.value)
    assert len(str(found.value)) < 900


@pytest.mark.parametrize(
    "name", ["HMMA.16816.F33", "SM90_64x64x17_F32F16F16_SS", "mma.m16n8k17", "x." * 400, "a.*", "..", " "]
)
def test_a_name_that_means_nothing_is_unknown(name: str) -> None:
    with pytest.raises(UsageError, match="unknown instruction"):
        instruction(name)


def test_an_unknown_name_has_its_nearest_ones() -> None:
    with pytest.raises(UsageError, match=r"did you mean mma\.m16n8k16"):
        instruction("mma.m16n8k17.f32.f16.f16.f32")


def test_of_what_becomes_a_name_those_of_its_size_are_meant() -> None:
    """m8n8k16 becomes the same on RTX 50, and is not what the name says."""
    assert instruction("IMMA.16816.S8.S8", "sm_120a").id == "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"


def test_parts_are_left_out_in_order_alone() -> None:
    assert [each.what for each in readings("f32.m16n8k16")][-1] == LOOSE
    assert not meanings("f16.m16n8k16.mma")


def test_what_a_name_may_mean_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", "H100", "--find", "HMMA.16816.F32", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["instruction"] == MMA
    assert row["on"] == "sm_90a"
    assert main(["instructions", "--find", "x86.vdpbf16ps"]) == 0
    assert "x86-64" in capsys.readouterr().out
    assert main(["instructions", "--find", "hmm"]) == 2
    assert "unknown instruction 'hmm'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("NVIDIA H100 80GB HBM3", "sm_90a"), ("NVIDIA A100-SXM4-80GB", "sm_80"), ("Tesla V100-SXM2-32GB", "sm_70"),
        ("NVIDIA GeForce RTX 3060 Ti", "sm_86"), ("NVIDIA GeForce RTX 4090 Laptop GPU", "sm_89"),
        ("NVIDIA RTX 6000 Ada Generation", "sm_89"), ("NVIDIA GH200 480GB", "sm_90a"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120a"), ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "sm_90a"),
        ("AMD Instinct MI300X", "gfx942"), ("AMD Radeon RX 7900 XTX", "gfx1100"), ("AMD Radeon VII", "gfx906"),
    ],
)  # fmt: skip
def test_a_drivers_name_of_a_gpu_is_its_architecture(name: str, architecture: str) -> None:
    assert parts(name) == (architecture,)


@pytest.mark.parametrize("name", ["NVIDIA", "NVIDIA GeForce GTX 1080", "NVIDIA A10G", "GPU", ""])
def test_a_drivers_name_of_nothing_known_is_unknown(name: str) -> None:
    with pytest.raises(UsageError, match="unknown architecture"):
        parts(name)
