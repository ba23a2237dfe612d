"""Generate, evaluate and compare in native code, where a device is a datapath that the engine runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import changes_batch
from mmaprobe.devices.base import Device
from mmaprobe.devices.cpu import Cpu
from mmaprobe.devices.model import DatapathDevice, ModelDevice
from mmaprobe.errors import UsageError
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import FAMILIES, MOST_LANES, stream_number
from mmaprobe.generators.tiles import Shape
from mmaprobe.models.program import Program, program
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.datapath import Datapath


def datapath_of(device: Device, instruction: Instruction) -> Datapath | None:
    """The datapath that a device computes dense vectors of an instruction by; None where it is no model."""
    if type(device) is ModelDevice:
        return device.datapath(instruction)
    if type(device) is DatapathDevice:
        return device.datapath
    return None


@dataclass(frozen=True)
class Pipeline:
    """The native path of one instruction: two programs, or one beside a device that answers by itself.

    ``asked`` is where that device stands: 0 for the device under test, 1 for
    the reference.  ``fast``: every program has a kernel of its own.
    """

    instruction: Instruction
    programs: tuple[Program, ...]
    asked: int | None
    fast: bool

    def compare(
        self, family: str, seed: int, start: int, count: int, tiles: int, answers: Bits | None, nan: str, limit: int,
        version: int | None = None, window: Shape | None = None,
    ) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
        """How many of ``count`` results differ, and the indices of the first ``limit`` of them.

        ``tiles`` whole tiles from vector ``start`` on, their results in the
        order tile, row, column; or, where it is 0, ``count`` separate vectors.  ``version`` names the rule that makes
        them, that of the family's vectors where it is None; ``window`` the first rows and columns of tiles that are
        made alone.
        """
        whole = self.instruction.m, self.instruction.n
        m, n = (window or whole) if tiles else (1, 0)
        number, stream = FAMILIES.index(family), stream_number(family, version)
        packed, programs = domain(self.instruction).packed(), list(self.programs)
        try:
            bad, where = _native.pipeline(
                packed, number, stream, seed, start, tiles or count, m, n, programs, answers, nan == "any", limit,
                isa(), *whole,
            )  # fmt: skip
        except ValueError as error:
            raise UsageError(f"{self.instruction.id}: {error}") from None
        return bad, np.array(where, np.int64)


@dataclass(frozen=True)
class SiliconPipeline(Pipeline):
    """The native path of a lane-wise unit of this CPU beside its model (``csrc/cpu/bindings/silicon.cpp``).

    The device is asked batch by batch, as any other is, but no array of Python's lies in between: the model's results
    are there before the unit runs, in reverse where the unit's results go, and the unit takes the batch whole under the
    instruction's own control register.
    """

    cpu: Cpu

    def compare(
        self, family: str, seed: int, start: int, count: int, tiles: int, answers: Bits | None, nan: str, limit: int,
        version: int | None = None, window: Shape | None = None,
    ) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
        """How many of ``count`` results differ, and the indices of the first ``limit`` of them.

        NotHereError without the instruction, DeviceError where it is masked.
        """
        unit, control = self.cpu.unit(self.instruction)
        bad, where = _native.silicon(
            domain(self.instruction).packed(), FAMILIES.index(family), stream_number(family, version), seed, start,
            count,
            self.programs[0], unit, control, nan == "any", limit, isa(),
        )  # fmt: skip
        return bad, np.array(where, np.int64)


def isa() -> str:
    """The engine build that the environment asks for; the fastest where it does not."""
    return os.environ.get("MMAPROBE_ISA", "")


def pipeline(dut: Device, ref: Device, instruction: Instruction) -> Pipeline | None:
    """The native path between two devices; None where there is none.

    At least one of the two is a model of a dense instruction without random
    bits whose modifiers leave its operands alone, and the engine takes its datapath.  Beside another
    device than a lane-wise unit of this CPU it must have a kernel: the interpreter gains nothing.
    """
    if instruction.chunk or instruction.random or changes_batch(instruction) or instruction.k > MOST_LANES:
        return None
    paths = [datapath_of(device, instruction) for device in (dut, ref)]
    known = [program(path) for path in paths if path is not None]
    programs = tuple(words for words in known if words is not None)
    if not programs or len(programs) != len(known):
        return None
    fast = all(has_kernel(words) for words in programs)
    if len(programs) == 2:
        return Pipeline(instruction, programs, None, fast)
    asked = int(paths[0] is not None)
    device = (dut, ref)[asked]
    if type(device) is Cpu and instruction.lane_wise:
        return SiliconPipeline(instruction, programs, asked, fast, device)
    return Pipeline(instruction, programs, asked, fast) if fast else None


def has_kernel(words: Program) -> bool:
    """Whether the engine has a kernel for a program on its own layout."""
    layout = _native.engine_layout()
    header = dict(zip(layout["header"], words.tolist(), strict=False))
    operands = [_nothing(words, header, layout, name) for name in ("a", "b", "c", "scale", "scale")]
    try:
        return _native.engine_evaluate_layout(words, operands, np.empty(0, np.uint32), 0, 16, 0, isa())
    except ValueError as error:
        raise UsageError(f"engine: {error}") from None


def _nothing(words: Program, header: dict[str, Any], layout: dict[str, list[str]], name: str) -> Bits | None:
    """No items of an operand's container; None where the program has no such operand."""
    if header[name] < 0:
        return None
    return np.empty(0, f"u{words[header[name] + layout['operand'].index('bytes')]}")
