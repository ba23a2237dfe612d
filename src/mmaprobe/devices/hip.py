"""The device ``hip:N``: an AMD GPU, one kernel an instruction, compiled here by clang for its exact architecture.

Options: ``gpu_open``.
"""

from __future__ import annotations

from mmaprobe.devices.gpu import GpuDevice
from mmaprobe.devices.gpu_open import Compiled, asked, opened
from mmaprobe.devices.gpu_trial import command
from mmaprobe.devices.hip_driver import open_driver
from mmaprobe.devices.hip_machine import Machine
from mmaprobe.toolchain.hip import Clang
from mmaprobe.toolchain.kernels import kernel, kernel_of


def open_hip(argument: str, machine: Machine | None = None) -> GpuDevice:
    """GPU N in HIP's order; ``hip`` alone is ``hip:0``.

    UsageError for a wrong name or option; NotHereError in one line that says
    what is missing: ROCm, the kernel's driver, a GPU, this GPU.
    """
    what = asked("hip", argument)
    driver = open_driver(what.index, machine or Machine())
    return opened(driver, what, Compiled(kernel, kernel_of, Clang().version), command)
