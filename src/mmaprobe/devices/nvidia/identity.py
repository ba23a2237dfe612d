"""What NVML says of a GPU: driver, VBIOS, ECC, clocks as read.  Nothing is ever set."""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Callable
from typing import Any

from mmaprobe.catalog.lookup import architectures
from mmaprobe.errors import NotHereError
from mmaprobe.vendors import NVIDIA

UNREAD = "not read"
CLOCK_SM = 1
"""Of nvmlClockType_t, by number: releases of the bindings differ in how they spell the names."""
CLOCK_MEMORY = 2
"""Of the same."""


def architecture(name: str, major: int, minor: int) -> str:
    """The catalog's name for a compute capability; NotHereError, for the GPU ``name``, where it has none."""
    known = list(filter(NVIDIA.makes, architectures()))
    for each in known:
        if re.fullmatch(rf"{NVIDIA.begins}{major}{minor}[a-z]?", each):
            return each
    raise NotHereError(f"{name}: compute capability {major}.{minor} is none of the catalog's ({', '.join(known)})")


def identity(nvml: Any, name: str, uuid: bytes) -> dict[str, str]:
    """By NVML of the GPU with this UUID; ``not read`` for what it does not tell, all where NVML is not here (None).

    ``name`` is CUDA's, which ends with the profile where it is a slice (``... MIG 1g.10gb``).
    """
    mig = re.search(r"\bMIG (\S+)", name)
    text = f"{'MIG' if mig else 'GPU'}-{uuids.UUID(bytes=uuid)}"
    handle = handle_of(nvml, text)
    fields: dict[str, Callable[[], Any]] = {
        "driver": lambda: nvml.system_get_driver_version(),
        "vbios": lambda: nvml.device_get_vbios_version(handle),
        "ecc": lambda: ("off", "on")[int(nvml.device_get_ecc_mode(handle)[0])],
        "clock_sm_mhz": lambda: nvml.device_get_clock_info(handle, CLOCK_SM),
        "clock_memory_mhz": lambda: nvml.device_get_clock_info(handle, CLOCK_MEMORY),
    }
    read = {field: UNREAD if handle is None else read_or(get, UNREAD) for field, get in fields.items()}
    return {"uuid": text, "mig": mig[1] if mig else "no", **{field: str(value) for field, value in read.items()}}


def handle_of(nvml: Any, uuid: str) -> Any:
    """NVML's handle of the GPU with this UUID; None where NVML is not here or does not know it."""

    def handle() -> Any:
        nvml.init_v2()
        return nvml.device_get_handle_by_uuid(uuid)

    return read_or(handle)


def read_or(get: Callable[[], Any], otherwise: Any = None) -> Any:
    """What NVML gives; it raises classes of its own module for what a GPU does not support."""
    try:
        return get()
    except Exception:
        return otherwise
