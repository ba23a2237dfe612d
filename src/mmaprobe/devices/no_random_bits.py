"""An instruction with random bits as the one without: r = 0, with which stochastic rounding is the rounding beneath."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.asked_as import AskedAs
from mmaprobe.devices.base import Device
from mmaprobe.operands.batch import Batch, Witness


@dataclass(frozen=True)
class NoRandomBits(AskedAs):
    """A device whose instruction, which takes random bits, answers as the one under the same id that takes none."""

    @classmethod
    def of(cls, device: Device, instruction: Instruction) -> NoRandomBits | None:
        """The view of an instruction; None where it takes no random bits."""
        return None if instruction.random is None else cls(device, instruction)

    @property
    def plain(self) -> Instruction:
        """The instruction that it answers."""
        return replace(self.real, random=None)

    def asked(self, instruction: Instruction) -> Instruction:
        """The instruction with random bits."""
        return replace(instruction, random=self.real.random)

    def operands(self, batch: Batch, tiles: bool) -> Batch:
        """The operands, and no random bit set."""
        shape = self.real.shapes(batch.size)["random"] if tiles else (batch.size,)
        return replace(batch, random=np.zeros(shape, self.real.formats()["random"].dtype))

    def witness(self, witness: Witness) -> Witness:
        """A witness of the plain instruction as the vector that is asked."""
        return replace(witness, random=0)
