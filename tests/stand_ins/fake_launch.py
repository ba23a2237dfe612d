"""What every stand-in for a vendor's driver shares: memory on the host with bounds, and what a launch does to it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.launch import OPERANDS
from mmaprobe.operands.batch import Batch, Bits

Unit = Callable[[Instruction, Batch], Bits]
NOT_READY = 600
ABORTED = b"Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f00. Reason: Unknown.\n"


@dataclass(frozen=True)
class Grid:
    """A launch's threads of a group of groups, and how many of those there are."""

    threads: int
    groups: int


class FakeLaunch:
    """``fault``: what goes wrong in launches, from number ``after`` on; ``KIND of ID`` in those of one instruction.

    ``copied``: bytes that went to the device; ``settled``: streams that were waited for.
    """

    unit: Unit
    fault: str
    after: int

    def __init__(self) -> None:
        self.allocated: dict[int, Any] = {}
        self.launches = self.copied = 0
        self.running = False
        self.foreign: dict[int, int] = {}  # addresses on other GPUs
        self.settled: list[int] = []

    def named(self, image: bytes) -> Instruction:
        """The instruction of a binary."""
        raise NotImplementedError

    def concerns(self, of: str, image: bytes) -> bool:
        """Whether a binary is one whose launches have a fault."""
        return of in ("", self.named(image).id)

    def answer(self, image: bytes, grid: Grid, batch: Batch) -> Bits:
        """D as a launch of a binary computes it."""
        return self.unit(self.named(image), batch)

    def array(self, value: Bits) -> int:
        """The address of a copy of an array in device memory, as another library would make it."""
        held = ctypes.create_string_buffer(value.tobytes(), max(value.nbytes, 1))
        self.allocated[ctypes.addressof(held)] = held
        return ctypes.addressof(held)

    def within(self, address: Any, size: int) -> bool:
        """Whether these bytes lie in one allocation."""
        return any(start <= int(address) and int(address) + size <= start + len(held)
                   for start, held in self.allocated.items())  # fmt: skip

    def launched(self, image: bytes, grid: Grid, parameters: int) -> str:
        """A launch with the addresses of its two parameters; the fault that the driver's answer has to say."""
        places = (ctypes.c_void_p * 2).from_address(parameters)
        done = ctypes.c_uint64.from_address(places[1] or 0).value
        kind, _, of = self.fault.partition(" of ")
        fault = kind if self.launches >= self.after and self.concerns(of, image) else ""
        self.launches += 1
        if fault == "die":
            raise SystemExit(9)
        if fault == "abort":
            os.write(2, ABORTED)
            os.abort()
        if fault == "hang":
            self.running = True
        elif fault not in self.statuses():
            self.compute(image, grid, places[0] or 0, done, fault)
        return fault

    def statuses(self) -> set[str]:
        """Faults that are a status of the driver's: nothing is computed."""
        raise NotImplementedError

    def compute(self, image: bytes, grid: Grid, operands: int, done: int, fault: str) -> None:
        """All items of the batch, whatever the grid: every group takes its share."""
        given = dict(zip((*OPERANDS, "d", "items"), (ctypes.c_uint64 * 8).from_address(operands), strict=True))
        made, items = self.named(image), given["items"]
        dtypes = {name: fmt.dtype for name, fmt in made.formats().items()} | {"metadata": np.dtype(np.uint8)}
        batch = Batch(**{name: self.array_at(given[name], shape, dtypes[name]).copy()
                         for name, shape in made.shapes(items).items()})  # fmt: skip
        true = self.answer(image, grid, batch)
        d = self.array_at(given["d"], true.shape, true.dtype)
        counter = self.array_at(done, (1,), np.dtype(np.uint64))
        if fault == "never":
            return
        written = slice(0, items - 1) if fault == "canary" else slice(0, items)
        d[written] = true[written]
        if fault == "wrong":
            d[-1, -1, -1] ^= 1
        if fault == "overrun":
            ctypes.memset(given["d"] + d.nbytes, 0, 4)
        counter[0] += items - (fault == "count") | (1 << 63 if fault == "wait" else 0)

    def array_at(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Device memory as an array."""
        size = int(np.prod(shape)) * dtype.itemsize
        assert self.within(address, size), "a kernel reaches beyond its arrays"
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)
