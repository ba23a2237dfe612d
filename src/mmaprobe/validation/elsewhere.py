"""Where else on this machine a device can be asked: its other cores, or another GPU of its architecture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mmaprobe.devices.base import Device, has, open_device
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.validation.cores import allowed_cores, pinned

if TYPE_CHECKING:
    from typing_extensions import TypeIs

MOST_CORES = 64
"""Cores that are asked one by one."""

TILES_EACH = 4
"""Tiles for each multiprocessor of a GPU, so that every one gets some; which, the GPU decides."""


@dataclass(frozen=True)
class Elsewhere:
    """A place: what it is called, the device there, what puts this thread there, and how many ``tiles`` reach it all
    (0: any number does)."""

    where: str
    device: Device
    going: AbstractContextManager[None] = field(default_factory=nullcontext)
    tiles: int = 0


def others(device: Device) -> Iterator[Elsewhere]:
    """The places but the first one: each core that this thread may run on, where the device computes in the thread
    that asks; of a GPU all its multiprocessors, and the next GPU of the same architecture; none for models, programs
    and recordings, which are anywhere."""
    if getattr(device, "in_thread", False):
        yield from (Elsewhere(f"core {core}", device, pinned(core)) for core in _cores())
    if _has_multiprocessors(device):
        count = device.multiprocessors
        yield Elsewhere(f"all {count} {device.multiprocessor}s", device, tiles=TILES_EACH * count)
    if _knows_others(device) and (twin := _twin(device)) is not None:
        yield Elsewhere(twin.name, twin)


def here(device: Device) -> str:
    """The core on which this thread must run, where the device computes in it and no other is allowed; else ``""``."""
    if not getattr(device, "in_thread", False):
        return ""
    with suppress(NotHereError):
        cores = allowed_cores()
        return f"core {cores[0]}" if len(cores) == 1 else ""
    return ""


def _cores() -> list[int]:
    """The cores, where there is more than one and threads can be pinned."""
    with suppress(NotHereError):
        cores = allowed_cores()
        return cores[:MOST_CORES] if len(cores) > 1 else []
    return []


class _OfMultiprocessors(Device, Protocol):
    """A GPU, and what its vendor calls a multiprocessor."""

    multiprocessor: str

    @property
    def multiprocessors(self) -> int: ...


class _OfKind(Device, Protocol):
    """A device that knows the names of all of its kind."""

    def siblings(self) -> list[str]: ...


def _has_multiprocessors(device: Device) -> TypeIs[_OfMultiprocessors]:
    return has(device, "multiprocessor", "multiprocessors")


def _knows_others(device: Device) -> TypeIs[_OfKind]:
    return has(device, "siblings")


def _twin(device: _OfKind) -> Device | None:
    """The first other GPU of the same maker and architecture that opens."""
    for name in device.siblings():
        if name != device.name.partition("?")[0]:
            with suppress(NotHereError, DeviceError):
                twin = open_device(name)
                if twin.info().get("architecture") == device.info().get("architecture"):
                    return twin
    return None
