"""What NVML reads of a GPU that works: errors, clocks, heat, processes.  What it refuses is left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mmaprobe.devices.gpu.driver import LostError
from mmaprobe.devices.gpu.health import GpuProcess, Health, HealthChange, is_ours
from mmaprobe.devices.nvidia.identity import CLOCK_MEMORY, CLOCK_SM, handle_of, read_or
from mmaprobe.devices.nvidia.machine import Machine

_NOT_TOLD = 1 << 63
"""NVML's memory of a process whose memory it does not tell is all ones."""
_TEMPERATURE = 0
"""Of nvmlTemperatureSensors_t, by number: the GPU's own."""
_VOID_XIDS = {
    48: "double-bit ECC error",
    79: "the GPU has fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    140: "unrecovered ECC error",
}
"""The driver's errors after which results are not to be trusted (NVIDIA, Xid Errors, catalog); others are noted."""
_MOST_REPORTS = 100
"""Reports of the driver that are read at a time: a GPU that breaks sends them without end."""


class Readings:
    """NVML of the GPU ``name`` with a UUID."""

    def __init__(self, machine: Machine, name: str, uuid: str) -> None:
        self._machine, self._name = machine, name
        self._nvml = machine.nvml()
        self._handle = handle_of(self._nvml, uuid)
        self._events = read_or(self._listen)
        self._reports: list[HealthChange] = []

    def _listen(self) -> Any:
        """A set of events that collects the driver's errors from now on."""
        events = self._nvml.event_set_create()
        self._nvml.device_register_events(self._handle, int(self._nvml.EventType.XID_CRITICAL_ERROR), events)
        return events

    def read(self, computing: bool) -> Health:
        """A reading; ``computing``: this process has a context on the GPU.  LostError where NVML finds it lost."""
        if self._handle is None:
            return Health()
        nvml, handle = self._nvml, self._handle
        listed = self._get(lambda: [_process(nvml, p) for p in nvml.device_get_compute_running_processes_v3(handle)])
        power = self._get(lambda: nvml.device_get_power_usage(handle))
        return Health(
            uncorrected=self._get(lambda: _errors(nvml, handle, nvml.MemoryErrorType.UNCORRECTED)),
            corrected=self._get(lambda: _errors(nvml, handle, nvml.MemoryErrorType.CORRECTED)),
            clock_core_mhz=self._get(lambda: int(nvml.device_get_clock_info(handle, CLOCK_SM))),
            clock_memory_mhz=self._get(lambda: int(nvml.device_get_clock_info(handle, CLOCK_MEMORY))),
            reports=None if self._events is None else self._reported(),
            reasons=self._get(lambda: _reasons(nvml, handle)),
            temperature_c=self._get(lambda: int(nvml.device_get_temperature_v(handle, _TEMPERATURE))),
            power_w=None if power is None else int(power) / 1000,
            processes=None if listed is None else tuple(p for p in listed if not is_ours(p.pid, self._machine.text)),
            own_unseen=bool(listed) and computing and all(p.pid != os.getpid() for p in listed),
            see="nvidia-smi -q -d ECC",
        )

    def _reported(self) -> tuple[HealthChange, ...]:
        """The driver's errors since the first reading; NVML raises where there are no more of them now."""
        while len(self._reports) < _MOST_REPORTS and (event := self._get(self._next_event)) is not None:
            number = int(event.event_data)
            meaning = f" ({_VOID_XIDS[number]})" if number in _VOID_XIDS else ""
            self._reports.append(HealthChange(f"the driver reports XID {number}{meaning}", number in _VOID_XIDS))
        return tuple(self._reports)

    def _next_event(self) -> Any:
        return self._nvml.event_set_wait_v2(self._events, 0)

    def _get(self, get: Callable[[], Any]) -> Any:
        """What NVML gives, None where it refuses."""
        try:
            return get()
        except Exception as error:
            if isinstance(error, getattr(self._nvml, "GpuIsLostError", ())):
                raise LostError(f"{self._name}: NVML: {error}: the device is lost; see: dmesg, nvidia-smi -q") from None
            return None


def _errors(nvml: Any, handle: Any, kind: Any) -> int:
    return int(nvml.device_get_total_ecc_errors(handle, kind, nvml.EccCounterType.VOLATILE_ECC))


def _process(nvml: Any, info: Any) -> GpuProcess:
    memory = int(info.used_gpu_memory)
    name = os.path.basename(read_or(lambda: str(nvml.system_get_process_name(info.pid)), ""))
    return GpuProcess(int(info.pid), name, memory >> 20 if memory < _NOT_TOLD else None)


def _reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    """Why the clocks are what they are: the names of the enumeration without their prefixes."""
    bits = int(nvml.device_get_current_clocks_event_reasons(handle))
    return tuple(each.name.partition("_REASON_")[2].lower() for each in nvml.ClocksEventReasons if bits & int(each))
