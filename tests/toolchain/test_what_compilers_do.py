"""What NVIDIA's compiler does behind one's back, each fact on which the kernels or the catalog rest."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.cubin import architecture_number
from mmaprobe.toolchain.nvidia.nvdisasm import disassemble, matrix_opcodes
from mmaprobe.toolchain.render import render

pytestmark = pytest.mark.needs("cuda")

VOLTA = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp{}.sync.aligned.m16n8k32.row.col.f32.{}.{}.f32"


def compiled(name: str, architecture: str) -> str:
    """The disassembly of an instruction's kernel."""
    return disassemble(nvrtc.compile_source(render(instruction(name), architecture)).binary)


def test_volta_s_form_is_software_later_and_lanes_exchange_operands() -> None:
    """No tensor core on sm_80; ptxas drops shuffles of operands that it can prove uniform, so lanes load their own."""
    text = compiled(VOLTA, "sm_80")
    assert matrix_opcodes(text) == {}
    assert text.count("SHFL") >= 8
    assert lowering(instruction(VOLTA), "sm_80").kind == "emulated"


def test_unordered_metadata_is_sorted_on_blackwell_for_f16_but_not_for_bf16() -> None:
    def calls(form: str, fmt: str) -> bool:
        return bool(re.search(r"\bCALL\b", compiled(SPARSE.format(form, fmt, fmt), "sm_100a")))

    assert calls("", "f16")
    assert not calls("::ordered_metadata", "f16")
    assert not calls("", "bf16")
    for fmt, sort in (("f16", True), ("bf16", False)):
        assert bool(lowering(instruction(SPARSE.format("", fmt, fmt)), "sm_100a").sort) is sort


def test_one_kernel_cannot_hold_both_groups_of_ctas() -> None:
    alone = "tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16"
    source = render(instruction(alone, "sm_100a"), "sm_100a")
    nvrtc.compile_source(source)
    mixed = source.text.replace('"tcgen05.mma.cta_group::1', '"tcgen05.mma.cta_group::2')
    assert mixed != source.text
    with pytest.raises(RefusedError, match="cta_group"):
        nvrtc.compile_source(replace(source, text=mixed))


def test_nvdisasm_of_cuda_13_does_not_read_sm_70() -> None:
    """A kernel that says that it is for sm_70: what to set is said."""
    cubin = bytearray(nvrtc.compile_source(render(instruction(VOLTA), "sm_75")).binary)
    places = [place for place in range(48, 52) if cubin[place] == 75]
    for place in places:
        cubin[place] = 70
    assert architecture_number(bytes(cubin)) == 70
    with pytest.raises(NotHereError, match=r"does not read the kernel.*MMAPROBE_NVDISASM"):
        disassemble(bytes(cubin))
