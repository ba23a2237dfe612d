"""From the catalog to CUDA C++ or HIP: structs of an instruction's operands, a template, and the instruction itself."""

from __future__ import annotations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.amd import matrix_core
from mmaprobe.toolchain.nvidia import mma_sync, tcgen05, wgmma, wmma
from mmaprobe.toolchain.source import Source


def render(instruction: Instruction, architecture: str) -> Source:
    """The kernel of an instruction; UsageError where the architecture lacks it or a layout of it is open."""
    lowering(instruction, architecture)
    if instruction.opcode.startswith("mma."):
        return mma_sync.source(instruction, architecture)
    if instruction.opcode.startswith("wgmma."):
        return wgmma.source(instruction, architecture)
    if instruction.opcode.startswith("wmma."):
        return wmma.source(instruction, architecture)
    if instruction.opcode.startswith("tcgen05."):
        return tcgen05.source(instruction, architecture)
    if architecture.startswith("gfx"):
        return matrix_core.source(instruction, architecture)
    raise UsageError(f"{instruction.id}: no kernel template for it")
