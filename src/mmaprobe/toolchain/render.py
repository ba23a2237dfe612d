"""From the catalog to a vendor's C++: structs of an instruction's operands, a template, and the instruction itself."""

from __future__ import annotations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import family_of

NO_RANDOM_BITS = "no kernel has an operand of random bits; run it by process: or function: (docs/new_unit.md)"


def render(instruction: Instruction, architecture: str) -> Source:
    """The kernel of an instruction; UsageError where the architecture lacks it or a layout of it is open."""
    lowering(instruction, architecture)
    if instruction.random is not None:
        raise UsageError(f"{instruction.id}: {NO_RANDOM_BITS}")
    family = family_of(instruction)
    if family is None:
        raise UsageError(f"{instruction.id}: no kernel template for it")
    return family.source(instruction, architecture)
