"""What differs between vendors: the compiler of an architecture, and what its disassembly says of a kernel."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.toolchain.amd import clang, code_object, zig
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.amd.hiprtc import Hiprtc
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import nvdisasm, nvrtc
from mmaprobe.toolchain.nvidia.cubin import registers
from mmaprobe.toolchain.nvidia.nvcc import Nvcc
from mmaprobe.toolchain.nvidia.tcgen05 import primed

AMD, NVIDIA = "gfx", "sm_"
"""How names of architectures begin."""


@dataclass(frozen=True)
class Listing:
    """Of a disassembly: its matrix instructions and how often each, the code's hash, and what differs (catalog).

    ``resources`` are what the kernel takes of a multiprocessor, as its binary tells.
    """

    opcodes: dict[str, int]
    code: str
    differs: list[str]
    resources: dict[str, int]


def compiler_for(architecture: str) -> Compiler:
    """NVRTC; of AMD the clang that MMAPROBE_CLANG names, else hiprtc where it serves the architecture, else clang.

    UsageError for an architecture that has no kernels.
    """
    if architecture.startswith(NVIDIA):
        return nvrtc
    if not architecture.startswith(AMD):
        raise UsageError(f"{architecture}: kernels are compiled for GPUs (sm_90a, H200, gfx942)")
    if os.environ.get(clang.OVERRIDE):
        return Clang()
    try:
        Hiprtc().check_architecture(architecture)
    except NotHereError:
        return Clang()
    return Hiprtc()


def named_compiler(name: str, architecture: str) -> Compiler:
    """``nvrtc``, ``hiprtc``, ``clang`` or ``ziglang``, or the nvcc or clang++ at a path.

    UsageError for another name, or a compiler of the other vendor.
    """
    file = Path(name).name
    made: Compiler
    if name == "nvrtc" or "nvcc" in file:
        vendor, made = NVIDIA, nvrtc if name == "nvrtc" else Nvcc(name)
    elif name == "hiprtc":
        vendor, made = AMD, Hiprtc()
    elif name in ("clang", zig.WHEEL) or "clang" in file:
        vendor, made = AMD, Clang("" if name == "clang" else name)
    else:
        raise UsageError(
            f"--compiler {name}: it must be nvrtc, hiprtc, clang or ziglang, or the path of nvcc or clang++"
        )
    if not architecture.startswith(vendor):
        raise UsageError(f"{architecture}: {name} compiles for {vendor}* only; leave --compiler out")
    return made


def disassembler(architecture: str) -> str:
    """The path of what reads kernels; NotHereError that says what to install."""
    return code_object.objdump() if architecture.startswith(AMD) else nvdisasm.nvdisasm()


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
        return Listing(opcodes, code_object.code_hash(lines), differs, code_object.resources(made.binary))
    text = nvdisasm.disassemble(made.binary)
    opcodes = nvdisasm.matrix_opcodes(text)
    way, before = lowering(wanted, architecture), int(primed(wanted))
    differs = nvdisasm.differences(way, opcodes, before)
    return Listing(opcodes, nvdisasm.code_hash(text), differs, {"registers": registers(made.binary)})
