"""Control states of an instruction: the rounding mode and the flushing flags that it obeys, in braces behind its id."""

from __future__ import annotations

import itertools
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction, spell

CONTROL_VALUES = {"rounding": ("rn", "rd", "ru", "rz"), "ftz": ("off", ""), "daz": ("off", "")}
"""What each control may be; the first value is the default and is left out of the id."""


def in_state(base: Instruction, state: dict[str, str]) -> Instruction:
    """``base`` (of any state) in the control state given; defaults are left out of the id."""
    kept = [pair for pair in base.modifiers if pair[0] not in CONTROL_VALUES]
    kept += [(key, value) for key, value in state.items() if value != CONTROL_VALUES[key][0]]
    modifiers = tuple(sorted(kept))
    return replace(base, id=spell(base.opcode, modifiers), modifiers=modifiers)


def modes(base: Instruction) -> tuple[Instruction, ...]:
    """Every control state of an instruction, the default first; the instruction alone where it has none."""
    names = [name for name in CONTROL_VALUES if name in base.controls]
    states = itertools.product(*(CONTROL_VALUES[name] for name in names))
    return tuple(in_state(base, dict(zip(names, state, strict=True))) for state in states)


def default_state(stateful: Instruction) -> Instruction:
    """The same instruction in the default control state."""
    return in_state(stateful, {}) if stateful.controls else stateful
