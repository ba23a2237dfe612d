"""What probes find on models is what the parameter file says, one form of each kind of unit."""

from __future__ import annotations

from typing import Any

import pytest

from mmaprobe.catalog import lookup
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import ModelDevice
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Accumulator, Datapath, Fused, Products
from mmaprobe.parameters.shorthand import written
from mmaprobe.probing import probe

FORMS = [
    ("sm_70", "mma.m8n8k4.row.col.f32.f16.f16.f32"), ("sm_75", "mma.m16n8k8.f16.f16.f16.f16"),
    ("sm_80", "mma.m16n8k8.f32.bf16.bf16.f32"), ("sm_80", "mma.m16n8k8.f32.tf32.tf32.f32"),
    ("sm_80", "mma.sp.m16n8k32.f16.f16.f16.f16"), ("sm_89", "mma.m16n8k32.f32.e4m3.e5m2.f32"),
    ("sm_90a", "wgmma.mma_async.m64n8k16.f32.bf16.bf16"), ("sm_90a", "mma.m16n8k16.f64.f64.f64.f64.rp"),
    ("sm_120a", "mma.m16n8k32.kind::f8f6f4.f32.e2m1.e2m1.f32"),
    ("sm_120a", "mma.m16n8k32.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"),
    ("sm_120a", "mma.sp::ordered_metadata.m16n8k64.kind::mxf8f6f4.block_scale.f32.e5m2.e5m2.f32.ue8m0"),
    ("gfx908", "v_mfma_f32_16x16x16f16"), ("gfx90a", "v_mfma_f32_16x16x16bf16_1k"),
    ("gfx942", "v_mfma_f32_16x16x16_bf16"), ("gfx942", "v_smfmac_f32_16x16x32_f16"),
    ("x86-64", "x86.vdpbf16ps"), ("aarch64", "arm.bfdot"),
]  # fmt: skip


def agree(found: dict[str, Finding], question: str, field: str, truth: Any) -> None:
    """An exact answer is the truth."""
    finding = found[question]
    if finding.status == "exact" and finding.answer is not None:
        assert finding.answer[field] == truth, f"{question} {field}: {finding.text}"


def hold(found: dict[str, Finding], path: Datapath) -> None:
    tree = path.tree
    to = getattr(tree, "to", None)
    assert to is not None
    if isinstance(tree, Fused) and all(isinstance(term.of, Products | Accumulator) for term in tree.terms):
        whole = written(tree)
        agree(found, "accumulator_precision", "products", whole.fraction_bits)
        agree(found, "accumulator_precision", "c", whole.fraction_bits)
        agree(found, "alignment_rounding", "products", [whole.rounding])
        agree(found, "zero_exponent", "exponent", whole.zero_exponent)
        agree(found, "product_label", "label", path.product.label)
    if to.first is None:
        agree(found, "result_rounding", "rounding", [to.rounding])
    for name, operand in (("a", path.operand_a), ("b", path.operand_b), ("c", path.operand_c)):
        seen = (found["subnormals"].answer or {}).get(name)
        assert seen in (operand.subnormals, "absent", "flush", None), name
        assert seen != "flush" or operand.subnormals != "keep"
    nan = found["nan_and_infinity"].answer
    assert nan["rule"] == ("canonical" if path.special.nan == "canonical" else "propagate")
    assert nan["code"] in (path.special.code, None)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("architecture", "name"), FORMS)
def test_no_exact_answer_is_wrong(architecture: str, name: str) -> None:
    device: Any = open_device(f"model:{architecture}")
    assert isinstance(device, ModelDevice)
    instruction = lookup.instruction(name, architecture)
    found = probe(device, instruction)
    assert "contradictory" not in {finding.status for finding in found.values()}
    assert sum(finding.launches for finding in found.values()) <= 20
    hold(found, device.datapath(instruction))
