"""A device whose one instruction is asked as another one: what the views have in common that take something away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, run_tiles, run_vectors
from mmaprobe.operands.batch import Batch, Bits, Witness


@dataclass(frozen=True)
class AskedAs(ABC):
    """The device answers ``plain``, and is asked ``real`` in its place, with other operands."""

    device: Device
    real: Instruction
    concurrent: ClassVar[bool] = False

    @property
    @abstractmethod
    def plain(self) -> Instruction:
        """The instruction that it answers."""

    @abstractmethod
    def asked(self, instruction: Instruction) -> Instruction:
        """The instruction that is asked in place of one, in its control state."""

    @abstractmethod
    def operands(self, batch: Batch, tiles: bool) -> Batch:
        """The operands as they are asked, of tiles or of separate vectors."""

    @abstractmethod
    def witness(self, witness: Witness) -> Witness:
        """A witness of ``plain`` as the vector that is asked."""

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
        return self.device.supports(self.asked(instruction))

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of tiles, in whatever control state the instruction is."""
        return run_tiles(self.device, self.asked(instruction), self.operands(batch, tiles=True))

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d (n,) of separate vectors."""
        return run_vectors(self.device, self.asked(instruction), self.operands(vectors, tiles=False))
