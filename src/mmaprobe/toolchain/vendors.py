"""The toolchain of whoever makes an architecture: found by its record, the same questions to each."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.tools import Family, Listing, Tools
from mmaprobe.vendors import Vendor, compilers, every, vendor_of


def tools_of(vendor: Vendor) -> Tools:
    """A vendor's part of the toolchain, imported when it is first used."""
    return cast(Tools, import_module(vendor.tools))


def _tools(architecture: str) -> Tools:
    vendor = vendor_of(architecture)
    if vendor is None:
        examples = ", ".join(each.example for each in every())
        raise UsageError(f"{architecture}: kernels are compiled for GPUs ({examples})")
    return tools_of(vendor)


def compiler_for(architecture: str) -> Compiler:
    """What compiles for an architecture here; UsageError for one that has no kernels."""
    return _tools(architecture).compiler(architecture)


def named_compiler(name: str, architecture: str) -> Compiler:
    """The compiler that has a name (``nvrtc``, ``clang``), or the program at a path (of nvcc, of clang++).

    UsageError for another name, or a compiler of another vendor.
    """
    for vendor in every():
        made = tools_of(vendor).named(name)
        if made is None:
            continue
        if not vendor.makes(architecture):
            raise UsageError(f"{architecture}: {name} compiles for {vendor.begins}* only; leave --compiler out")
        return made
    raise UsageError(f"--compiler {name}: it must be {compilers('or')}")


def disassembler(architecture: str) -> str:
    """The path of what reads kernels; NotHereError that says what to install."""
    return _tools(architecture).disassembler()


def listed(wanted: Instruction, architecture: str, made: Kernel) -> Listing:
    """A kernel disassembled and held against the catalog; NotHereError where the disassembler is missing."""
    return _tools(architecture).listed(wanted, architecture, made)


def family_of(instruction: Instruction) -> Family | None:
    """The family of an instruction; None where no vendor has kernels of its kind."""
    families = (family for vendor in every() for family in tools_of(vendor).FAMILIES)
    return next((family for family in families if instruction.opcode.startswith(family.opcodes)), None)
