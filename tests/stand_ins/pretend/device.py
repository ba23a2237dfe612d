"""Two GPUs of the pretended maker, which compute what the model of another maker's does."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device
from mmaprobe.devices.gpu.opening import asked
from mmaprobe.errors import NotHereError
from mmaprobe.operands.batch import Batch, Bits

COUNT = 2


class Pretended:
    """GPU ``index``."""

    def __init__(self, index: int, inner: Device) -> None:
        self.name, self._inner = f"pretend:{index}", inner

    def siblings(self) -> list[str]:
        return [f"pretend:{index}" for index in range(COUNT)]

    def info(self) -> dict[str, str]:
        return {"model_name": "Pretend P1", "architecture": "ptd1", "driver": "1.0"}

    def instructions(self) -> Sequence[Instruction]:
        return self._inner.instructions()

    def supports(self, instruction: Instruction) -> Support:
        return self._inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        return self._inner.run(instruction, batch)


def open_pretend(argument: str) -> Device:
    """``pretend:N``."""
    index = asked("pretend", argument).index
    if index >= COUNT:
        raise NotHereError(f"pretend:{index}: there are {COUNT}")
    return Pretended(index, open_device("model:gfx90a"))
