"""Stand-ins for ``cuda.bindings.nvml`` and for what else of NVIDIA's software a machine has."""

from __future__ import annotations

from typing import Any

from mmaprobe.devices.cuda_machine import Machine


class FakeNvml:
    """``cuda.bindings.nvml`` of one GPU; ``mig`` says whether it is cut into slices."""

    ClockType = type("ClockType", (), {"SM": 1, "MEM": 2})

    def __init__(self, mig: int = 0) -> None:
        self.mig = mig

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
        return "580.65.06"

    def device_get_vbios_version(self, device: int) -> str:
        return "96.00.A5.00.01"

    def device_get_ecc_mode(self, device: int) -> tuple[int, int]:
        return 1, 1

    def device_get_clock_info(self, device: int, type: int) -> int:
        return {1: 1980, 2: 3201}[type]


def machine(cuda: Any, **facts: Any) -> Machine:
    """A machine with this driver (None: with none)."""
    nvml = facts.pop("nvml", None)
    files: tuple[str, ...] = facts.pop("files", ())
    version = facts.pop("proc_version", "Linux version 6.8")
    environment = facts.pop("environment", {})
    missing = facts.pop("missing", "")
    assert not facts, facts

    def module(name: str) -> Any:
        found = {"cuda.bindings.driver": cuda, "cuda.bindings.nvml": nvml}[name]
        if name == missing or found is None:
            raise ImportError(f"No module named {name!r}")
        return found

    return Machine(lambda: cuda is not None, module, environment, lambda path: path in files, lambda path: version)
