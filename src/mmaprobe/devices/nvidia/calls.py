"""Calls of NVIDIA's driver, each held against its status, and what a bad status means."""

from __future__ import annotations

from typing import Any

from mmaprobe.devices.gpu.driver import LostError, OutOfMemoryError
from mmaprobe.errors import DeviceError

_OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""
_LOST = {
    4: "the driver was shut down",
    46: "it is unavailable",
    100: "the driver sees no GPU any more",
    101: "the driver sees it no more",
    214: "uncorrectable ECC error",
    220: "uncorrectable NVLink error",
    999: "the driver does not know why; a GPU fallen off the bus looks so",
}
"""Statuses (CUresult) after which no context of this GPU works."""
ENDS_THE_PROCESS = frozenset({226, 700, 702, *range(714, 720), 721, 911})
"""Statuses of which the driver's text says that the process must be terminated and relaunched to go on with CUDA."""


def status_name(cuda: Any, status: int) -> str:
    """``CUDA_ERROR_ILLEGAL_ADDRESS``, as the bindings call a status."""
    try:
        return str(cuda.CUresult(status).name)
    except ValueError:
        return "an unknown status"


class Calls:
    """The functions of ``cuda.bindings.driver`` on behalf of a device."""

    def __init__(self, cuda: Any, name: str) -> None:
        self._cuda, self.name = cuda, name

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of the driver gives; DeviceError, or a class of ``gpu.driver``, naming it and its status."""
        status, *results = getattr(self._cuda, function)(*arguments)
        if int(status):
            raise self.failure(function, int(status))
        return results[0] if len(results) == 1 else tuple(results)

    def quiet(self, function: str, *arguments: Any) -> None:
        """Call a function whatever it answers."""
        getattr(self._cuda, function)(*arguments)

    def failure(self, function: str, status: int) -> DeviceError:
        """The error of a status that is not success."""
        said = f"{self.name}: {function} answers {status_name(self._cuda, status)} ({status})"
        if status == _OUT_OF_MEMORY:
            return OutOfMemoryError(f"{said}: out of memory; see who holds it: nvidia-smi")
        if status in _LOST:
            return LostError(f"{said}: the device is lost: {_LOST[status]}; see: dmesg, nvidia-smi -q")
        return DeviceError(said)
