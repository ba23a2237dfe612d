"""What the kernel's driver tells of an AMD GPU that works: errors, clocks, heat, processes.  No library is asked.

Source: Linux, amdgpu's files in sysfs (``ras/*_err_count``, hwmon, ``pp_dpm_*``, ``gpu_busy_percent``) and amdkfd's
(``/sys/class/kfd/kfd/proc/PID/vram_GPU``).  What a file does not say, or no file is there for, is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from mmaprobe.devices.amd.machine import ListedGpu, Machine
from mmaprobe.devices.gpu.driver import LostError
from mmaprobe.devices.gpu.health import IDLE, GpuProcess, Health, is_ours

PCI, PROCESSES = "/sys/bus/pci/devices", "/sys/class/kfd/kfd/proc"
SEE = "amd-smi metric --ecc, rocm-smi --showrasinfo all"
"""What a person types to see the errors."""
_LEVEL = re.compile(r":\s*(\d+)\s*Mhz\s*\*", re.IGNORECASE)


class Readings:
    """The files of the GPU ``name``, which the kernel's driver lists as ``node``."""

    def __init__(self, machine: Machine, name: str, node: ListedGpu) -> None:
        self._machine, self._name, self._node = machine, name, node
        self._folder = f"{PCI}/{node.place}"
        self._there = machine.exists(self._folder)

    def read(self, computing: bool) -> Health:
        """A reading; ``computing``: this process uses the GPU.  LostError where its files have gone."""
        if self._there and not self._machine.exists(self._folder):
            raise LostError(f"{self._name}: {self._folder} is gone: the device is lost; see: dmesg, rocm-smi")
        listed = self._machine.entries(PROCESSES)
        hertz = 10**6
        return Health(
            uncorrected=self._errors("ue"),
            corrected=self._errors("ce"),
            clock_core_mhz=self._sensor(hertz, "freq1_input") or self._level("pp_dpm_sclk"),
            clock_memory_mhz=self._sensor(hertz, "freq2_input") or self._level("pp_dpm_mclk"),
            reasons=(IDLE,) if self._text("gpu_busy_percent") == "0" else None,
            temperature_c=self._sensor(1000, "temp2_input", "temp1_input"),
            power_w=self._sensor(hertz, "power1_average", "power1_input"),
            processes=tuple(self._others(listed)) if self._machine.exists(PROCESSES) else None,
            own_unseen=bool(listed) and computing and str(os.getpid()) not in listed,
            see=SEE,
        )

    def _text(self, name: str) -> str:
        return self._machine.text(f"{self._folder}/{name}")

    def _errors(self, kind: str) -> int | None:
        """Errors of all parts of the chip that count any."""
        texts = [self._text(f"ras/{name}") for name in self._machine.entries(f"{self._folder}/ras")]
        counts = [int(count) for text in texts for count in re.findall(rf"^{kind}: (\d+)$", text, re.MULTILINE)]
        return sum(counts) if counts else None

    def _sensor(self, unit: int, *names: str) -> int | None:
        """The first of some sensors that is there."""
        for monitor in self._machine.entries(f"{self._folder}/hwmon"):
            for name in names:
                text = self._text(f"hwmon/{monitor}/{name}")
                if text.isdecimal():
                    return int(text) // unit
        return None

    def _level(self, name: str) -> int | None:
        """The level of a clock that the driver marks as the present one."""
        found = _LEVEL.search(self._text(name))
        return int(found[1]) if found else None

    def _others(self, listed: list[str]) -> Iterator[GpuProcess]:
        """Processes that hold memory of this GPU, without this one and its children."""
        for entry in listed:
            size = self._machine.text(f"{PROCESSES}/{entry}/vram_{self._node.number}")
            if entry.isdecimal() and size.isdecimal() and int(size) and not is_ours(int(entry), self._machine.text):
                yield GpuProcess(int(entry), self._machine.text(f"/proc/{entry}/comm"), int(size) >> 20)
