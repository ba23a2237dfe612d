"""Instructions whose layout is open, with one of the layouts that sources claim: ``v_smfmac...{layout=chunks}``.

Such an id names a kernel, not another instruction: what it computes, its
lowering and its datapath are those of the id without it.  A claim of several
operands that belong together has one name; of several independent ones the
names stand side by side (``halves.low``).
"""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction, spell

KEY = "layout"
"""The modifier that names a claim."""


def claim_of(made: Instruction) -> tuple[str, ...]:
    """The names of the claims that an instruction is rendered by; () without."""
    return tuple(filter(None, made.modifier.get(KEY, "").split(".")))


def claimed(made: Instruction, name: str) -> Instruction:
    """An instruction by a claim's name, whatever it was before; empty: by none."""
    kept = tuple(pair for pair in made.modifiers if pair[0] != KEY)
    modifiers = tuple(sorted((*kept, (KEY, name)))) if name else kept
    return made if modifiers == made.modifiers else replace(made, id=spell(made.opcode, modifiers), modifiers=modifiers)


def unclaimed(made: Instruction) -> Instruction:
    """An instruction by no claim."""
    return claimed(made, "")
