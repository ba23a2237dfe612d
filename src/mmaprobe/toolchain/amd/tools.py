"""AMD's part of the toolchain (``toolchain.tools``): hiprtc or clang, llvm-objdump, and its matrix instructions."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import clang, code_object, matrix_core, zig
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.hiprtc import Hiprtc
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.tools import FUSED, LANES, STAGED, Family, Listing

CAMPAIGN, KERNEL, STAGES = "hip/campaign.hpp", "hip/campaign_kernel.hpp", "hip/campaign_stages.hpp"
WAVES = 8
"""Waves of a campaign's workgroup at most: what it leaves of a compute unit's shared memory is of no use to another."""
FAMILIES = (
    Family(
        ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_", "v_dot"), matrix_core.source, (CAMPAIGN, LANES, FUSED, KERNEL),
        (CAMPAIGN, STAGED, STAGES), matrix_core.parts, WAVES, dynamic=False,
    ),
)  # fmt: skip


def compiler(architecture: str) -> Compiler:
    """The clang that MMAPROBE_CLANG names, else hiprtc where it serves the architecture, else clang."""
    if os.environ.get(clang.OVERRIDE):
        return Clang()
    try:
        Hiprtc().check_architecture(architecture)
    except NotHereError:
        return Clang()
    return Hiprtc()


def named(name: str) -> Compiler | None:
    """``hiprtc``, ``clang``, ``ziglang``, or the clang++ at a path."""
    if name == "hiprtc":
        return Hiprtc()
    if name in ("clang", zig.WHEEL) or "clang" in Path(name).name:
        return Clang("" if name == "clang" else name)
    return None


def disassembler() -> str:
    """The path of llvm-objdump."""
    return code_object.objdump()


def listed(wanted: Instruction, architecture: str, made: Kernel) -> Listing:
    """A code object's matrix instructions, opcode, registers and modifiers, against what the id says."""
    lines = code_object.disassemble(made.binary, made.threads)
    found = code_object.matrices(lines, wanted.opcode)
    opcodes = dict(sorted(Counter(one.mnemonic for one in found).items()))
    differs = code_object.differences(wanted, architecture, found)
    wave = code_object.number(made.binary, "wavefront_size")
    if wave != made.threads:
        differs.append(f"waves of {wave} lanes, the catalog says {made.threads}")
    return Listing(opcodes, code_object.code_hash(lines), differs, code_object.resources(made.binary))
