"""Stand-ins for ``cuda.bindings.nvml`` and for what else of NVIDIA's software a machine has."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from mmaprobe.devices.nvidia.machine import Machine


class LostGpuError(Exception):
    """``nvml.GpuIsLostError``."""


class Refused(Exception):
    """``nvml.NotSupportedError``."""


@dataclass
class Used:
    """``nvml.ProcessInfo``."""

    pid: int
    used_gpu_memory: int


class FakeNvml:
    """``cuda.bindings.nvml`` of one GPU.

    ``mig`` says whether it is cut into slices; ``refuses`` names functions that it does not support; the other
    attributes are what it reads, which a test changes.  Enumerations are the real ones.
    """

    GpuIsLostError = LostGpuError

    def __init__(self, mig: int = 0, refuses: tuple[str, ...] = ()) -> None:
        self.mig, self.refuses = mig, refuses
        self.driver = "580.65.06"
        self.errors = {"CORRECTED": 3, "UNCORRECTED": 0}
        self.clocks = {"SM": 1980, "MEM": 3201}
        self.reasons = 0
        self.processes: dict[int, tuple[str, int]] = {}  # name and bytes by number
        self.lost = False
        self.xids: list[int] = []  # that nobody was told yet
        self.listening = False

    def __getattribute__(self, name: str) -> Any:
        if name.startswith(("device_get_", "device_register_")):
            if object.__getattribute__(self, "lost"):
                raise LostGpuError("GPU is lost")
            if name in object.__getattribute__(self, "refuses"):
                raise Refused("Not Supported")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest.importorskip("cuda.bindings.nvml"), name)

    def init_v2(self) -> None:
        pass

    def device_get_count_v2(self) -> int:
        return 1

    def device_get_handle_by_index_v2(self, index: int) -> int:
        return 7

    def device_get_mig_mode(self, device: int) -> tuple[int, int]:
        return self.mig, self.mig

    def device_get_handle_by_uuid(self, uuid: str) -> int:
        assert uuid.endswith("-00010203-0405-0607-0809-0a0b0c0d0e0f"), uuid
        return 7

    def system_get_driver_version(self) -> str:
        return self.driver

    def device_get_vbios_version(self, device: int) -> str:
        return "96.00.A5.00.01"

    def device_get_ecc_mode(self, device: int) -> tuple[int, int]:
        return 1, 1

    def device_get_clock_info(self, device: int, type: int) -> int:
        return self.clocks[{1: "SM", 2: "MEM"}[type]]  # nvmlClockType_t

    def device_get_total_ecc_errors(self, device: int, error_type: int, counter_type: int) -> int:
        assert counter_type == self.EccCounterType.VOLATILE_ECC
        return self.errors[self.MemoryErrorType(error_type).name]

    def device_get_current_clocks_event_reasons(self, device: int) -> int:
        return self.reasons

    def event_set_create(self) -> int:
        return 9

    def device_register_events(self, device: int, event_types: int, set: int) -> None:
        assert (event_types, set) == (self.EventType.XID_CRITICAL_ERROR, 9)
        self.listening = True

    def event_set_wait_v2(self, set: int, timeoutms: int) -> Any:
        assert self.listening, "no events are registered"
        assert (set, timeoutms) == (9, 0)
        if not self.xids:
            raise self.NvmlTimeoutError(10)
        return SimpleNamespace(event_data=self.xids.pop(0))

    def device_get_temperature_v(self, device: int, sensorType: int) -> int:
        return 41

    def device_get_power_usage(self, device: int) -> int:
        return 120_500

    def device_get_compute_running_processes_v3(self, device: int) -> list[Used]:
        return [Used(pid, memory) for pid, (_, memory) in self.processes.items()]

    def system_get_process_name(self, pid: int) -> str:
        return self.processes[pid][0]


def machine(cuda: Any, **facts: Any) -> Machine:
    """A machine with this driver (None: with none)."""
    nvml = facts.pop("nvml", None)
    files: tuple[str, ...] = facts.pop("files", ())
    version = facts.pop("proc_version", "Linux version 6.8")
    environment = facts.pop("environment", {})
    missing = facts.pop("missing", "")
    cupy = facts.pop("cupy", None)
    assert not facts, facts

    def module(name: str) -> Any:
        found = {"cuda.bindings.driver": cuda, "cuda.bindings.nvml": nvml, "cupy": cupy}[name]
        if name == missing or found is None:
            raise ImportError(f"No module named {name!r}")
        return found

    return Machine(lambda: cuda is not None, module, environment, lambda path: path in files, lambda path: version)
