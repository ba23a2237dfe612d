"""One NVIDIA GPU through the driver API (``cuda.bindings.driver``); every status is checked.

The primary context is used, as CuPy and PyTorch do, and given up rather than
reset, so that what others of this process hold in it stays theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from mmaprobe.catalog.batch import Bits
from mmaprobe.catalog.resident import CUDA, Resident
from mmaprobe.devices.cuda_calls import Calls, status_name
from mmaprobe.devices.cuda_health import Readings
from mmaprobe.devices.cuda_identity import architecture, identity
from mmaprobe.devices.cuda_machine import Machine
from mmaprobe.devices.gpu_driver import NOT_READY, StuckError, TakenError, await_end
from mmaprobe.devices.gpu_health import Health
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.toolchain.cubin import architecture_number
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import ENTRY

_UNAVAILABLE = 46
_CANNOT_LOAD = (200, 209, 218, 222, 300)


def open_driver(index: int, machine: Machine) -> CudaDriver:
    """The driver of GPU ``index``; NotHereError that says what is missing."""
    name = f"cuda:{index}"
    try:
        cuda = machine.bindings()
    except NotHereError as error:
        raise NotHereError(f"{name}: {error}") from None
    try:
        status = int(cuda.cuInit(0)[0])
    except RuntimeError as error:  # the bindings find the library in their own way
        raise NotHereError(f"{name}: the NVIDIA driver does not load: {error}") from None
    if status:
        raise NotHereError(f"{name}: {machine.refused(status_name(cuda, status), status)}")
    driver = CudaDriver(cuda, index, machine)
    count = driver.call("cuDeviceGetCount")
    if count == 0:
        raise NotHereError(f"{name}: {machine.no_device()}")
    if index >= count:
        there = "cuda:0 is the only GPU" if count == 1 else f"there are cuda:0 to cuda:{count - 1}"
        raise NotHereError(f"{name}: {there} here; see: nvidia-smi -L")
    driver.find()
    return driver


class CudaDriver(Calls):
    """``gpu_driver.Driver`` for NVIDIA; made by ``open_driver``."""

    resident = (CUDA,)
    multiprocessor = "multiprocessor"

    def __init__(self, cuda: Any, index: int, machine: Machine) -> None:
        super().__init__(cuda, f"cuda:{index}")
        self._index, self._machine = index, machine
        self._device: Any = None
        self.architecture = ""
        self._context: Any = None
        self._event: Any = None
        self._modules: list[Any] = []
        self._memory: set[int] = set()
        self._pending = False

    def _attribute(self, name: str) -> int:
        attributes = self._cuda.CUdevice_attribute
        return int(self.call("cuDeviceGetAttribute", getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}"), self._device))

    # What it is

    def find(self) -> None:
        """Find the device and hold its architecture against the catalog; NotHereError where that has none such."""
        self._device = self.call("cuDeviceGet", self._index)
        major, minor = (self._attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        self.architecture = architecture(self.name, major, minor)

    @cached_property
    def multiprocessors(self) -> int:
        """How many multiprocessors the GPU, or the slice, has."""
        return self._attribute("MULTIPROCESSOR_COUNT")

    @property
    def exclusive(self) -> bool:
        """Whether the compute mode lets one process have a context."""
        return self._attribute("COMPUTE_MODE") == 3

    @cached_property
    def cuda_version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver serves."""
        number = int(self.call("cuDriverGetVersion"))
        return number // 1000, number % 1000 // 10

    def identity(self) -> dict[str, str]:
        """Name, UUID, architecture, driver and, where NVML tells, VBIOS, ECC and clocks as read at this moment."""
        name = bytes(self.call("cuDeviceGetName", 256, self._device)).split(b"\0")[0].decode("utf-8", "replace")
        of_slices = "cuDeviceGetUuid_v2" if hasattr(self._cuda, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"
        uuid = bytes(self.call(of_slices, self._device).bytes)
        return {
            "architecture": self.architecture,
            "model_name": name,
            **identity(self._machine.nvml(), name, uuid),
            "cuda_version": ".".join(map(str, self.cuda_version)),
            "multiprocessors": str(self.multiprocessors),
        }

    @cached_property
    def _readings(self) -> Readings:
        return Readings(self._machine, self.name, self.identity()["uuid"])

    def health(self) -> Health:
        """A reading by NVML, empty where that is not here; LostError where it finds the GPU lost."""
        return self._readings.read(computing=self._context is not None)

    def siblings(self) -> list[str]:
        """The names of all GPUs here."""
        return [f"cuda:{index}" for index in range(self.call("cuDeviceGetCount"))]

    # A context

    def start(self) -> None:
        """A context, unless there is one; StuckError while a launch of before still runs in it."""
        if self._pending:
            self._await_the_old()
        if self._context is not None:
            return
        status, context = self._cuda.cuDevicePrimaryCtxRetain(self._device)
        if int(status) == _UNAVAILABLE:
            raise TakenError(f"{self.name}: {self._taken()}")
        if int(status):
            raise self.failure("cuDevicePrimaryCtxRetain", int(status))
        self._context = context
        with self.current():
            self._event = self.call("cuEventCreate", int(self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING))

    def _taken(self) -> str:
        mode = self._attribute("COMPUTE_MODE")
        if mode == 3:
            return (
                "compute mode Exclusive_Process, and another process has the GPU; "
                "see: nvidia-smi --query-compute-apps=pid,name --format=csv"
            )
        if mode == 2:
            return "compute mode Prohibited: nobody may compute on it; an administrator types: nvidia-smi -c DEFAULT"
        return "the GPU is unavailable; see: nvidia-smi -q, dmesg"

    def _await_the_old(self) -> None:
        """Give up the context of a launch that hung, once it has ended."""
        self.stop()
        if self._pending:
            raise StuckError(
                f"{self.name}: a launch that hung still runs; end this process, see that it is gone: nvidia-smi; "
                "then the same command with --resume goes on"
            )

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """The context current in this thread; afterwards what was so before."""
        self.call("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self._cuda.cuCtxPopCurrent()

    def stop(self) -> None:
        """Give up the context with what it holds; one in which a launch still runs is kept until that ends."""
        if self._context is None:
            return
        cuda = self._cuda
        cuda.cuCtxPushCurrent(self._context)
        if self._pending and int(cuda.cuEventQuery(self._event)[0]) == NOT_READY:
            cuda.cuCtxPopCurrent()
            return
        for address in self._memory:
            cuda.cuMemFree(address)
        for module in self._modules:
            cuda.cuModuleUnload(module)
        if self._event is not None:
            cuda.cuEventDestroy(self._event)
        cuda.cuCtxPopCurrent()
        cuda.cuDevicePrimaryCtxRelease(self._device)
        self._memory.clear()
        self._modules.clear()
        self._context = self._event = None
        self._pending = False

    # Memory

    def settle(self, array: Resident) -> None:
        """Wait for the array's stream; UsageError where it lies on another GPU."""
        attribute = self._cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        where = int(self.call("cuPointerGetAttribute", attribute, array.address))
        if where != self._index:
            raise UsageError(f"an operand lies on cuda:{where}; move it to {self.name}, or open cuda:{where}")
        if array.stream is not None:
            self.call("cuStreamSynchronize", array.stream)

    def room(self) -> int:
        """Free bytes."""
        return int(self.call("cuMemGetInfo")[0])

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes (of one byte where none are wanted)."""
        address = int(self.call("cuMemAlloc", max(size, 1)))
        self._memory.add(address)
        return address

    def release(self, address: int) -> None:
        """Free an allocation."""
        self._memory.discard(address)
        self.call("cuMemFree", address)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set bytes."""
        self.call("cuMemsetD8", address, byte, size)

    def copy_in(self, address: int, array: Bits) -> None:
        """Copy a contiguous array to the device."""
        if array.size:
            self.call("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)

    def copy_out(self, array: Bits, address: int) -> None:
        """Copy from the device into a contiguous array."""
        if array.size:
            self.call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    # Kernels

    def load(self, kernel: Kernel) -> Any:
        """The kernel's function, its binary held against this GPU; NotHereError where the driver is too old for it."""
        number = architecture_number(kernel.binary)
        if kernel.architecture != self.architecture or f"sm_{number}" != self.architecture.rstrip("af"):
            raise DeviceError(
                f"{self.name} is {self.architecture}, but the kernel of {kernel.instruction} was made for "
                f"{kernel.architecture} and its binary is for sm_{number}"
            )
        made = re.search(r"(\d+)\.\d+", kernel.toolchain)
        if made and int(made[1]) > self.cuda_version[0]:
            raise NotHereError(self._too_old(kernel))
        status, module = self._cuda.cuModuleLoadData(kernel.binary)
        if int(status) in _CANNOT_LOAD:
            raise NotHereError(f"{self._too_old(kernel)} ({status_name(self._cuda, int(status))})")
        if int(status):
            raise self.failure("cuModuleLoadData", int(status))
        self._modules.append(module)
        function = self.call("cuModuleGetFunction", module, ENTRY.encode())
        if kernel.shared:
            attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, attribute, kernel.shared)
        return function

    def _too_old(self, kernel: Kernel) -> str:
        serves = ".".join(map(str, self.cuda_version))
        return (
            f"{self.name}: the driver serves CUDA {serves} and cannot load {kernel.instruction}, "
            f"made by {kernel.toolchain}; update the driver, or pip install 'mmaprobe[cuda{self.cuda_version[0]}]'"
        )

    def launch(self, function: Any, kernel: Kernel, groups: int, operands: bytes, done: int) -> None:
        """Start ``groups`` CTAs of the kernel on its two parameters."""
        given = ctypes.create_string_buffer(operands, len(operands))
        counter = ctypes.c_uint64(done)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(counter))
        config = self._cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = groups, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = kernel.threads * kernel.groups, 1, 1
        config.sharedMemBytes = kernel.shared
        if kernel.cluster > 1:
            attribute = self._cuda.CUlaunchAttribute()
            attribute.id = self._cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            size = attribute.value.clusterDim
            size.x, size.y, size.z = kernel.cluster, 1, 1
            config.attrs, config.numAttrs = [attribute], 1
        self._pending = True
        self.call("cuLaunchKernelEx", config, function, ctypes.addressof(parameters), 0)
        self.call("cuEventRecord", self._event, 0)

    def wait(self, seconds: float) -> None:
        """Until the launch has ended; HungError after ``seconds``."""
        status = await_end(self.name, lambda: int(self._cuda.cuEventQuery(self._event)[0]), seconds)
        self._pending = False
        if status:
            raise self.failure("cuEventQuery", status)
