"""Where a CUDA device's memory comes from: CuPy's allocator where CuPy is installed, else the driver.

From CuPy's pool the limit that a user set (``CUPY_GPU_MEMORY_LIMIT``) holds for what this package allocates, and what
the pool keeps of earlier work is used instead of more.  CuPy is imported when the first memory is asked for.
"""

from __future__ import annotations

from typing import Any, Protocol

from mmaprobe.devices.gpu.driver import OutOfMemoryError
from mmaprobe.devices.nvidia.calls import Calls


class Memory(Protocol):
    """Memory of one GPU, whose context is current."""

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes; OutOfMemoryError."""
        ...

    def release(self, address: int) -> None:
        """Give an allocation back."""
        ...

    def room(self, free: int) -> int:
        """How much may be allocated while the driver has ``free`` bytes."""
        ...

    def forget(self) -> None:
        """Give everything back; never raises."""
        ...


class DriverMemory:
    """``cuMemAlloc`` and ``cuMemFree``."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._held: set[int] = set()

    def allocate(self, size: int) -> int:
        address = int(self._calls.call("cuMemAlloc", size))
        self._held.add(address)
        return address

    def release(self, address: int) -> None:
        self._held.discard(address)
        self._calls.call("cuMemFree", address)

    def room(self, free: int) -> int:
        return free

    def forget(self) -> None:
        for address in self._held:
            self._calls.quiet("cuMemFree", address)
        self._held.clear()


class CupyMemory:
    """CuPy's current allocator: its pool, or what a user put there.

    Memory is asked for on the default stream, on which every launch here is: a pool keeps what it gets back for the
    stream that it was asked for on.
    """

    def __init__(self, calls: Calls, cupy: Any, index: int) -> None:
        self._calls, self._cupy, self._index = calls, cupy, index
        self._held: dict[int, Any] = {}

    def allocate(self, size: int) -> int:
        cuda = self._cupy.cuda
        try:
            with cuda.Device(self._index), cuda.Stream.null:
                held = cuda.alloc(size)
        except MemoryError as error:
            said = f"{self._calls.name}: CuPy's allocator has no {size} bytes: {' '.join(str(error).split())}"
            raise OutOfMemoryError(f"{said}; see: nvidia-smi, CUPY_GPU_MEMORY_LIMIT") from error
        except cuda.runtime.CUDARuntimeError as error:
            raise self._calls.failure("CuPy's allocator", int(error.status)) from error
        self._held[int(held.ptr)] = held
        return int(held.ptr)

    def release(self, address: int) -> None:
        del self._held[address]

    def room(self, free: int) -> int:
        pool = self._cupy.get_default_memory_pool()
        free, limit = free + int(pool.free_bytes()), int(pool.get_limit())
        return min(free, max(limit - int(pool.used_bytes()), 0)) if limit else free

    def forget(self) -> None:
        self._held.clear()


def memory_of(calls: Calls, module: Any, index: int, exclusive: bool) -> Memory:
    """CuPy's memory where CuPy is installed and works, else the driver's; ``module`` imports by name.

    Where one process alone may have a context it is the driver's: CuPy never gives up its own.
    """
    if exclusive:
        return DriverMemory(calls)
    try:
        cupy = module("cupy")
    except ImportError:
        return DriverMemory(calls)
    try:
        usable = not cupy.cuda.runtime.is_hip and cupy.cuda.runtime.getDeviceCount() > index
    except cupy.cuda.runtime.CUDARuntimeError:  # for a newer driver than this one
        usable = False
    return CupyMemory(calls, cupy, index) if usable else DriverMemory(calls)
