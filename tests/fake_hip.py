"""A stand-in for ROCm's ``libamdhip64`` and for a machine with an AMD GPU, under the device ``hip:N``.

A binary is an ELF magic, its target's name and the kernel's source.  A launch runs the source's own data movement on
emulated waves around ``unit``.  Memory is this process's.  ``faults``: statuses that functions answer instead;
``hangs``: launches never end; ``idle``: they end and did nothing.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from emulator.wave import run_wave
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu import GpuDevice
from mmaprobe.devices.gpu_launch import OPERANDS
from mmaprobe.devices.gpu_open import Compiled, asked, opened
from mmaprobe.devices.hip_driver import open_driver
from mmaprobe.devices.hip_machine import KFD, NODES, Machine
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from standin_gpu import core

Unit = Callable[[Instruction, Batch], Bits]
Change = tuple[str, str]
NAMES = {2: b"hipErrorOutOfMemory", 100: b"hipErrorNoDevice", 209: b"hipErrorNoBinaryForGpu", 214: b"hipErrorECC"}
PLACE = b"0000:03:00.0"


class _Name:
    """A function of the library that returns text."""

    restype: Any = None

    def __call__(self, status: int) -> bytes | None:
        return NAMES.get(status)


class FakeHip:
    """``libamdhip64`` with one GPU; what is not said here does nothing well."""

    def __init__(self, architecture: str = "gfx942", unit: Unit | None = None) -> None:
        self.architecture, self.unit, self.count = architecture, unit, 1
        self.faults: dict[str, int] = {}
        self.hangs = self.idle = False
        self.current, self.launches = 7, 0
        self.memory: dict[int, Any] = {}
        self.sources: dict[int, Source] = {}
        self.hipGetErrorName = _Name()

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> int:
            if name in self.faults:
                return self.faults[name]
            done = getattr(type(self), f"_{name}", None)
            return int((done(self, *arguments) if done else 0) or 0)

        return answer

    def _hipGetDeviceCount(self, count: Any) -> None:
        count._obj.value = self.count

    def _hipDeviceGetPCIBusId(self, text: Any, size: int, index: int) -> None:
        text.value = PLACE

    def _hipDeviceGetName(self, text: Any, size: int, index: int) -> None:
        text.value = b"AMD Instinct"

    def _hipRuntimeGetVersion(self, number: Any) -> None:
        number._obj.value = 60_241_133

    def _hipGetDevice(self, index: Any) -> None:
        index._obj.value = self.current

    def _hipSetDevice(self, index: int) -> None:
        self.current = index

    def _hipEventCreateWithFlags(self, event: Any, flags: int) -> None:
        event._obj.value = 1

    def _hipEventQuery(self, event: Any) -> int:
        return 600 if self.hangs and self.launches else 0

    def _hipMemGetInfo(self, free: Any, whole: Any) -> None:
        free._obj.value = whole._obj.value = 1 << 30

    def _hipMalloc(self, address: Any, size: Any) -> None:
        held = ctypes.create_string_buffer(size.value)
        self.memory[ctypes.addressof(held)] = held
        address._obj.value = ctypes.addressof(held)

    def _hipFree(self, address: Any) -> None:
        del self.memory[address.value]

    def _hipMemset(self, address: Any, byte: int, size: Any) -> None:
        ctypes.memset(address, byte, size.value)

    def _hipMemcpy(self, to: Any, start: Any, size: Any, kind: int) -> None:
        ctypes.memmove(to, start, size.value)

    def _hipModuleLoadData(self, module: Any, image: bytes) -> None:
        module._obj.value = len(self.sources) + 1
        text = image.partition(b"\0")[2].decode()
        name, home = text.partition("\n")[0].removeprefix("// ").split(" on ")
        self.sources[module._obj.value] = Source(name, home, text)

    def _hipModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        function._obj.value = module.value

    def _hipModuleUnload(self, module: Any) -> None:
        del self.sources[module.value]

    def _hipModuleLaunchKernel(self, function: Any, *rest: Any) -> None:
        self.launches += 1
        parameters = rest[-2]
        if not self.hangs and not self.idle:
            done = ctypes.c_uint64.from_address(parameters[1]).value
            self._compute(self.sources[function.value], rest[3], ctypes.string_at(parameters[0], 64), done)

    def _compute(self, source: Source, threads: int, operands: bytes, done: int) -> None:
        """All items of the batch, whatever the grid: every wave takes its share."""
        *addresses, d, items = struct.unpack("<8Q", operands)
        made = instruction(source.instruction, self.architecture)
        assert threads == render(made, self.architecture).threads * 4
        arrays = {
            name: _array(address, shape, np.dtype(np.uint8) if name == "metadata" else made.formats()[name].dtype)
            for name, address in zip(OPERANDS, addresses, strict=True)
            for shape in [made.shapes(items).get(name)]
            if shape is not None
        }
        assert self.unit is not None
        result = run_wave(source, made, Batch(**arrays), core(made, self.unit), self.architecture)
        ctypes.memmove(d, result.ctypes.data, result.nbytes)
        ctypes.c_uint64.from_address(done).value += items


def _array(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Bits:
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


def machine(hip: FakeHip | None, **environment: str) -> Machine:
    """A machine with one GPU at the place that HIP names, beside a CPU's node."""
    number = int(hip.architecture[3:-2]) * 10000 + int(hip.architecture[-2], 16) * 100 if hip else 0
    number += int(hip.architecture[-1], 16) if hip else 0
    properties = f"simd_count 1216\nsimd_per_cu 4\ngfx_target_version {number}\nlocation_id 768\nunique_id 66\n"
    files = {
        f"{NODES}/0/properties": "simd_count 0\ngfx_target_version 0\n",
        f"{NODES}/1/properties": properties,
        "/sys/module/amdgpu/version": "6.8.5",
    }
    return Machine(
        library=lambda: hip,
        environment=environment,
        exists=lambda path: path == KFD,
        usable=lambda path: True,
        text=lambda path: files.get(path, ""),
        entries=lambda path: ["0", "1"] if path == NODES else [],
    )


def binary(source: Source, architecture: str = "") -> bytes:
    """What stands for a code object; ``architecture``: another target than its source's."""
    return f"\x7fELFamdgcn-amd-amdhsa--{architecture or source.architecture}\0{source.text}".encode()


def device(hip: FakeHip, change: Change = ("", ""), target: str = "", options: str = "") -> GpuDevice:
    """``hip:0`` on the stand-in; a text of each source changed, or its binary made for another target."""

    def kernel(made: Instruction, home: str) -> Kernel:
        source = render(made, home)
        assert change[0] in source.text, source.text
        changed = replace(source, text=source.text.replace(*change))
        return Kernel.of(changed, binary(changed, target), "clang 22.1.8")

    def of_source(source: Source) -> Kernel:
        raise AssertionError("no campaign is asked for")

    what = asked("hip", f"0?trial=no{options}")
    here = Compiled(kernel, of_source, lambda: "clang 22.1.8")
    return opened(open_driver(what.index, machine(hip)), what, here, lambda name: ())
