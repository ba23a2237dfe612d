"""The device ``cuda:N``: an NVIDIA GPU, one kernel an instruction, compiled here for its exact architecture.

Options: ``devices.gpu.opening``.
"""

from __future__ import annotations

from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.opening import Compiled, asked, opened
from mmaprobe.devices.gpu.trial import command
from mmaprobe.devices.nvidia.driver import open_driver
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.toolchain.kernel_cache import kernel, kernel_of
from mmaprobe.toolchain.nvidia import nvrtc


def open_cuda(argument: str, machine: Machine | None = None) -> GpuDevice:
    """GPU N in CUDA's order; ``cuda`` alone is ``cuda:0``.

    UsageError for a wrong name or option; NotHereError in one line that says
    what is missing: driver, bindings, a GPU, this GPU.
    """
    what = asked("cuda", argument)
    driver = open_driver(what.index, machine or Machine())
    return opened(driver, what, Compiled(kernel, kernel_of, nvrtc.version), command)
