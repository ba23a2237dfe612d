"""The device ``model:ARCH``: a parameter file, run as a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Support
from mmaprobe.errors import UsageError
from mmaprobe.evidence import silicon
from mmaprobe.models.model import run_tiles, run_vectors
from mmaprobe.operands.batch import Batch, Bits, check_batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import ParameterFile
from mmaprobe.parameters.lookup import datapath_for, edited, file_named, load


def open_model(name: str) -> ModelDevice:
    """The model of an architecture from the shipped parameters: ``model:sm_90a``, ``model:x86-64+intel``; or of a
    parameter file: ``model:acme1.toml``."""
    if not name:
        raise UsageError("model: of which architecture? Type model:ARCH, such as model:sm_90a, or model:FILE.toml")
    file = file_named(name)
    if file is not None:
        return ModelDevice(f"model:{name}", file, file=name)
    return ModelDevice(f"model:{name}", load(name), lookup.parts(name)[0])


@dataclass(frozen=True)
class ModelDevice:
    """Runs every instruction whose datapath the parameter file knows, exactly and everywhere."""

    name: str
    parameters: ParameterFile
    target: str = ""  # the compiler's target, such as sm_90, where it is not the architecture
    file: str = ""  # the path that was named, where it is not what ships
    concurrent: ClassVar[bool] = True

    @property
    def architecture(self) -> str:
        return self.parameters.architecture

    def info(self) -> dict[str, str]:
        """The architecture and the digest of the parameter file, its path, or whether it is not the one that ships."""
        said = {
            "architecture": self.architecture,
            silicon.KEY: silicon.MODEL,
            "parameters": f"sha256:{self.parameters.digest}",
        }
        if self.file:
            return said | {"file": self.file}
        return said | ({"parameters": f"{said['parameters']}, edited"} if edited(self.parameters) else {})

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction of the architecture."""
        return lookup.instructions(self.target or self.architecture)

    def supports(self, instruction: Instruction) -> Support:
        """Yes where a datapath is known, else the reason: ``no datapath is known for ...``."""
        try:
            self.datapath(instruction)
        except UsageError as error:
            return Support(False, str(error))
        return Support(True)

    def datapath(self, instruction: Instruction) -> Datapath:
        """What the device computes for the instruction; UsageError where nothing is known."""
        return datapath_for(self.target or self.architecture, instruction, self.parameters)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, [blocks,] M, N)."""
        return run_tiles(
            instruction, self.datapath(instruction), check_batch(instruction, batch), self.sorts(instruction)
        )

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d (n,) of separate vectors, without packing them into tiles."""
        return run_vectors(instruction, self.datapath(instruction), vectors, self.sorts(instruction))

    def sorts(self, instruction: Instruction) -> bool:
        """Whether the compiled code puts sparse metadata in order before the primitive."""
        return lookup.lowering(instruction, self.target or self.architecture).sort is not None


@dataclass(frozen=True)
class DatapathDevice:
    """One instruction computed by one datapath: what a derivation found, as a device."""

    instruction: Instruction
    datapath: Datapath
    name: str = "the derived datapath"
    concurrent: ClassVar[bool] = True

    def info(self) -> dict[str, str]:
        """The instruction whose datapath it is."""
        return {"architecture": "derived", silicon.KEY: silicon.MODEL, "instruction": self.instruction.id}

    def instructions(self) -> Sequence[Instruction]:
        """The one instruction."""
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        """Its own instruction only."""
        return Support(instruction == self.instruction, f"only {self.instruction.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, [blocks,] M, N)."""
        return run_tiles(instruction, self.datapath, check_batch(instruction, batch))

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d (n,) of separate vectors."""
        return run_vectors(instruction, self.datapath, vectors)
