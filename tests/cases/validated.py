"""The devices and instructions that the tests of validation compare."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device
from mmaprobe.operands.batch import Batch, Bits

DOT = lookup.instruction("x86.vdpbf16ps")
FMA = lookup.instruction("x86.vfmadd.f32")
TILE = lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
AMX = lookup.instruction("x86.tdpbf16ps")
MODEL = open_device("model:x86-64+intel")
GPU = open_device("model:sm_90a")
HMMA = "HMMA.16816.F32[f16,f16->f32]"


@dataclass
class Changed:
    """A device whose whole tiles go through ``change``; it notes how it was called."""

    change: Callable[[Instruction, Batch, Bits], Bits]
    inner: Device = MODEL
    name: str = "changed"
    concurrent: bool = False
    entered: int = 0
    most: int = 0
    threads: set[int] = field(default_factory=set)

    def info(self) -> dict[str, str]:
        return {"architecture": "x86-64+intel"}

    def instructions(self) -> Sequence[Instruction]:
        return self.inner.instructions()

    def supports(self, instruction: Instruction) -> Support:
        return self.inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        self.entered += 1
        self.most = max(self.most, self.entered)
        self.threads.add(threading.get_ident())
        try:
            return self.change(instruction, batch, self.inner.run(instruction, batch))
        finally:
            self.entered -= 1
