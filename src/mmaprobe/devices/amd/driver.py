"""One AMD GPU through HIP's C interface; every status is checked.

HIP has no contexts to give up: what stands for one is an event, modules and
memory of this process.  A kernel that touches what it may not ends the whole
process (ROCm's runtime aborts); its first run is in a child for that reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
from collections.abc import Iterator
from functools import cached_property

from mmaprobe.catalog.lookup import architectures
from mmaprobe.devices.amd.calls import NO_DEVICE, Calls, status_name
from mmaprobe.devices.amd.emulator import below_hip
from mmaprobe.devices.amd.health import Readings
from mmaprobe.devices.amd.machine import OVERRIDE, UNREAD, ListedGpu, Machine
from mmaprobe.devices.gpu.driver import NOT_READY, StuckError, TooOldError, await_end, stuck_if
from mmaprobe.devices.gpu.health import Health
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence import silicon
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.resident import Resident
from mmaprobe.toolchain.amd.clang import INSTALL
from mmaprobe.toolchain.amd.code_object import code_object_version, target
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import ENTRY
from mmaprobe.vendors import AMD

LOG = logging.getLogger("mmaprobe")
_CANNOT_LOAD = (200, 209, 218)
"""hipErrorInvalidImage, hipErrorNoBinaryForGpu, hipErrorInvalidKernelFile."""
_FIRST = {6: (6, 3)}
"""The first ROCm that loads a version of code objects, where an older one is still met (LLVM, pull request 130963)."""
_TO_DEVICE = 1
"""hipMemcpyHostToDevice."""
_TO_HOST = 2
"""hipMemcpyDeviceToHost."""
_DEVICE_ORDINAL = 9
"""HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: a number, not a field of a structure; the same since ROCm 5.0."""
_WITHOUT_TIMES = 2
"""hipEventDisableTiming."""


def open_driver(index: int, machine: Machine) -> HipDriver:
    """The driver of GPU ``index``; NotHereError that says what is missing."""
    name = f"hip:{index}"
    try:
        hip = machine.hip()
    except NotHereError as error:
        raise NotHereError(f"{name}: {error}") from None
    driver = HipDriver(hip, index, machine)
    count = ctypes.c_int()
    status = driver.status("hipInit", 0) or driver.status("hipGetDeviceCount", ctypes.byref(count))
    if status in NO_DEVICE or (not status and not count.value):
        raise NotHereError(f"{name}: {machine.no_device()}")
    if status:
        raise NotHereError(f"{name}: ROCm does not start: {status_name(hip, status)} ({status}); see: rocminfo, dmesg")
    if index >= count.value:
        there = "hip:0 is the only GPU" if count.value == 1 else f"there are hip:0 to hip:{count.value - 1}"
        raise NotHereError(f"{name}: {there} here; see: rocminfo")
    driver.find()
    return driver


class HipDriver(Calls):
    """``devices.gpu.driver.Driver`` for AMD; made by ``open_driver``."""

    resident = (AMD.memory,)
    exclusive = False
    multiprocessor = "compute unit"

    def __init__(self, hip: object, index: int, machine: Machine) -> None:
        super().__init__(hip, f"hip:{index}")
        self._index, self._machine = index, machine
        self.architecture = ""
        self._node = ListedGpu("", "", 0, "")
        self._event = 0
        self._modules: list[int] = []
        self._memory: set[int] = set()
        self._pending = self._failed = False

    # What it is

    def find(self) -> None:
        """Find the GPU among those of the kernel's driver, and its architecture in the catalog; NotHereError if not."""
        place = self.text("hipDeviceGetPCIBusId", self._index).lower()
        found = [node for node in self._machine.nodes() if node.place == place]
        if not found:
            raise NotHereError(f"{self.name}: the kernel's driver lists no GPU at {place}; see: rocminfo")
        self._node = found[0]
        self.architecture = self._machine.overridden() or self._node.architecture
        if self.architecture != self._node.architecture:
            LOG.warning("%s is %s; %s makes it %s", self.name, self._node.architecture, OVERRIDE, self.architecture)
        if self.architecture not in architectures():
            known = ", ".join(filter(AMD.makes, architectures()))
            raise NotHereError(f"{self.name}: {self.architecture} has none of the catalog's matrix units ({known})")

    @property
    def multiprocessors(self) -> int:
        """How many compute units there are."""
        return max(self._node.units, 1)

    @cached_property
    def _version(self) -> tuple[int, int]:
        number = self.number("hipRuntimeGetVersion")
        return number // 10_000_000, number // 100_000 % 100

    @property
    def rocm_version(self) -> str:
        """``6.2``: the version of HIP's runtime."""
        return ".".join(map(str, self._version))

    def identity(self) -> dict[str, str]:
        """Name, number of the chip, architecture, versions of the drivers, VBIOS where the kernel tells, the emulator
        where one is seen."""
        text = self._machine.text
        given = self._machine.environment.get(OVERRIDE, "")
        below = below_hip(self._machine.environment, text("/proc/self/maps"))
        return {
            "architecture": self.architecture,
            **({silicon.KEY: below} if below else {}),
            "model_name": self.text("hipDeviceGetName", self._index),
            "uuid": f"GPU-{self._node.chip}",
            "driver": text("/sys/module/amdgpu/version") or text("/proc/sys/kernel/osrelease") or UNREAD,
            "vbios": text(f"/sys/bus/pci/devices/{self._node.place}/vbios_version") or UNREAD,
            "rocm_version": self.rocm_version,
            "multiprocessors": str(self.multiprocessors),
            **({"hsa_override_gfx_version": f"{given} on {self._node.architecture}"} if given else {}),
        }

    @cached_property
    def _readings(self) -> Readings:
        return Readings(self._machine, self.name, self._node)

    def health(self) -> Health:
        """A reading of the kernel's driver; LostError where the GPU's files have gone."""
        return self._readings.read(computing=bool(self._event))

    def siblings(self) -> list[str]:
        """The names of all GPUs here."""
        return [f"hip:{index}" for index in range(self.number("hipGetDeviceCount"))]

    # What stands for a context

    def start(self) -> None:
        """An event to wait for, unless there is one; StuckError while a launch of before still runs."""
        if self._pending:
            self.stop()
        if self._pending:
            raise StuckError(
                f"{self.name}: a launch that hung still runs; end this process, see that it is gone: rocm-smi "
                "--showpids; then the same command with --resume goes on"
            )
        if not self._event:
            with stuck_if(self._failed, "ROCm"), self.current():
                self._event = self.handle("hipEventCreateWithFlags", _WITHOUT_TIMES)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """This GPU current in this thread; afterwards the one before."""
        before = self.number("hipGetDevice")
        self.call("hipSetDevice", self._index)
        try:
            yield
        finally:
            self.status("hipSetDevice", before)

    def stop(self) -> None:
        """Give up memory, modules and event; all are kept while a launch still runs."""
        if self._pending and self.status("hipEventQuery", _pointer(self._event)) == NOT_READY:
            return
        for address in self._memory:
            self.status("hipFree", _pointer(address))
        for module in self._modules:
            self.status("hipModuleUnload", _pointer(module))
        if self._event:
            self.status("hipEventDestroy", _pointer(self._event))
        self._memory.clear()
        self._modules.clear()
        self._event, self._pending = 0, False

    # Memory

    def settle(self, array: Resident) -> None:
        """Wait for the array's stream; UsageError where it lies on another GPU, or on none of AMD's."""
        where = ctypes.c_int(-1)
        if self.status("hipPointerGetAttribute", ctypes.byref(where), _DEVICE_ORDINAL, _pointer(array.address)):
            raise UsageError(f"{self.name}: an operand lies where HIP knows no memory; copy it to the host first")
        if where.value != self._index:
            raise UsageError(f"an operand lies on hip:{where.value}; move it to {self.name}, or open hip:{where.value}")
        if array.stream is not None:
            self.call("hipStreamSynchronize", _pointer(array.stream))

    def room(self) -> int:
        """Free bytes."""
        free, whole = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("hipMemGetInfo", ctypes.byref(free), ctypes.byref(whole))
        return free.value

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes (of one byte where none are wanted)."""
        address = self.handle("hipMalloc", ctypes.c_size_t(max(size, 1)))
        self._memory.add(address)
        return address

    def release(self, address: int) -> None:
        """Free an allocation."""
        self._memory.discard(address)
        self.call("hipFree", _pointer(address))

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set bytes."""
        self.call("hipMemset", _pointer(address), byte, ctypes.c_size_t(size))

    def copy_in(self, address: int, array: Bits) -> None:
        """Copy a contiguous array to the device."""
        self._copy(address, array.ctypes.data, array.nbytes, _TO_DEVICE)

    def copy_out(self, array: Bits, address: int) -> None:
        """Copy from the device into a contiguous array."""
        self._copy(array.ctypes.data, address, array.nbytes, _TO_HOST)

    def _copy(self, to: int, start: int, size: int, kind: int) -> None:
        if size:
            self.call("hipMemcpy", _pointer(to), _pointer(start), ctypes.c_size_t(size), kind)

    # Kernels

    def load(self, kernel: Kernel) -> int:
        """The kernel's function, its code object held against this GPU; NotHereError where ROCm cannot load it."""
        made = target(kernel.binary)
        if {kernel.architecture, made} != {self.architecture}:
            raise DeviceError(
                f"{self.name} is {self.architecture}, but the kernel of {kernel.instruction} was made for "
                f"{kernel.architecture} and its code object is for {made}"
            )
        module = ctypes.c_void_p()
        if reason := self.unserved(kernel.toolchain, kernel.binary):
            raise TooOldError(f"{kernel.instruction}: {reason}")
        status = self.status("hipModuleLoadData", ctypes.byref(module), kernel.binary)
        if status in _CANNOT_LOAD:
            raise TooOldError(
                f"{self.name}: ROCm {self.rocm_version} cannot load {kernel.instruction}, made by {kernel.toolchain} "
                f"for {made} ({status_name(self._hip, status)}); update ROCm"
            )
        if status:
            raise self.failure("hipModuleLoadData", status)
        self._modules.append(module.value or 0)
        return self.handle("hipModuleGetFunction", module, ENTRY.encode())

    def unserved(self, toolchain: str, binary: bytes = b"") -> str:
        """Empty but for a code object of a version that came after this ROCm; clang makes the older one here."""
        version = code_object_version(binary)
        first = _FIRST.get(version, (0, 0))
        if self._version >= first:
            return ""
        return (
            f"{self.name}: ROCm {self.rocm_version} loads no code object of version {version}, as {toolchain} makes "
            f"them; update ROCm to {first[0]}.{first[1]} or newer, or make them with clang: {INSTALL}"
        )

    def launch(self, function: int, kernel: Kernel, groups: int, operands: bytes, done: int) -> None:
        """Start ``groups`` workgroups of the kernel on its two parameters."""
        given = ctypes.create_string_buffer(operands, len(operands))
        counter = ctypes.c_uint64(done)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(given), ctypes.addressof(counter))
        grid = (groups, 1, 1, kernel.threads * kernel.groups, 1, 1, kernel.shared)
        self._pending = self._failed = True
        self.call("hipModuleLaunchKernel", _pointer(function), *grid, None, parameters, None)
        self.call("hipEventRecord", _pointer(self._event), None)

    def wait(self, seconds: float) -> None:
        """Until the launch has ended; HungError after ``seconds``."""
        status = await_end(self.name, lambda: self.status("hipEventQuery", _pointer(self._event)), seconds)
        self._pending = False
        if status:
            raise self.failure("hipEventQuery", status)
        self._failed = False


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)
