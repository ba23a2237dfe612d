"""What differs between vendors: the compiler of an architecture, and what its disassembly says of a kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import UsageError
from mmaprobe.toolchain import code_object, disassembly, nvrtc
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.hip import Clang
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.tcgen05 import primed

AMD, NVIDIA = "gfx", "sm_"
"""How names of architectures begin."""


@dataclass(frozen=True)
class Listing:
    """Of a disassembly: its matrix instructions and how often each, the code's hash, and what differs (catalog)."""

    opcodes: dict[str, int]
    code: str
    differs: list[str]


def compiler_for(architecture: str) -> Compiler:
    """NVRTC or clang; UsageError for an architecture that has no kernels."""
    if architecture.startswith(AMD):
        return Clang()
    if architecture.startswith(NVIDIA):
        return nvrtc
    raise UsageError(f"{architecture}: kernels are compiled for GPUs (sm_90a, H200, gfx942)")


def listed(wanted: Instruction, architecture: str, made: Kernel) -> Listing:
    """A kernel disassembled and held against the catalog; NotHereError where the disassembler is missing."""
    if architecture.startswith(AMD):
        lines = code_object.disassemble(made.binary, made.threads)
        found = code_object.matrices(lines)
        opcodes = dict(sorted(Counter(one.mnemonic for one in found).items()))
        differs = code_object.differences(wanted, architecture, found)
        wave = code_object.number(made.binary, "wavefront_size")
        if wave != made.threads:
            differs.append(f"waves of {wave} lanes, the catalog says {made.threads}")
        return Listing(opcodes, code_object.code_hash(lines), differs)
    text = disassembly.disassemble(made.binary)
    opcodes = disassembly.matrix_opcodes(text)
    way, before = lowering(wanted, architecture), int(primed(wanted))
    return Listing(opcodes, disassembly.code_hash(text), disassembly.differences(way, opcodes, before))
