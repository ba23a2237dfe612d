"""What a machine has of AMD's software, and why there is no GPU where there is none: one line each.

The HIP library is opened when it is first needed, whatever its version: one installation of mmaprobe meets ROCm 5, 6
and 7, and a machine without any.  What a GPU is comes from the kernel's driver (``/sys/class/kfd``), not from HIP's
structures, whose fields move from version to version.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import rocm_libraries

KFD, NODES = "/dev/kfd", "/sys/class/kfd/kfd/topology/nodes"
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_VISIBLE = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
UNREAD = "not read"


def _library() -> Any:
    """The HIP library; None where none is installed."""
    return rocm_libraries.opened("libamdhip64")


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _entries(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


@dataclass(frozen=True)
class ListedGpu:
    """A GPU as the kernel's driver lists it: architecture, place on the bus, compute units, number of the chip, and the
    ``number`` by which the driver calls it."""

    architecture: str
    place: str
    units: int
    chip: str
    number: str = ""


@dataclass(frozen=True)
class Machine:
    """Where the library and facts about the machine come from; a test puts others there."""

    library: Callable[[], Any] = _library
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    exists: Callable[[str], bool] = os.path.exists
    usable: Callable[[str], bool] = lambda path: os.access(path, os.R_OK | os.W_OK)
    text: Callable[[str], str] = _text
    entries: Callable[[str], list[str]] = _entries

    def hip(self) -> Any:
        """The library; NotHereError where there is none."""
        found = self.library()
        if found is None:
            raise NotHereError(
                "no ROCm: libamdhip64.so is neither where the loader looks nor in ROCM_PATH or /opt/rocm; install "
                "AMD's, or Debian's: apt-get install libamdhip64-5"
            )
        return found

    def no_device(self) -> str:
        """Why HIP, which is here, has no device."""
        for name in _VISIBLE:
            value = self.environment.get(name)
            if value is not None and value.strip() in ("", "-1"):
                return f"{name}={value!r} hides every GPU; type: unset {name}"
        if not self.exists(KFD):
            return (
                f"ROCm's runtime is here but no AMD GPU is ({KFD} is missing); on a host with one load amdgpu, "
                "in a container start it with `docker run --device /dev/kfd --device /dev/dri`"
            )
        if not self.usable(KFD):
            return f"{KFD} may not be opened; add yourself to its groups: usermod -a -G render,video $USER"
        visible = next((name for name in _VISIBLE if self.environment.get(name)), "")
        if visible:
            return f"{visible}={self.environment[visible]!r} names no GPU of this machine; see: rocminfo"
        return "the kernel's driver is here but has no GPU for computing; see: rocminfo, dmesg"

    def nodes(self) -> list[ListedGpu]:
        """The GPUs that the kernel's driver lists."""
        found = []
        for entry in self.entries(NODES):
            pairs = (line.partition(" ") for line in self.text(f"{NODES}/{entry}/properties").splitlines())
            numbers = {name: int(value) for name, _, value in pairs if value.strip().isdecimal()}
            if numbers.get("gfx_target_version"):
                found.append(replace(_node(numbers), number=self.text(f"{NODES}/{entry}/gpu_id")))
        return found

    def overridden(self) -> str:
        """The architecture that HSA_OVERRIDE_GFX_VERSION puts in place of the GPU's own; empty where it is not set."""
        given = self.environment.get(OVERRIDE, "")
        if not given:
            return ""
        parts = given.split(".")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise NotHereError(f"{OVERRIDE}={given!r} is no version such as 11.0.0; type: unset {OVERRIDE}")
        return _gfx(*map(int, parts))


def _gfx(major: int, minor: int, stepping: int) -> str:
    return f"gfx{major}{minor:x}{stepping:x}"


def _node(numbers: Mapping[str, int]) -> ListedGpu:
    """Source: Linux, amdkfd's topology: 90402 is gfx942, 90010 gfx90a; location_id is bus, device and function."""
    version, location = numbers["gfx_target_version"], numbers.get("location_id", 0)
    place = f"{numbers.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7:x}"
    units = numbers.get("simd_count", 0) // max(numbers.get("simd_per_cu", 1), 1)
    chip = f"{numbers.get('unique_id', 0):016x}"
    return ListedGpu(_gfx(version // 10000, version // 100 % 100, version % 100), place, units, chip)
