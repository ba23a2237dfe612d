"""Whether an instruction is one of the unit's own operations, with nothing around it."""

from __future__ import annotations

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import UsageError
from mmaprobe.parameters.modified import changes


def bare_primitive(architecture: str, instruction: Instruction) -> str | None:
    """The primitive whose datapath the instruction's is; None where the compiler puts something around it."""
    try:
        way = lowering(instruction, architecture)
    except UsageError:
        return None
    bare = way.kind != "emulated" and len(way.applications) == 1 and not (way.convert_c or way.convert_d)
    return way.primitives[0] if bare and not changes(instruction) else None
