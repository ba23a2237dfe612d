"""How a GPU is while it works: ECC errors, clocks, heat, who else uses it; and what two readings of that say.

Around steps::

    watch = Watch(device)          # the first reading; any device, of which most have none
    evidence(watch.reading, watch.opening())
    ...                            # a step
    notes = watch.look()           # one line each of what changed since the last look

``look`` raises ``VoidError`` (exit 5) where the results since the last look are void, ``LostError`` (exit 5) where the
GPU is gone: a step's result counts once the look after it has come to an end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from mmaprobe.devices.base import Device
from mmaprobe.errors import DeviceError

IDLE = "gpu_idle"
NOT_LIMITS = (IDLE, "applications_clocks_setting", "display_clock_setting")
"""Reasons for a clock that are nobody's holding it down."""
UNTOLD = 10
"""The part of a clock, one in so many, below which its change is the GPU's own doing where nobody tells why."""


class VoidError(DeviceError):
    """The results since the last reading are void; those before it stay valid."""


@dataclass(frozen=True)
class HealthChange:
    """What happened between two readings, in one line; ``void`` where the results between them are."""

    text: str
    void: bool = False


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on the GPU; its name and memory where the machine tells them."""

    pid: int
    name: str = ""
    mib: int | None = None

    def __str__(self) -> str:
        known = [self.name] * bool(self.name) + ([f"{self.mib} MiB"] if self.mib is not None else [])
        return f"pid {self.pid}" + (f" ({', '.join(known)})" if known else "")


@dataclass(frozen=True)
class Health:
    """One reading; None is what the machine does not tell.

    ECC errors are counted since the driver was loaded; ``reports`` are what it has reported since the first reading;
    ``reasons`` say why the clocks are what they are.
    ``processes`` are those of others; with ``own_unseen`` this process is one of them and cannot be told (a
    container's processes have other numbers outside).  ``see`` is what a person types to see the errors.
    """

    uncorrected: int | None = None
    corrected: int | None = None
    reports: tuple[HealthChange, ...] | None = None
    clock_core_mhz: int | None = None
    clock_memory_mhz: int | None = None
    reasons: tuple[str, ...] | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    processes: tuple[GpuProcess, ...] | None = None
    own_unseen: bool = False
    see: str = field(default="", compare=False)

    def form(self) -> dict[str, Any]:
        """What was read, as JSON."""
        left_out = {"see"} if self.own_unseen else {"see", "own_unseen"}
        return {name: value for name, value in asdict(self).items() if value is not None and name not in left_out}

    @property
    def limits(self) -> tuple[str, ...]:
        """What holds the clocks down."""
        return tuple(reason for reason in self.reasons or () if reason not in NOT_LIMITS)


def is_ours(pid: int, text: Callable[[str], str]) -> bool:
    """Whether a process is this one or a child of it; ``text`` reads a file."""
    parent = text(f"/proc/{pid}/stat").rpartition(")")[2].split()[1:2]
    return str(os.getpid()) in (str(pid), *parent)


def changes(before: Health, after: Health) -> list[HealthChange]:
    """What happened between two readings; nothing about what one of them does not tell."""
    reports = (after.reports or ())[len(before.reports or ()) :]
    return [*_errors(before, after), *reports, *_clocks(before, after), *_arrivals(before, after)]


def _errors(before: Health, after: Health) -> Iterator[HealthChange]:
    for kind in ("uncorrected", "corrected"):
        old, new = getattr(before, kind), getattr(after, kind)
        if old is None or new is None or old == new:
            continue
        if new < old:
            yield HealthChange(
                f"the count of {kind} ECC errors began anew ({old} -> {new}): the GPU was reset", void=True
            )
        else:
            yield HealthChange(f"{kind} ECC errors rose by {new - old}, to {new}", void=kind == "uncorrected")


def _clocks(before: Health, after: Health) -> Iterator[HealthChange]:
    """Clocks of a GPU that works in both readings; one that idles lowers them by itself."""
    if IDLE in (before.reasons or ()) or IDLE in (after.reasons or ()):
        return
    told = before.reasons is not None and after.reasons is not None
    moved = [
        f"{name} {old} -> {new} MHz"
        for name, old, new in (
            ("core", before.clock_core_mhz, after.clock_core_mhz),
            ("memory", before.clock_memory_mhz, after.clock_memory_mhz),
        )
        if old is not None and new is not None and old != new and (told or abs(new - old) * UNTOLD >= old)
    ]
    if not told:
        if moved:
            yield HealthChange(f"clocks: {', '.join(moved)}")
    elif moved or before.limits != after.limits:
        held = f"held down by {', '.join(after.limits)}" if after.limits else "held down by nothing"
        yield HealthChange(f"clocks: {', '.join(moved) or 'as before'}; {held}")


def _arrivals(before: Health, after: Health) -> Iterator[HealthChange]:
    if before.processes is None or after.processes is None or before.own_unseen != after.own_unseen:
        return
    there = {process.pid for process in before.processes}
    for process in after.processes:
        if process.pid not in there:
            yield HealthChange(f"another process uses the GPU now: {process}")


class Watch:
    """The readings of a device around steps; of a device without any, nothing is said."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.reading = self._read()

    def _read(self) -> Health | None:
        read: Callable[[], Health] | None = getattr(self._device, "health", None)
        return None if read is None else read()

    def opening(self) -> list[str]:
        """What is worth knowing of the first reading, one line each: who else is there, what holds clocks down."""
        if self.reading is None:
            return []
        lines = []
        others = self.reading.processes or ()
        if self.reading.own_unseen and len(others) > 1:
            lines.append(f"processes on the GPU, this one among them: {'; '.join(map(str, others))}")
        elif not self.reading.own_unseen:
            lines += [f"another process uses the GPU: {process}" for process in others]
        if self.reading.limits:
            lines.append(f"clocks are held down by {', '.join(self.reading.limits)}")
        return [f"{self._device.name}: {line}" for line in lines]

    def look(self) -> list[str]:
        """Read again: what changed since the last reading, one line each.

        VoidError where that makes the results since then void; the reading is the last one all the same, so that
        a later look tells what happens from here on.
        """
        before, self.reading = self.reading, self._read()
        if before is None or self.reading is None:
            return []
        found = changes(before, self.reading)
        void = "; ".join(change.text for change in found if change.void)
        if void:
            look = f"see: {self.reading.see}; then " * bool(self.reading.see)
            raise VoidError(
                f"{self._device.name}: {void}: the results since the last reading are void, those before it stay "
                f"valid; {look}the same command with --resume goes on"
            )
        return [f"{self._device.name}: {change.text}" for change in found]
