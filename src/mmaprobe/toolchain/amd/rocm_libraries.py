"""Where a library of ROCm may be, whatever its version: one installation of mmaprobe meets all of them."""

from __future__ import annotations

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path

ROOT, FOLDER, WHEEL = "ROCM_PATH", "/opt/rocm", "_rocm_sdk_core"
"""The environment's name for ROCm's folder, where it usually is, and the package of AMD's own wheels that holds it."""
_VERSIONS = ("", ".10", ".9", ".8", ".7", ".6", ".5")


def names(library: str) -> tuple[str, ...]:
    """What to open in turn: ``libamdhip64.so`` and its versions as the loader knows them, then in ROCm's folders.

    Source of the folders: AMD's Python bindings (rocm-bindings-core 10.0).
    """
    known = tuple(f"{library}.so{version}" for version in _VERSIONS)
    wheel = find_spec(WHEEL)
    folders = [os.environ.get(ROOT) or FOLDER, *(wheel.submodule_search_locations or () if wheel else ())]
    return known + tuple(str(Path(folder) / "lib" / name) for folder in folders for name in known)


def opened(library: str) -> ctypes.CDLL | None:
    """The library that this process has already, such as PyTorch's, else the first that is installed, or None."""
    for mode in (os.RTLD_NOLOAD | os.RTLD_NOW, ctypes.DEFAULT_MODE):
        for name in names(library):
            try:
                return ctypes.CDLL(name, mode)
            except OSError:
                continue
    return None
