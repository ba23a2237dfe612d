"""The device ``cuda:N``: an NVIDIA GPU, one kernel an instruction, compiled here for its exact architecture.

``cuda:0?pack=FOLDER&timeout=SECONDS&trial=no``: kernels come from a ``pack`` (``mmaprobe
compile --out``) instead, and no compiler is needed; ``timeout`` (60) bounds each launch and the
first run of each instruction in a child process, which ``trial=no`` leaves out.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from mmaprobe.devices.cuda_driver import open_driver
from mmaprobe.devices.cuda_machine import Machine
from mmaprobe.devices.gpu import GpuDevice, Kernels, Shelf, Sources
from mmaprobe.devices.gpu_trial import ChildTrial, command
from mmaprobe.devices.options import number, split_options
from mmaprobe.errors import UsageError
from mmaprobe.toolchain import nvrtc
from mmaprobe.toolchain.kernels import kernel, kernel_of
from mmaprobe.toolchain.pack import open_pack

OPTIONS = ("pack", "timeout", "trial")


def open_cuda(argument: str, machine: Machine | None = None) -> GpuDevice:
    """GPU N in CUDA's order; ``cuda`` alone is ``cuda:0``.

    UsageError for a wrong name or option; NotHereError in one line that says
    what is missing: driver, bindings, a GPU, this GPU.
    """
    target, options = split_options(argument, OPTIONS)
    if not (target or "0").isdecimal():
        raise UsageError(f"cuda:{argument}: GPUs are named by number, such as cuda:0; see: mmaprobe devices")
    if options.get("trial", "yes") not in ("yes", "no"):
        raise UsageError(f"cuda:{argument}: option trial={options['trial']} must be yes or no")
    seconds = number(options, "timeout", 60, 0.001, 1e6)
    driver = open_driver(int(target or 0), machine or Machine())
    tried = options.get("trial") != "no"
    child = command(f"{driver.name}?" + "&".join(f"{k}={quote(v)}" for k, v in {**options, "trial": "no"}.items()))
    trial = ChildTrial(driver.name, child, seconds + 30) if tried else None
    kernels, sources, shelf = _kernels(options.get("pack", ""), driver.architecture)
    return GpuDevice(driver, kernels, trial, seconds, sources, shelf)


def _kernels(pack: str, architecture: str) -> tuple[Kernels, Sources, Shelf]:
    """Compiled here, or those of a pack; UsageError where that is for another architecture."""
    if not pack:
        return kernel, kernel_of, Shelf(toolchain=lambda: {"kernels": nvrtc.version()})
    held = open_pack(Path(pack))
    if held.architecture != architecture:
        raise UsageError(
            f"the pack {pack} is for {held.architecture}, this GPU is {architecture}; "
            f"mmaprobe compile --arch {architecture} --out FOLDER makes one for it"
        )
    advice = f"not in the pack {pack}; mmaprobe compile --arch {architecture} --variants --out {pack} adds it"
    shelf = Shelf(held.kernels, lambda: {"kernels": held.toolchain}, advice)
    return lambda instruction, _: held.kernel(instruction.id), held.campaign, shelf
