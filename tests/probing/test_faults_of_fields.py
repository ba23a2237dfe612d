"""A fault in one field of a datapath changes the answer of the question that asks about it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.catalog import lookup
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import DatapathDevice, ModelDevice
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.mutate import mutate
from mmaprobe.probing import probe
from mmaprobe.probing.questions import PROBES

F16 = ("sm_80", "mma.m16n8k16.f32.f16.f16.f32")
HALF = ("sm_90a", "mma.m16n8k16.f16.f16.f16.f16")
BF16 = ("sm_80", "mma.m16n8k8.f32.bf16.bf16.f32")
FP8 = ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8")
CDNA3 = ("gfx942", "v_mfma_f32_16x16x16_bf16")
CDNA2 = ("gfx90a", "v_mfma_f32_16x16x16bf16_1k")
F64 = ("sm_80", "mma.m8n8k4.f64.f64.f64.f64")
S8 = ("sm_80", "mma.m16n8k32.s32.s8.s8.s32")
BITS = ("sm_80", "mma.m16n8k256.s32.b1.b1.s32.xor.popc")
X86 = ("x86-64", "x86.vdpbf16ps")
DPPS = ("x86-64", "x86.dpps")
SPARSE = ("sm_80", "mma.sp.m16n8k32.f32.f16.f16.f32")
NVFP4 = ("sm_120a", "mma.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")

FAULTS = [
    (F16, "step=4", "summation_tree"), (F16, "step=16", "c_position"), (HALF, "step=8", "summation_tree"),
    (CDNA2, "tree.y.x.to.subnormals=keep", "subnormals"), (S8, "tree.to.overflow=largest", "overflow"),
    (F16, "tree.fraction_bits=23", "accumulator_precision"), (F16, "tree.fraction_bits=25", "accumulator_precision"),
    (F16, "tree.rounding=RNE", "alignment_rounding"), (F16, "tree.rounding=RD", "alignment_rounding"),
    (HALF, "tree.rounding=RNA", "alignment_rounding"), (FP8, "tree.terms.1.cutoff=none", "cutoff"),
    (FP8, "tree.terms.1.cutoff=27", "cutoff"), (FP8, "tree.terms.1.fraction_bits=23", "accumulator_precision"),
    (F16, "product.label=normalised", "product_label"), (F16, "product.label=operands", "product_label"),
    (BF16, "product.overflow_exponent=128", "product_range"),
    (CDNA3, "product.overflow_exponent=none", "product_range"),
    (F16, "tree.to.rounding=RNE", "result_rounding"), (HALF, "tree.to.rounding=RNA", "result_rounding"),
    (HALF, "tree.to.rounding=RZ", "result_rounding"), (F16, "tree.to.format=e8m13", "result_rounding"),
    (CDNA3, "tree.to.first=30 RD", "sticky_reach"), (CDNA3, "tree.to.first=none", "sticky_reach"),
    (F64, "tree.to.rounding=RZ", "intermediate_rounding"), (DPPS, "product.to.rounding=RZ", "intermediate_rounding"),
    (BF16, "tree.zero_exponent=-131", "zero_exponent"), (HALF, "tree.zero_exponent=-20", "zero_exponent"),
    (F16, "operand_a.subnormals=zero", "subnormals"), (F16, "operand_b.subnormals=signed_zero", "subnormals"),
    (BF16, "operand_c.subnormals=zero", "subnormals"), (BF16, "tree.to.subnormals=signed_zero", "subnormals"),
    (X86, "operand_a.subnormals=keep", "subnormals"), (X86, "tree.to.subnormals=keep", "subnormals"),
    (F16, "tree.to.zero=ieee", "signed_zero"), (BF16, "tree.to.underflow=signed", "signed_zero"),
    (F16, "special.code=0x7fc00000", "nan_and_infinity"), (X86, "special.quiet=false", "nan_and_infinity"),
    (BF16, "tree.to.overflow=largest", "overflow"), (DPPS, "tree.to.rounding=RD", "result_rounding"),
    (BITS, "product.multiply=and", "bit_products"), (SPARSE, "tree.fraction_bits=25", "accumulator_precision"),
    (SPARSE, "step=16", "summation_tree"), (NVFP4, "tree.fraction_bits=25", "accumulator_precision"),
]  # fmt: skip


@cache
def sound(architecture: str, name: str, question: str) -> Finding:
    device = open_device(f"model:{architecture}")
    return probe(device, lookup.instruction(name, architecture), (question,))[question]


@pytest.mark.parametrize(
    ("form", "fault", "question"), FAULTS, ids=lambda value: str(value) if isinstance(value, str) else value[1]
)
def test_the_question_of_a_field_catches_its_fault(form: tuple[str, str], fault: str, question: str) -> None:
    architecture, name = form
    device: Any = open_device(f"model:{architecture}")
    assert isinstance(device, ModelDevice)
    instruction = lookup.instruction(name, architecture)
    field, _, value = fault.partition("=")
    faulty = DatapathDevice(instruction, mutate(device.datapath(instruction), field, value))
    before, after = sound(architecture, name, question), probe(faulty, instruction, (question,))[question]
    assert before.status in ("exact", "bounded"), before.text
    assert after.answer != before.answer, f"{after.status}: {after.text}"


@pytest.mark.long
def test_the_suite_on_a_mutant_fails_where_its_fault_is() -> None:
    """``pytest probes`` holds a device against the parameter file of its architecture."""
    device = "mutant:sm_80/HMMA.16816.F32[f16,f16->f32]/tree.rounding=RNE"
    only = "mma.m16n8k16.f32.f16.f16.f32"
    command = [sys.executable, "-m", "pytest", "probes", "-q", "--no-header", "--device", device, "-k", only]
    plain = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], env=plain
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    failed = {name for name in PROBES for line in lines if f"-{name}]" in line}
    assert "alignment_rounding" in failed, done.stdout[-2000:]
    assert not failed & {"layout", "summation_tree", "nan_and_infinity", "result_rounding"}
