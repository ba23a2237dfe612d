"""The parts of benchmarks/compare_peer.py that need no peer: names, and reasons that hold only where they should."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from mmaprobe.operands.batch import Batch

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from peer_names import ARCHITECTURES, form_key, our_id
from peer_reasons import UNEXPLAINED, reason

FORMS = [
    ("MMA", "Volta", "m8n8k4.f32.f16.f16.f32"), ("MMA", "RTX Blackwell", "m16n8k32.kind::f8f6f4.f16.e3m2.e2m1.f16"),
    ("MMABlockScale", "RTX Blackwell", "m16n8k32.kind::mxf8f6f4.block32.f32.e5m2.e2m1.f32.ue8m0"),
    ("MMABlockScale", "RTX Blackwell", "m16n8k64.kind::mxf4.block32.f32.e2m1.e2m1.f32.ue8m0"),
    ("MMABlockScale", "RTX Blackwell", "m16n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.f32.ue4m3"),
    ("WGMMA", "Hopper", "m64n256k32.f16.e5m2.e4m3"), ("TCGen05MMA", "Blackwell", "m128n24k16.kind::f16.f32.bf16.bf16"),
    ("TCGen05MMABlockScale", "Blackwell", "m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3"),
    ("MFMA", "CDNA1", "f32_4x4x2bf16"), ("MFMA", "CDNA3", "f32_16x16x8_xf32"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "arch", "name"), FORMS)
def test_a_name_of_the_peer_is_one_of_ours(kind: str, arch: str, name: str) -> None:
    made = mmaprobe.model(ARCHITECTURES[arch], our_id(kind, name)).instruction
    shape = name.removeprefix("f32_").partition("k" if kind != "MFMA" else "_")[0]
    assert f"{made.m}" in shape
    assert (form_key(kind, name) == name) == kind.startswith(("MMA", "MFMA"))
    assert made.scale_size == {"block16": 16, "block32": 32}.get(
        next((x for x in name.split(".") if "block" in x), ""), 0
    )


def test_a_reason_holds_where_its_condition_does() -> None:
    path = mmaprobe.model("gfx908", "v_mfma_f32_16x16x8bf16").datapath
    zero = Batch(*np.zeros((2, 1, 8), np.uint16), np.array([0x80000000], np.uint32))
    assert reason(path, zero, 0x80000000, 0) == "a sum of zeros"
    assert reason(path, zero, 0x7FC00000, 0xFFC00001) == "another NaN"
    assert reason(path, zero, 0x7F7FFFFF, 0x7F800000) == "infinity from a double-precision sum"
    assert reason(path, zero, 0x807FFFFF, 0x80800000) == "a tie below the lowest normal number"
    for ours, theirs in ((0, 1), (0, 0x80000000), (0x3F800000, 0x3F800001), (0x7FC00000, 0)):
        assert reason(path, zero, ours, theirs) == UNEXPLAINED
    tiny = Batch(zero.a, zero.b, np.array([0x80000001], np.uint32))
    assert reason(path, tiny, 0x80000000, 0) == "a negative sum that rounds to zero"
    fp8 = mmaprobe.model("gfx942", "v_mfma_f32_16x16x32_fp8_fp8").datapath
    a, b = np.zeros((2, 1, 32), np.uint8)
    a[0, 3] = 0x80
    assert reason(fp8, Batch(a, b, zero.c), 0x7FC00000, 0x3F800000) == "a NaN accumulator cut to zero"
    assert reason(fp8, Batch(b, b, zero.c), 0x7FC00000, 0x3F800000) == UNEXPLAINED
