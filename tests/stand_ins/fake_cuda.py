"""A stand-in for ``cuda.bindings.driver``: the functions that the device calls, on host memory.

Types and enumerations are the real ones.  Device memory is host memory whose bounds are checked; a kernel is computed
by ``unit`` at its launch, and ``fault`` names what goes wrong.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.device import GpuDevice, Trial
from mmaprobe.devices.nvidia.driver import CudaDriver, open_driver
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.render import render
from stand_ins.fake_launch import NOT_READY, FakeLaunch, Grid, Unit
from stand_ins.fake_machine import machine

real = pytest.importorskip("cuda.bindings.driver")

LOST = {"ecc": 214, "nvlink": 220, "taken": 46, "bus": 999}
"""What every call answers from a launch with this fault on."""
BREAKS = {
    "contained": 226, "illegal": 700, "timeout": 702, "stack": 714, "instruction": 715, "misaligned": 716, "space": 717,
    "pc": 718, "failed": 719, "leak": 721, "external": 911,
}  # fmt: skip
"""What asking for a launch with this fault answers, and every call from there on: "This leaves the process in an
inconsistent state and any further CUDA work will return the same error" (the driver's text of these statuses)."""
ASSERT = 710
"""The same until the context is destroyed (its text again); other libraries may keep it."""
HEADER = struct.Struct("<4s4xB9xH28xI12x")


def cubin(made: Instruction, number: int = 90) -> bytes:
    """An ELF header as NVRTC 13 writes it, and the instruction's id behind it."""
    return HEADER.pack(b"\x7fELF", 8, 190, number << 8 | 4) + made.id.encode()


def kernels(made: Instruction, architecture: str) -> Kernel:
    """The kernel's true geometry with a stand-in for its binary."""
    return Kernel.of(render(made, architecture), cubin(made), "NVRTC 13.0")


def model(made: Instruction, batch: Batch) -> Bits:
    """D as the model of Hopper computes it."""
    return open_device("model:sm_90a").run(made, batch)


