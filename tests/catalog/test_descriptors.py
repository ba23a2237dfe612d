"""NVIDIA's shared-memory layouts and descriptors against numbers that CuTe printed.

Source: CUTLASS 7107b0553: the output of ``tile_to_shape``, ``make_gmma_desc``,
``make_umma_desc`` and ``make_instr_desc`` compiled and run on a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.descriptors import descriptor, descriptors
from mmaprobe.catalog.shared_memory import shared_matrix
from mmaprobe.errors import UsageError

SUMS = [
    ("k_major", 16, 16, 16, 16, 4957440),
    ("k_major", 32, 16, 16, 32, 39651840),
    ("k_major", 64, 16, 16, 64, 317199360),
    ("k_major", 128, 16, 16, 128, 2537564160),
    ("mn_major", 16, 16, 16, 16, 4816320),
    ("mn_major", 32, 16, 32, 16, 38096768),
    ("mn_major", 64, 16, 64, 16, 303296256),
    ("mn_major", 128, 16, 128, 16, 2420973056),
    ("k_major", 16, 32, 16, 8, 619648),
    ("k_major", 32, 32, 16, 16, 4956416),
    ("k_major", 64, 32, 16, 32, 39649792),
    ("k_major", 128, 32, 16, 64, 317195264),
    ("mn_major", 16, 32, 8, 16, 611424),
    ("mn_major", 32, 32, 16, 16, 4799936),
    ("mn_major", 64, 32, 32, 16, 38064000),
    ("mn_major", 128, 32, 64, 16, 303230720),
    ("k_major", 16, 8, 16, 32, 39660032),
    ("k_major", 32, 8, 16, 64, 317215744),
    ("k_major", 64, 8, 16, 128, 2537596928),
    ("k_major", 128, 8, 16, 256, 3120648192),
    ("mn_major", 16, 8, 32, 16, 38227840),
    ("mn_major", 32, 8, 64, 16, 303558400),
    ("mn_major", 64, 8, 128, 16, 2421497344),
    ("mn_major", 128, 8, 256, 16, 2168404992),
    ("mn_major_32b", 128, 32, 64, 16, 286650112),
]


@pytest.mark.parametrize(("major", "swizzle", "bits", "mn", "k", "wanted"), SUMS)
def test_shared_memory_equals_cute(major: str, swizzle: int, bits: int, mn: int, k: int, wanted: int) -> None:
    """Sum of i times the offset of element i, K fastest, modulo 2^32, as CuTe's tile_to_shape gives it."""
    made = shared_matrix(mn, k, bits, swizzle, major=major)
    offsets = np.ravel(made.bit(*np.indices((mn, k))) // bits)
    assert int((offsets * np.arange(1, offsets.size + 1)).sum()) % (1 << 32) == wanted
    assert len(set(offsets.tolist())) == offsets.size
    assert made.bytes == mn * k * bits // 8


def test_narrow_elements_in_shared_memory() -> None:
    """Of 4 and 6 bits 16 elements take 16 bytes, data first; mxf4 has two a byte."""
    for bits in (4, 6):
        made = shared_matrix(8, 32, bits, 32, padded=True)
        k = np.arange(32)
        assert (made.bit(0, k) == k // 16 * 128 + k % 16 * bits).all()
    assert (shared_matrix(8, 64, 4, 32).bit(0, np.arange(64)) == np.arange(64) * 4).all()


MATRICES = [
    (1024, 128, 16, 0x0000000800400000, 0x0000400800400000),
    (16, 256, 32, 0xC000001000010000, 0xC000401000010000),
    (16, 512, 64, 0x8000002000010000, 0x8000402000010000),
    (16, 1024, 128, 0x4000004000010000, 0x4000404000010000),
    (256, 1024, 32, 0xC000004000100000, 0xC000404000100000),
    (512, 1024, 64, 0x8000004000200000, 0x8000404000200000),
    (0, 1024, 128, 0x4000004000000000, 0x4000404000000000),
]


@pytest.mark.parametrize(("lbo", "sbo", "swizzle", "wgmma", "tcgen05"), MATRICES)
def test_matrix_descriptors_equal_cute(lbo: int, sbo: int, swizzle: int, wgmma: int, tcgen05: int) -> None:
    for name, wanted in (("wgmma.matrix", wgmma), ("tcgen05.matrix", tcgen05)):
        assert descriptor(name).encode(LBO=lbo, SBO=sbo, swizzle=swizzle) == wanted
        fields = descriptor(name).decode(wanted)
        assert (fields["LBO"], fields["SBO"], fields["swizzle"]) == (lbo, sbo, (str(swizzle),))


PLAIN, MX8, MX4 = "tcgen05.instruction", "tcgen05.instruction.mxf8f6f4", "tcgen05.instruction.mxf4"
INSTRUCTIONS: list[tuple[str, dict[str, Any], int]] = [
    (PLAIN, {"d": "f32", "a": "f16", "b": "f16", "M": 128, "N": 256}, 0x08400010),
    (PLAIN, {"d": "f32", "a": "bf16", "b": "bf16", "M": 128, "N": 256}, 0x08400490),
    (PLAIN, {"d": "f16", "a": "f16", "b": "f16", "M": 64, "N": 64, "trans_a": 1}, 0x04108000),
    (PLAIN, {"d": "f32", "a": "tf32", "b": "tf32", "M": 128, "N": 64, "trans_b": 1}, 0x08110910),
    (PLAIN, {"d": "f32", "a": "e4m3", "b": "e5m2", "M": 256, "N": 128}, 0x10200410),
    (PLAIN, {"d": "s32", "a": "s8", "b": "u8", "M": 128, "N": 128, "trans_a": 1, "trans_b": 1}, 0x082180A0),
    (PLAIN, {"d": "f32", "a": "e2m1", "b": "e3m2", "M": 128, "N": 32}, 0x08081290),
    (MX8, {"a": "e4m3", "b": "e4m3", "M": 128, "N": 128, "scale": "ue8m0"}, 0x08A00000),
    (MX4, {"a": "e2m1", "b": "e2m1", "M": 128, "N": 256, "scale": "ue8m0"}, 0x08C00480),
    (MX4, {"a": "e2m1", "b": "e2m1", "M": 256, "N": 192, "scale": "ue4m3"}, 0x10300480),
]


@pytest.mark.parametrize(("name", "fields", "wanted"), INSTRUCTIONS)
def test_instruction_descriptors_equal_cute(name: str, fields: dict[str, Any], wanted: int) -> None:
    assert descriptor(name).encode(**fields) == wanted
    back = descriptor(name).decode(wanted)
    for field, value in fields.items():
        assert back[field] == value or value in back[field]  # type: ignore[operator]


def test_descriptors_refuse() -> None:
    with pytest.raises(UsageError, match=r"unknown descriptor 'wgmma.matrx'; did you mean wgmma.matrix"):
        descriptor("wgmma.matrx")
    with pytest.raises(UsageError, match="no field 'SB0'; did you mean SBO"):
        descriptor("wgmma.matrix").encode(SB0=1)
    with pytest.raises(UsageError, match="SBO is 0 to 262128 in steps of 16; 24 came"):
        descriptor("wgmma.matrix").encode(SBO=24)
    with pytest.raises(UsageError, match="N is 0 to 504 in steps of 8; 512 came"):
        descriptor(PLAIN).encode(N=512)
    with pytest.raises(UsageError, match="swizzle is one of 16, 128, 64, 32; 48 came"):
        descriptor("wgmma.matrix").encode(swizzle=48)
    with pytest.raises(UsageError, match="0x0 is none"):
        descriptor("tcgen05.matrix").decode(0)
    assert descriptor("wgmma.matrix").encode(start=0x40000 + 32) == 2
    assert len(descriptors()) == 6
    mask = descriptor("tcgen05.zero_column_mask").encode(generate=1, first_1="zero", use_span=3)
    assert mask == 1 << 39 | 1 << 33 | 3 << 48
