"""An instruction that negates operands as the one that does not: what is asked has its signs flipped first.

The plainest sums tell the two apart: 1 comes out as -1.  Probes and a search know units that add; seen like this, one
that subtracts is such a unit, and every vector can be asked, since flipping a sign bit twice leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.modifiers import SIGN_KEYS, operand_signs
from mmaprobe.devices.asked_as import AskedAs
from mmaprobe.devices.base import Device
from mmaprobe.operands.batch import Batch, Witness, flipped

OF_VECTORS = {"a": -1, "b": -1, "c": -1}
"""The axis of the lanes of each operand of separate vectors; of C, which has none, all items are flipped or none."""
OF_TILES = OF_VECTORS | {"b": -2}
"""The same of tiles."""


def unread_sign(instruction: Instruction) -> str:
    """Why nothing can be derived of an instruction alone: it takes an operand's absolute value; empty of others."""
    signs = operand_signs(instruction)
    lost = [name for name, pair in signs.items() if {"clear", "set"} & set(pair)]
    plain = tuple(pair for pair in instruction.modifiers if pair[0] not in SIGN_KEYS)
    named = spell(instruction.opcode, plain)
    why = "its sign is never read: derive {} and validate this one against it"
    return f"it takes the absolute value of {' and '.join(lost)}, so that {why.format(named)}" if lost else ""


@dataclass(frozen=True)
class PlainSigns(AskedAs):
    """A device whose instruction, which negates operands, answers as the one under the same id that does not."""

    signs: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, device: Device, instruction: Instruction) -> PlainSigns | None:
        """The view of an instruction; None where it negates nothing, or does more with a sign bit than flip it."""
        signs = {name: pair for name, pair in operand_signs(instruction).items() if pair != ("keep", "keep")}
        flips = {sign for pair in signs.values() for sign in pair} <= {"keep", "flip"}
        return cls(device, instruction, signs) if signs and flips else None

    @property
    def plain(self) -> Instruction:
        """The instruction that it answers."""
        return replace(self.real, modifiers=tuple(pair for pair in self.real.modifiers if pair[0] not in SIGN_KEYS))

    def asked(self, instruction: Instruction) -> Instruction:
        """The instruction that negates, in this one's control state."""
        taken = tuple(pair for pair in self.real.modifiers if pair[0] in SIGN_KEYS)
        modifiers = tuple(sorted({*instruction.modifiers, *taken}))
        return replace(instruction, id=spell(instruction.opcode, modifiers), modifiers=modifiers)

    def operands(self, batch: Batch, tiles: bool) -> Batch:
        """The operands, their signs flipped."""
        return self.flipped(batch, OF_TILES if tiles else OF_VECTORS)

    def flipped(self, batch: Batch, axes: Mapping[str, int]) -> Batch:
        """The operands as they are asked, or, of those that were asked, as the plain instruction has them."""
        masks = {name: fmt.sign_mask for name, fmt in self.real.formats().items()}
        changes = {
            name: flipped(value, axes[name], self.signs[name], masks[name])
            for name, value in batch.items()
            if name in self.signs
        }
        return replace(batch, **changes)

    def witness(self, witness: Witness) -> Witness:
        """A witness of either instruction as one of the other: the same answer to the vector that is asked."""
        codes = {}
        for name, pair in self.signs.items():
            value, mask = getattr(witness, name), self.real.formats()[name].sign_mask
            if value is not None:
                codes[name] = _flipped(value, tuple(mask * (sign == "flip") for sign in pair))
        return replace(witness, **codes)


def _flipped(codes: Any, masks: tuple[int, ...]) -> Any:
    """An operand of a witness, one code or those of all lanes, XOR the masks of even and of odd lanes."""
    if isinstance(codes, tuple):
        return tuple(code ^ masks[lane % 2] for lane, code in enumerate(codes))
    return codes ^ masks[0]
