"""What a machine has of NVIDIA's software, and why there is no GPU where there is none: one line each."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from mmaprobe.errors import NotHereError

LIBRARY = "libcuda.so.1"
INSTALL = "pip install 'mmaprobe[cuda13]'"
_VISIBLE = "CUDA_VISIBLE_DEVICES"

_REFUSALS = {
    34: f"the {LIBRARY} found is the toolkit's stub, not a driver; take its folder out of LD_LIBRARY_PATH",
    36: "the driver is older than these bindings need; update it, or pip install 'mmaprobe[cuda12]'",
    802: "the GPUs are not ready; start the fabric manager: systemctl start nvidia-fabricmanager",
    803: f"{LIBRARY} and the kernel module are of different versions; reboot, or reload the module",
    804: "CUDA's forward-compatibility library does not serve this GPU; take it out of LD_LIBRARY_PATH",
}
"""What starting the driver may answer (CUresult), and what to do."""


def _library_is_here() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class Machine:
    """Where the driver, its bindings and facts about the machine come from; a test puts others there."""

    library: Callable[[], bool] = _library_is_here
    module: Callable[[str], Any] = import_module
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    exists: Callable[[str], bool] = os.path.exists
    text: Callable[[str], str] = _text

    @property
    def wsl(self) -> bool:
        """Whether Linux runs under Windows."""
        return "microsoft" in self.text("/proc/version").lower()

    @property
    def container(self) -> bool:
        """Whether this is a container."""
        return self.exists("/.dockerenv") or self.exists("/run/.containerenv")

    def bindings(self) -> Any:
        """``cuda.bindings.driver``; NotHereError where driver or bindings are not installed."""
        if not self.library():
            raise NotHereError(self._no_driver())
        try:
            return self.module("cuda.bindings.driver")
        except ImportError as error:
            raise NotHereError(f"cuda-core and its bindings are not installed ({error}): {INSTALL}") from None

    def nvml(self) -> Any:
        """``cuda.bindings.nvml``, or None."""
        try:
            return self.module("cuda.bindings.nvml")
        except ImportError:
            return None

    def _no_driver(self) -> str:
        if self.wsl:
            return (
                f"WSL without {LIBRARY}: install NVIDIA's driver in Windows (none in Linux), then type: wsl --shutdown"
            )
        if self.exists("/dev/nvidiactl"):
            return f"the GPU's device nodes are here but {LIBRARY} is not; install or mount the driver's libraries"
        if self.container:
            return (
                f"no NVIDIA driver ({LIBRARY}) in this container; on a GPU host start it with "
                "`docker run --gpus all` or `podman run --device nvidia.com/gpu=all`"
            )
        return f"no NVIDIA driver ({LIBRARY}); run on a machine with one; `mmaprobe doctor` says what is here"

    def no_device(self) -> str:
        """Why a driver that is here has no device."""
        visible = self.environment.get(_VISIBLE)
        if visible is not None and visible.strip() in ("", "-1", "NoDevFiles"):
            return f"{_VISIBLE}={visible!r} hides every GPU; type: unset {_VISIBLE}"
        if self._mig_without_slice():
            return "MIG is on but there is no slice of a GPU; list profiles and make one: nvidia-smi mig -lgip"
        if visible is not None:
            return f"{_VISIBLE}={visible!r} names no GPU of this machine; see: nvidia-smi -L"
        if self.container and not self.exists("/dev/nvidia0"):
            return (
                "the driver is in this container but no GPU is; start it with "
                "`docker run --gpus all` or `podman run --device nvidia.com/gpu=all`"
            )
        return "the NVIDIA driver is here but has no GPU; see: nvidia-smi -L"

    def _mig_without_slice(self) -> bool:
        """Whether NVML sees a GPU that is cut into slices (of which CUDA sees none)."""
        nvml = self.nvml()
        if nvml is None:
            return False
        try:
            nvml.init_v2()
            count = nvml.device_get_count_v2()
            return any(nvml.device_get_mig_mode(nvml.device_get_handle_by_index_v2(i))[0] == 1 for i in range(count))
        except Exception:  # NVML's own classes, of a module that may be absent
            return False

    def refused(self, name: str, status: int) -> str:
        """Why the driver does not start: ``cuInit`` answered a status."""
        if status in (100, 101):
            return self.no_device()
        if status in _REFUSALS:
            return _REFUSALS[status]
        return f"the NVIDIA driver does not start: cuInit answers {name} ({status}); see: nvidia-smi, dmesg"
