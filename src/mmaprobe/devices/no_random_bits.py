"""An instruction with random bits as the one without: r = 0, with which stochastic rounding is the rounding beneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, run_tiles, run_vectors
from mmaprobe.operands.batch import Batch, Bits, Witness


@dataclass(frozen=True)
class NoRandomBits:
    """A device whose instruction, which takes random bits, answers as the one under the same id that takes none."""

    device: Device
    drawing: Instruction
    concurrent: ClassVar[bool] = False

    @classmethod
    def of(cls, device: Device, instruction: Instruction) -> NoRandomBits | None:
        """The view of an instruction; None where it takes no random bits."""
        return None if instruction.random is None else cls(device, instruction)

    @property
    def plain(self) -> Instruction:
        """The instruction that it answers."""
        return replace(self.drawing, random=None)

    @property
    def name(self) -> str:
        """The device's own name."""
        return self.device.name

    def info(self) -> dict[str, str]:
        """The device's own identity."""
        return self.device.info()

    def instructions(self) -> Sequence[Instruction]:
        """The one instruction."""
        return (self.plain,)

    def supports(self, instruction: Instruction) -> Support:
        """Whether the device runs what is asked instead."""
        return self.device.supports(self._asked(instruction))

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of tiles, in whatever control state the instruction is."""
        asked = self._asked(instruction)
        shape = asked.shapes(batch.size)["random"]
        return run_tiles(self.device, asked, replace(batch, random=np.zeros(shape, asked.formats()["random"].dtype)))

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d (n,) of separate vectors."""
        asked = self._asked(instruction)
        zeros = np.zeros(vectors.size, asked.formats()["random"].dtype)
        return run_vectors(self.device, asked, replace(vectors, random=zeros))

    def witness(self, witness: Witness) -> Witness:
        """A witness of the plain instruction as the vector that is asked."""
        return replace(witness, random=0)

    def _asked(self, instruction: Instruction) -> Instruction:
        return replace(instruction, random=self.drawing.random)
