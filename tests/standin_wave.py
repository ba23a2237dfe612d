"""A stand-in for an AMD GPU under the shared device: launches run a kernel's own data movement around a function.

A binary is the kernel's source.  Memory is this process's; operands come as the kernel's parameters, 64 bytes by
value and the address of ``done``.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from emulator.wave import run_wave
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.resident import Resident
from mmaprobe.devices.gpu import GpuDevice
from mmaprobe.devices.gpu_health import Health
from mmaprobe.devices.gpu_launch import OPERANDS
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from standin_gpu import core

Unit = Callable[[Instruction, Batch], Bits]
Change = tuple[str, str]


class WaveDriver:
    """``gpu_driver.Driver`` of a GPU that runs sources; ``unit`` computes what the matrix unit sees."""

    name = "hip:0"
    resident: tuple[int, ...] = ()
    multiprocessors = 4
    exclusive = False

    def __init__(self, architecture: str, unit: Unit) -> None:
        self.architecture, self.unit = architecture, unit
        self.memory: dict[int, Any] = {}

    def identity(self) -> dict[str, str]:
        return {"architecture": self.architecture}

    def health(self) -> Health:
        return Health()

    def siblings(self) -> list[str]:
        return [self.name]

    def start(self) -> None:
        return

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        self.memory.clear()

    def settle(self, array: Resident) -> None:
        raise AssertionError("no operand lies in GPU memory")

    def room(self) -> int:
        return 1 << 30

    def allocate(self, size: int) -> int:
        held = ctypes.create_string_buffer(max(size, 1))
        self.memory[ctypes.addressof(held)] = held
        return ctypes.addressof(held)

    def release(self, address: int) -> None:
        del self.memory[address]

    def fill(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def copy_in(self, address: int, array: Bits) -> None:
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy_out(self, array: Bits, address: int) -> None:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def load(self, kernel: Kernel) -> Kernel:
        return kernel

    def launch(self, function: Kernel, kernel: Kernel, groups: int, operands: bytes, done: int) -> None:
        """All items of the batch, whatever the grid: every wave takes its share."""
        *addresses, d, items = struct.unpack("<8Q", operands)
        made = instruction(function.instruction, self.architecture)
        arrays = {
            name: _array(address, shape, np.dtype(np.uint8) if name == "metadata" else made.formats()[name].dtype)
            for name, address in zip(OPERANDS, addresses, strict=True)
            for shape in [made.shapes(items).get(name)]
            if shape is not None
        }
        source = Source(made.id, self.architecture, function.cubin.decode(), **function.geometry)
        result = run_wave(source, made, Batch(**arrays), core(made, self.unit), self.architecture)
        ctypes.memmove(d, result.ctypes.data, result.nbytes)
        ctypes.c_uint64.from_address(done).value += items

    def wait(self, seconds: float) -> None:
        return


def _array(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Bits:
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


def device(architecture: str, unit: Unit, change: Change = ("", "")) -> GpuDevice:
    """The shared GPU device on the stand-in, a text of each source changed."""

    def kernel(made: Instruction, home: str) -> Kernel:
        source = render(made, home)
        assert change[0] in source.text, source.text
        return Kernel.of(source, source.text.replace(*change).encode(), "clang 22.1.8")

    return GpuDevice(WaveDriver(architecture, unit), kernel, None, 60)
