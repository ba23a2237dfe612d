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

from mmaprobe.devices.gpu.driver import NOT_READY, StuckError, TakenError, TooOldError, await_end, stuck_if
from mmaprobe.devices.gpu.health import Health
from mmaprobe.devices.nvidia.calls import ENDS_THE_PROCESS, Calls, status_name
from mmaprobe.devices.nvidia.health import Readings
from mmaprobe.devices.nvidia.identity import architecture, identity
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.devices.nvidia.memory import DriverMemory, Memory, memory_of
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.resident import Resident
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia.cubin import architecture_number
from mmaprobe.toolchain.source import ENTRY
from mmaprobe.vendors import NVIDIA

TENSOR_MAP = 128
"""Bytes of a tensor map (CUtensorMap)."""
_UNAVAILABLE = 46
"""CUDA_ERROR_DEVICE_UNAVAILABLE."""
_CANNOT_LOAD = (200, 209, 218, 222, 300)
"""CUDA_ERROR_INVALID_IMAGE, _NO_BINARY_FOR_GPU, _INVALID_PTX, _UNSUPPORTED_PTX_VERSION, _INVALID_SOURCE."""
_LEAST = {12: 525, 13: 580}
"""The oldest drivers of major versions of CUDA (NVIDIA, CUDA Compatibility, table 1)."""


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
    """``devices.gpu.driver.Driver`` for NVIDIA; made by ``open_driver``."""

    resident = (NVIDIA.memory,)
    multiprocessor = "multiprocessor"

    def __init__(self, cuda: Any, index: int, machine: Machine) -> None:
        super().__init__(cuda, f"cuda:{index}")
        self._index, self._machine = index, machine
        self._device: Any = None
        self.architecture = ""
        self._context: Any = None
        self._event: Any = None
        self._modules: list[Any] = []
        self._memory: Memory = DriverMemory(self)
        self._pending = self._failed = False

    def failure(self, function: str, status: int) -> DeviceError:
        """The error of a status that is not success; after some, nothing more may go well in this process."""
        self._failed = self._failed or status in ENDS_THE_PROCESS
        return super().failure(function, status)

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
        """A context, unless there is one; StuckError while a launch of before still runs in it.

        StuckError, too, where one failed and CUDA answers nothing else since: giving the context up cures some
        errors, of others the driver's text says that the process must end.
        """
        if self._pending:
            self._await_the_old()
        if self._context is None:
            with stuck_if(self._failed, "CUDA"):
                self._retain()

    def _retain(self) -> None:
        """A context and an event in it, which is asked once: that brings out what failed in a context of others."""
        status, context = self._cuda.cuDevicePrimaryCtxRetain(self._device)
        if int(status) == _UNAVAILABLE:
            raise TakenError(f"{self.name}: {self._taken()}")
        if int(status):
            raise self.failure("cuDevicePrimaryCtxRetain", int(status))
        self._context = context
        self._memory = memory_of(self, self._machine.module, self._index, self.exclusive)
        with self.current():
            self._event = self.call("cuEventCreate", int(self._cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING))
            self.call("cuEventQuery", self._event)

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
        self._memory.forget()
        for module in self._modules:
            cuda.cuModuleUnload(module)
        if self._event is not None:
            cuda.cuEventDestroy(self._event)
        cuda.cuCtxPopCurrent()
        cuda.cuDevicePrimaryCtxRelease(self._device)
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
        """Bytes that may be allocated."""
        return self._memory.room(int(self.call("cuMemGetInfo")[0]))

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes (of one byte where none are wanted)."""
        return self._memory.allocate(max(size, 1))

    def release(self, address: int) -> None:
        """Free an allocation."""
        self._memory.release(address)

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
        if reason := self.unserved(kernel.toolchain):
            raise TooOldError(f"{kernel.instruction}: {reason}")
        status, module = self._cuda.cuModuleLoadData(kernel.binary)
        if int(status) in _CANNOT_LOAD:
            raise self._unloadable(kernel, int(status))
        if int(status):
            raise self.failure("cuModuleLoadData", int(status))
        self._modules.append(module)
        function = self.call("cuModuleGetFunction", module, ENTRY.encode())
        if kernel.shared:
            attribute = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, attribute, kernel.shared)
        return function

    def tensor_map(self, address: int, shape: tuple[int, int], box: tuple[int, int]) -> bytes:
        """What a tensor copy is told of a matrix of 16-bit elements, by rows: boxes whose rows are 128 bytes, swizzled,
        with zeros beyond the matrix."""
        cuda = self._cuda
        (rows, columns), (high, wide) = shape, box
        made = self.call(
            "cuTensorMapEncodeTiled",
            cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT16,
            2,
            address,
            [cuda.cuuint64_t(columns), cuda.cuuint64_t(rows)],
            [cuda.cuuint64_t(2 * columns)],
            [cuda.cuuint32_t(wide), cuda.cuuint32_t(high)],
            [cuda.cuuint32_t(1)] * 2,
            cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return ctypes.string_at(int(made.getPtr()), TENSOR_MAP)

    def unserved(self, toolchain: str, binary: bytes = b"") -> str:
        """Empty where the toolchain is of the driver's major version of CUDA or an older one.

        Binaries, unlike PTX, load on any driver of the same major version (NVIDIA, CUDA Compatibility: minor version
        compatibility, from CUDA 11 on) and on every newer one.
        """
        made, serves = _version(toolchain), self.cuda_version
        if made[0] <= serves[0]:
            return ""
        least = f" to {_LEAST[made[0]]} or newer" if made[0] in _LEAST else ""
        other = f", or pip install 'mmaprobe[cuda{serves[0]}]' in an environment of its own" if serves[0] >= 12 else ""
        return (
            f"{self.name}: the driver serves CUDA {serves[0]}.{serves[1]} and loads no kernel made by {toolchain}; "
            f"update the driver{least}{other}"
        )

    def _unloadable(self, kernel: Kernel, status: int) -> NotHereError:
        """The error of a binary that the driver refuses; of a newer toolchain it refuses the others as well."""
        serves = ".".join(map(str, self.cuda_version))
        said = (
            f"{self.name}: the driver serves CUDA {serves} and cannot load {kernel.instruction}, made by "
            f"{kernel.toolchain} ({status_name(self._cuda, status)}); update the driver"
        )
        if _version(kernel.toolchain) <= self.cuda_version:
            return NotHereError(f"{said}, or make the kernel anew")
        wheel = "nvidia-cuda-nvrtc-cu12" if self.cuda_version[0] == 12 else "nvidia-cuda-nvrtc"
        return TooOldError(
            f"{said}, or make the kernels by a compiler of CUDA {serves}: pip install '{wheel}=={serves}.*', or with "
            f"its nvcc: mmaprobe compile --arch {self.architecture} --compiler PATH --out FOLDER"
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
        self._pending = self._failed = True
        self.call("cuLaunchKernelEx", config, function, ctypes.addressof(parameters), 0)
        self.call("cuEventRecord", self._event, 0)

    def wait(self, seconds: float) -> None:
        """Until the launch has ended; HungError after ``seconds``."""
        status = await_end(self.name, lambda: int(self._cuda.cuEventQuery(self._event)[0]), seconds)
        self._pending = False
        if status:
            raise self.failure("cuEventQuery", status)
        self._failed = False


def _version(toolchain: str) -> tuple[int, int]:
    """(13, 5) of ``NVRTC 13.5``; zeros of what tells none."""
    found = re.search(r"(\d+)\.(\d+)", toolchain)
    return (int(found[1]), int(found[2])) if found else (0, 0)
