"""The device ``hip:N``: an AMD GPU, one kernel an instruction, compiled here for its exact architecture.

Options: ``devices.gpu.opening``.
"""

from __future__ import annotations

from mmaprobe.devices.amd.driver import open_driver
from mmaprobe.devices.amd.machine import Machine
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.opening import Compiled, asked, opened
from mmaprobe.devices.gpu.trial import command
from mmaprobe.toolchain.kernel_cache import kernel, kernel_of
from mmaprobe.toolchain.vendors import compiler_for


def open_hip(argument: str, machine: Machine | None = None) -> GpuDevice:
    """GPU N in HIP's order; ``hip`` alone is ``hip:0``.

    UsageError for a wrong name or option; NotHereError in one line that says
    what is missing: ROCm, the kernel's driver, a GPU, this GPU.
    """
    what = asked("hip", argument)
    driver = open_driver(what.index, machine or Machine())
    here = Compiled(kernel, kernel_of, lambda: compiler_for(driver.architecture).version())
    return opened(driver, what, here, command)
