"""What NVRTC makes of wgmma and wmma: modifiers, the order of fences and barriers, shared memory; a sample of both."""

from __future__ import annotations

import re
import struct

import pytest

from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.toolchain.nvidia import nvdisasm, nvrtc
from mmaprobe.toolchain.render import render

pytestmark = pytest.mark.needs("cuda")

HALF = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16"
INTEGER = "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.s8.satfinite"
PRINTED = [
    # id, the instruction as nvdisasm prints it: R a register, gdesc the pair of descriptors
    (HALF, "HGMMA.64x8x16.F32 R, gdesc, R, gsb0"),
    (HALF + "{neg_a,trans_b}", "HGMMA.64x8x16.F32 R, gdesc.negA.tnspB, R, gsb0"),
    (HALF + "{neg_b,trans_a}", "HGMMA.64x8x16.F32 R, gdesc.negB.tnspA, R, gsb0"),
    (HALF + "{a=regs,neg_a,trans_b}", "HGMMA.64x8x16.F32 R, -R, gdesc.tnspB, R, gsb0"),
    (HALF + "{scale_d=0}", "HGMMA.64x8x16.F32 R, gdesc, R, UP0, gsb0"),
    (SPARSE + "{a=regs,neg_b}", "HGMMA.SP.64x8x32.F16 R, R, gdesc.negB, R, R, 0x0, gsb0"),
    (INTEGER, "IGMMA.64x8x32.U8.S8.SAT R, gdesc, R, gsb0"),
]
SEQUENCE = r"FENCE\.VIEW\.ASYNC|BAR\.SYNC|WARPGROUP\.ARRIVE|HGMMA|WARPGROUP\.DEPBAR"


def compiled(name: str, architecture: str) -> tuple[bytes, str]:
    made = nvrtc.compile_source(render(instruction(name, architecture), architecture))
    return made.binary, nvdisasm.disassemble(made.binary)


@pytest.mark.parametrize(("name", "printed"), PRINTED)
def test_modifiers_reach_the_instruction(name: str, printed: str) -> None:
    """Signs and transposition are those of the id, the order of immediates included; scale-d 0 is seen as it runs."""
    _, text = compiled(name, "sm_90a")
    (line,) = re.findall(r"\*/\s+(\wGMMA.*?) ;", text)
    assert re.sub(r"\bR\d+", "R", re.sub(r"gdesc\[UR\d+\]", "gdesc", line)) == printed


def test_the_unit_starts_after_the_fence_and_is_waited_for() -> None:
    """Written memory is fenced, then the barrier, the unit, its wait, and a barrier before memory is written again."""
    _, text = compiled(HALF, "sm_90a")
    assert re.findall(SEQUENCE, text) == [
        "FENCE.VIEW.ASYNC", "BAR.SYNC", "WARPGROUP.ARRIVE", "HGMMA", "WARPGROUP.DEPBAR", "BAR.SYNC"
    ]  # fmt: skip


def section_alignments(cubin: bytes) -> dict[str, int]:
    """The alignment of each section of an ELF64 file."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + size * number) for number in range(count)]
    strings = headers[names][4]
    return {cubin[strings + head[0] :].split(b"\0", 1)[0].decode(): head[8] for head in headers}


def test_shared_memory_starts_on_the_widest_pattern() -> None:
    """A swizzled pattern of 128 bytes repeats every 1024: base offset 0 in the descriptor says that it starts there."""
    cubin, _ = compiled(HALF + "{trans_a}", "sm_90a")
    assert section_alignments(cubin)[".nv.shared.mmaprobe_run"] == 1024


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("wmma.mma.sync.aligned.row.row.m32n8k16.f16.f32", "sm_75"),
        ("wmma.mma.sync.aligned.col.row.m16n16k8.f32.tf32.tf32.f32", "sm_80"),
        ("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32", "sm_89"),
        ("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "sm_90a"),
        ("wmma.mma.sync.aligned.col.col.m8n8k4.rz.f64.f64.f64.f64", "sm_120a"),
    ],
)
def test_wmma_becomes_what_the_catalog_says(name: str, architecture: str) -> None:
    _, text = compiled(name, architecture)
    assert nvdisasm.differences(lowering(instruction(name), architecture), nvdisasm.matrix_opcodes(text)) == []
