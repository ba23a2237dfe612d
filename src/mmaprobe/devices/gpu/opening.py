"""How a GPU device is opened by its name, whoever made it: options, and where its kernels come from.

``KIND:0?pack=FOLDER&timeout=SECONDS&trial=no``: kernels come from a ``pack`` (``mmaprobe
compile --out``) instead of a compiler, or, without one, from what the package was built with;
``timeout`` (60) bounds each launch and the first run of each instruction in a child process,
which ``trial=no`` leaves out.  ``layouts=FILE``: open layouts as a run settled them, the
``steps/layouts.json`` of its evidence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from mmaprobe.devices.gpu.device import GpuDevice, KernelOrigin, Kernels, Sources
from mmaprobe.devices.gpu.driver import Driver, TooOldError
from mmaprobe.devices.gpu.trial import ChildTrial
from mmaprobe.devices.options import number, split_options
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.toolchain.pack import LIST, Pack, open_pack

OPTIONS = ("pack", "timeout", "trial", "layouts")
PACKS = Path(str(files("mmaprobe"))) / "packs"
"""Where a build with -DMMAPROBE_CUDA=ON or -DMMAPROBE_HIP=ON puts packs, a folder for each architecture."""


@dataclass(frozen=True)
class GpuRequest:
    """What a name asks for: GPU ``index``, its ``options`` as written, and the time limit in ``seconds``."""

    index: int
    options: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class Compiled:
    """How kernels are compiled on this machine, and by what (``version``)."""

    kernel: Kernels
    of_source: Sources
    version: Callable[[], str]


def asked(kind: str, argument: str) -> GpuRequest:
    """The parts of ``KIND:argument``; ``KIND`` alone is GPU 0.  UsageError for a wrong number or option."""
    target, options = split_options(argument, OPTIONS)
    if not (target or "0").isdecimal():
        raise UsageError(f"{kind}:{argument}: GPUs are named by number, such as {kind}:0; see: mmaprobe devices")
    if options.get("trial", "yes") not in ("yes", "no"):
        raise UsageError(f"{kind}:{argument}: option trial={options['trial']} must be yes or no")
    return GpuRequest(int(target or 0), options, number(options, "timeout", 60, 0.001, 1e6))


def opened(driver: Driver, what: GpuRequest, here: Compiled, command: Callable[[str], tuple[str, ...]]) -> GpuDevice:
    """The device of a driver; UsageError where the pack is for another architecture, TooOldError where the driver
    loads nothing that the compiler here makes, or made of the pack."""
    options = {**what.options, "trial": "no"}
    child = command(f"{driver.name}?" + "&".join(f"{key}={quote(value)}" for key, value in options.items()))
    tried = what.options.get("trial") != "no"
    trial = ChildTrial(driver.name, child, what.seconds + 30) if tried else None
    kernels, sources, origin = _kernels(what.options.get("pack", ""), driver.architecture, here)
    _check_age(driver, origin)
    made = GpuDevice(driver, kernels, trial, what.seconds, sources, origin)
    if "layouts" in what.options:
        made.layouts.read(Path(what.options["layouts"]))
    return made


def _check_age(driver: Driver, origin: KernelOrigin) -> None:
    """Hold the driver against what makes kernels before anything waits for one."""
    try:
        toolchain = origin.toolchain()["kernels"]
    except NotHereError:  # no compiler: said of the first kernel that is wanted
        return
    if reason := driver.unserved(toolchain, origin.sample()):
        raise TooOldError(f"{reason}{origin.anew}")


def _sample(held: Pack) -> bytes:
    """The first binary of a pack that is whole."""
    for name in held.kernels:
        with contextlib.suppress(UsageError):
            return held.kernel(name).binary
    return b""


def _shipped(architecture: str, here: Compiled) -> str:
    """The pack of an architecture in the package, where no compiler is here; empty where there is none of either."""
    folder = PACKS / architecture
    if not (folder / LIST).exists():
        return ""
    try:
        here.version()
    except NotHereError:
        return str(folder)
    return ""


def _kernels(pack: str, architecture: str, here: Compiled) -> tuple[Kernels, Sources, KernelOrigin]:
    """Those of a pack, or compiled here, or, without a compiler, of the pack that the package was built with."""
    pack = pack or _shipped(architecture, here)
    if not pack:
        return here.kernel, here.of_source, KernelOrigin(toolchain=lambda: {"kernels": here.version()})
    held = open_pack(Path(pack))
    if held.architecture != architecture:
        raise UsageError(
            f"the pack {pack} is for {held.architecture}, this GPU is {architecture}; "
            f"mmaprobe compile --arch {architecture} --out FOLDER makes one for it"
        )
    advice = f"not in the pack {pack}; mmaprobe compile --arch {architecture} --variants --out {pack} adds it"
    anew = f"; then make the pack anew: mmaprobe compile --arch {architecture} --variants --out FOLDER"
    origin = KernelOrigin(held.kernels, lambda: {"kernels": held.toolchain}, advice, lambda: _sample(held), anew)
    return lambda instruction, _: held.kernel(instruction.id), held.campaign, origin
