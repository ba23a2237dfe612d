"""Calls of AMD's HIP library, each held against its status, and what a bad status means."""

from __future__ import annotations

import ctypes
from typing import Any

from mmaprobe.devices.gpu.driver import LostError, OutOfMemoryError
from mmaprobe.errors import DeviceError

NO_DEVICE = (100, 101)
"""Statuses of a machine without a GPU: ROCm 5.2 starts with the second and counts with the first."""
_OUT_OF_MEMORY = 2
"""hipErrorOutOfMemory."""
_LOST = {
    4: "the runtime was shut down",
    100: "the runtime sees no GPU any more",
    101: "the runtime sees it no more",
    214: "uncorrectable ECC error",
}
"""Statuses (hipError_t) after which nothing of this GPU works in this process."""


class Calls:
    """The functions of ``libamdhip64`` on behalf of a device."""

    def __init__(self, hip: Any, name: str) -> None:
        self._hip, self.name = hip, name

    def status(self, function: str, *arguments: Any) -> int:
        """What a function of the library answers."""
        return int(getattr(self._hip, function)(*arguments))

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function; DeviceError, or a class of ``gpu.driver``, naming it and its status."""
        status = self.status(function, *arguments)
        if status:
            raise self.failure(function, status)

    def number(self, function: str, *arguments: Any) -> int:
        """The int that a function writes through its first argument."""
        found = ctypes.c_int()
        self.call(function, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, function: str, *arguments: Any) -> int:
        """The pointer that a function writes through its first argument."""
        found = ctypes.c_void_p()
        self.call(function, ctypes.byref(found), *arguments)
        return found.value or 0

    def text(self, function: str, *arguments: Any) -> str:
        """The text that a function writes into a buffer."""
        held = ctypes.create_string_buffer(256)
        self.call(function, held, len(held), *arguments)
        return held.value.decode("utf-8", "replace")

    def failure(self, function: str, status: int) -> DeviceError:
        """The error of a status that is not success."""
        said = f"{self.name}: {function} answers {status_name(self._hip, status)} ({status})"
        if status == _OUT_OF_MEMORY:
            return OutOfMemoryError(f"{said}: out of memory; see who holds it: rocm-smi --showpids")
        if status in _LOST:
            return LostError(f"{said}: the device is lost: {_LOST[status]}; see: dmesg, rocm-smi")
        return DeviceError(said)


def status_name(hip: Any, status: int) -> str:
    """``hipErrorNoDevice``, as the library calls a status."""
    hip.hipGetErrorName.restype = ctypes.c_char_p
    name = hip.hipGetErrorName(status)
    return name.decode() if name else "an unknown status"