class FakeCuda(FakeLaunch):
    """``cuda.bindings.driver`` with ``gpus`` GPUs."""

    def __init__(self, *, gpus: int = 1, init: int = 0, capability: tuple[int, int] = (9, 0), **facts: Any) -> None:
        self.gpus, self.init, self.capability = gpus, init, capability
        self.name: bytes = facts.pop("name", b"NVIDIA H200")
        self.version: int = facts.pop("version", 13000)
        self.mode: int = facts.pop("mode", 0)
        self.retain: int = facts.pop("retain", 0)
        self.memory: int = facts.pop("memory", 1 << 30)
        self.unit: Unit = facts.pop("unit", model)
        self.fault: str = facts.pop("fault", "")
        self.after: int = facts.pop("after", 0)  # launches that go well before the fault
        self.shared = facts.pop("shared", False)  # another library of the process holds the primary context
        assert not facts, facts
        super().__init__()
        self.used = self.contexts = self.references = 0
        self.sticky = self.ended = 0
        self.current: list[Any] = []
        self.images: dict[int, bytes] = {}
        self.configs: list[Any] = []
        self.shared_most = 48 << 10

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name) if name.startswith(("CU", "cuuint")) else object.__getattribute__(self, name)

    def _status(self, status: int = 0) -> Any:
        return real.CUresult(self.sticky or status)

    # Devices

    def cuInit(self, Flags: int) -> tuple[Any]:
        return (real.CUresult(self.init),)

    def cuDriverGetVersion(self) -> tuple[Any, int]:
        return real.CUresult(0), self.version

    def cuDeviceGetCount(self) -> tuple[Any, int]:
        return real.CUresult(0), self.gpus

    def cuDeviceGet(self, ordinal: int) -> tuple[Any, Any]:
        return real.CUresult(0 if ordinal < self.gpus else 101), real.CUdevice(ordinal)

    def cuDeviceGetName(self, length: int, dev: Any) -> tuple[Any, bytes]:
        return real.CUresult(0), self.name.ljust(length, b"\0")

    def cuDeviceGetUuid(self, dev: Any) -> tuple[Any, Any]:
        found = real.CUuuid()
        ctypes.memmove(found.getPtr(), bytes(range(16)), 16)
        return real.CUresult(0), found

    def cuDeviceGetAttribute(self, attrib: Any, dev: Any) -> tuple[Any, int]:
        kinds = real.CUdevice_attribute
        facts = {
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: self.capability[0],
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: self.capability[1],
            kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 132,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: self.mode,
        }
        return real.CUresult(0), facts[attrib]

    # Contexts

    def cuDevicePrimaryCtxRetain(self, dev: Any) -> tuple[Any, Any]:
        if self.retain or self.sticky:
            return self._status(self.retain), None
        if not self.references:
            self.contexts += 1
        self.references += 1
        return real.CUresult(0), real.CUcontext(self.contexts)

    def cuDevicePrimaryCtxRelease(self, dev: Any) -> tuple[Any]:
        self.references -= 1
        if not self.references and not self.shared:
            assert not self.running, "a context goes while a kernel runs"
            self.allocated.clear()
            self.images.clear()
            self.used = 0
            self.ended = 0
            if self.sticky == ASSERT:
                self.sticky = 0
        return (real.CUresult(0),)

    def cuCtxPushCurrent(self, ctx: Any) -> tuple[Any]:
        self.current.append(ctx)
        return (real.CUresult(0),)

    def cuCtxPopCurrent(self) -> tuple[Any, Any]:
        return real.CUresult(0), self.current.pop()

    # Memory

    def cuMemGetInfo(self) -> tuple[Any, int, int]:
        return self._status(), self.memory - self.used, self.memory

    def cuMemAlloc(self, bytesize: int) -> tuple[Any, Any]:
        assert self.current, "no context is current"
        most = 1200 if self.fault == "fragmented" else 0 if self.fault == "no memory" else self.memory
        if self.used + bytesize > self.memory or bytesize > most:
            return self._status(2), None
        held = ctypes.create_string_buffer(bytesize)
        self.allocated[ctypes.addressof(held)] = held
        self.used += bytesize
        return self._status(), real.CUdeviceptr(ctypes.addressof(held))

    def cuMemFree(self, dptr: Any) -> tuple[Any]:
        held = self.allocated.pop(int(dptr), None)
        self.used -= len(held) if held else 0
        return (self._status(0 if held else 1),)

    def _moved(self, place: Any, size: int, move: Callable[[], Any]) -> tuple[Any]:
        assert not self.running, "memory is read while a kernel runs"
        if not self.sticky and self.within(place, size):
            move()
            return (real.CUresult(0),)
        return (self._status(1),)

    def cuPointerGetAttribute(self, attribute: Any, ptr: int) -> tuple[Any, int]:
        assert attribute == real.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return self._status(), self.foreign.get(int(ptr), 0)

    def cuStreamSynchronize(self, hStream: int) -> tuple[Any]:
        self.settled.append(hStream)
        return (self._status(),)

    def cuMemsetD8(self, dstDevice: Any, uc: int, N: int) -> tuple[Any]:
        return self._moved(dstDevice, N, lambda: ctypes.memset(int(dstDevice), uc, N))

    def cuMemcpyHtoD(self, dstDevice: Any, srcHost: int, ByteCount: int) -> tuple[Any]:
        self.copied += ByteCount
        return self._moved(dstDevice, ByteCount, lambda: ctypes.memmove(int(dstDevice), srcHost, ByteCount))

    def cuMemcpyDtoH(self, dstHost: int, srcDevice: Any, ByteCount: int) -> tuple[Any]:
        return self._moved(srcDevice, ByteCount, lambda: ctypes.memmove(dstHost, int(srcDevice), ByteCount))

    # Kernels

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, Any]:
        if self.fault == "no binary":
            return real.CUresult(209), None
        self.images[len(self.images) + 1] = image
        return self._status(), real.CUmodule(len(self.images))

    def cuModuleGetFunction(self, hmod: Any, name: bytes) -> tuple[Any, Any]:
        return self._status(0 if name == b"mmaprobe_run" else 500), real.CUfunction(int(hmod))

    def cuModuleUnload(self, hmod: Any) -> tuple[Any]:
        return (self._status(),)

    def cuFuncSetAttribute(self, hfunc: Any, attrib: Any, value: int) -> tuple[Any]:
        assert attrib == real.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.shared_most = value
        return (self._status(),)

    def cuEventCreate(self, Flags: int) -> tuple[Any, Any]:
        return self._status(), real.CUevent(1)

    def cuEventDestroy(self, hEvent: Any) -> tuple[Any]:
        return (self._status(),)

    def cuEventRecord(self, hEvent: Any, hStream: int) -> tuple[Any]:
        return (self._status(),)

    def cuEventQuery(self, hEvent: Any) -> tuple[Any]:
        self.sticky = self.sticky or self.ended
        return (self._status(NOT_READY if self.running else 0),)

    def cuLaunchKernelEx(self, config: Any, f: Any, kernelParams: int, extra: int) -> tuple[Any]:
        self.configs.append(config)
        if config.sharedMemBytes > self.shared_most:
            return (self._status(1),)
        assert self.current, "no context is current"
        grid = Grid(config.blockDimX, config.gridDimX)
        fault = self.launched(self.images[int(f)], grid, kernelParams)
        if fault == "refused":
            return (self._status(701),)
        if fault in LOST:
            self.sticky = LOST[fault]
        elif fault in self.statuses():
            self.ended = BREAKS.get(fault, ASSERT)
        return (self._status(),)

    def statuses(self) -> set[str]:
        return {*LOST, *BREAKS, "refused", "assert"}

    def named(self, image: bytes) -> Instruction:
        return instruction(image[HEADER.size :].decode(), "sm_90a")


def driver(cuda: FakeCuda, index: int = 0, **facts: Any) -> CudaDriver:
    return open_driver(index, machine(cuda, **facts))


def device(
    cuda: FakeCuda, trial: Trial | None = None, seconds: float = 5, cupy: Any = None, **kernel: Any
) -> GpuDevice:
    """A GPU device over the stand-in; ``kernel`` replaces fields of its kernels, ``cupy`` is installed."""
    return GpuDevice(
        driver(cuda, cupy=cupy), lambda made, where: replace(kernels(made, where), **kernel), trial, seconds
    )


class Interfaced:
    """An array of a library that speaks ``__cuda_array_interface__``."""

    def __init__(self, cuda: FakeCuda, value: Any, **said: Any) -> None:
        self.address = cuda.array(value.view(np.uint8))
        self.__cuda_array_interface__ = {
            "shape": value.shape, "typestr": value.dtype.str, "data": (self.address, False), "version": 3, **said,
        }  # fmt: skip
