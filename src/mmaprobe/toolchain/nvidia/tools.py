"""NVIDIA's part of the toolchain (``toolchain.tools``): NVRTC or nvcc, nvdisasm, and the families of its PTX."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import mma_sync, nvdisasm, nvrtc, tcgen05, wgmma, wmma
from mmaprobe.toolchain.nvidia.cubin import registers
from mmaprobe.toolchain.nvidia.nvcc import Nvcc
from mmaprobe.toolchain.tools import FUSED, LANES, STAGED, Family, Listing

CAMPAIGN, WARP, WARPGROUP = "cuda/campaign.cuh", "cuda/campaign_warp.cuh", "cuda/campaign_warpgroup.cuh"
KERNEL, STAGES = "cuda/campaign_kernel.cuh", "cuda/campaign_stages.cuh"
IN_STAGES = (CAMPAIGN, WARP, STAGED, STAGES)
FAMILIES = (
    Family(("mma.",), mma_sync.source, (CAMPAIGN, WARP, LANES, FUSED, KERNEL), IN_STAGES, mma_sync.parts),
    Family(("wgmma.",), wgmma.source, (CAMPAIGN, WARPGROUP, FUSED, KERNEL), IN_STAGES, wgmma.parts, groups=1),
    Family(("wmma.",), wmma.source, (), IN_STAGES),
    Family(("tcgen05.",), tcgen05.source, (), IN_STAGES),
)


def compiler(architecture: str) -> Compiler:
    """NVRTC."""
    return nvrtc


def named(name: str) -> Compiler | None:
    """``nvrtc``, or the nvcc at a path."""
    if name == "nvrtc":
        return nvrtc
    return Nvcc(name) if "nvcc" in Path(name).name else None


def disassembler() -> str:
    """The path of nvdisasm."""
    return nvdisasm.nvdisasm()


def listed(wanted: Instruction, architecture: str, made: Kernel) -> Listing:
    """A cubin's matrix instructions against those of the lowering."""
    text = nvdisasm.disassemble(made.binary)
    opcodes = nvdisasm.matrix_opcodes(text)
    differs = nvdisasm.differences(lowering(wanted, architecture), opcodes, int(tcgen05.primed(wanted)))
    return Listing(opcodes, nvdisasm.code_hash(text), differs, {"registers": registers(made.binary)})
