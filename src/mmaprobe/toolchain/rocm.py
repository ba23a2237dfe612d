"""The names under which a library of ROCm may be found, whatever its version."""

from __future__ import annotations

import os

ROOT, FOLDER = "ROCM_PATH", "/opt/rocm"
"""The environment's name for ROCm's folder, and where it usually is."""
_VERSIONS = ("", ".10", ".9", ".8", ".7", ".6", ".5")


def names(library: str) -> tuple[str, ...]:
    """What to open in turn: ``libamdhip64.so`` and the versions that the loader knows, then those in ROCm's folder."""
    known = tuple(f"{library}.so{version}" for version in _VERSIONS)
    folder = os.environ.get(ROOT) or FOLDER
    return known + tuple(f"{folder}/lib/{name}" for name in known)
