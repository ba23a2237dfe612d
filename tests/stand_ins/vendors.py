"""What of a stand-in GPU is a vendor's, so that one test is about all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mmaprobe.devices.amd.health import PCI, PROCESSES
from mmaprobe.devices.amd.machine import NODES
from stand_ins import fake_cuda, fake_hip, hip_gpu
from stand_ins import gpu as standin_gpu
from stand_ins.fake_machine import FakeNvml
from stand_ins.kernel_source import Seed


class Around(Protocol):
    """What the machine tells of its GPU while it works; ``machine`` is what the stand-in takes."""

    machine: Any

    def uncorrected(self) -> None:
        """An uncorrected error more."""

    def corrected(self, errors: int) -> None:
        """So many corrected errors more; 3 there were."""

    def slower(self) -> None:
        """The cores' clock from its 1980 MHz to 1200."""

    def process(self, number: int, name: str) -> None:
        """A process that holds 1 GiB."""

    def own(self) -> None:
        """This process is listed."""

    def driver(self, version: str) -> None:
        """Another version of the driver."""


class Nvml:
    """By NVML."""

    def __init__(self) -> None:
        self.machine = FakeNvml()

    def uncorrected(self) -> None:
        self.machine.errors["UNCORRECTED"] += 1

    def corrected(self, errors: int) -> None:
        self.machine.errors["CORRECTED"] += errors

    def slower(self) -> None:
        self.machine.clocks["SM"], self.machine.reasons = 1200, 0x40

    def process(self, number: int, name: str) -> None:
        self.machine.processes[number] = (name, 1 << 30)

    def own(self) -> None:
        self.process(os.getpid(), "python3")

    def driver(self, version: str) -> None:
        self.machine.driver = version


class Sysfs:
    """By the files of the kernel's driver."""

    def __init__(self, architecture: str = "gfx942") -> None:
        device = f"{PCI}/{fake_hip.PLACE}"
        self.device = device
        self.machine = fake_hip.tree(architecture) | {
            f"{NODES}/1/gpu_id": "5151",
            f"{device}/ras/features": "feature mask: 0x1",
            f"{device}/ras/gfx_err_count": "ue: 0\nce: 0\n",
            f"{device}/ras/umc_err_count": "ue: 0\nce: 3\nde: 0\n",
            f"{device}/hwmon/hwmon4/freq1_input": "1980000000",
            f"{device}/hwmon/hwmon4/temp2_input": "41000",
            f"{device}/hwmon/hwmon4/power1_input": "140000000",
            f"{device}/pp_dpm_mclk": "0: 900Mhz\n1: 1300Mhz *\n",
            f"{device}/gpu_busy_percent": "3",
            f"{PROCESSES}/77/vram_9999": "4096",
        }

    def uncorrected(self) -> None:
        self.machine[f"{self.device}/ras/gfx_err_count"] = "ue: 1\nce: 0\n"

    def corrected(self, errors: int) -> None:
        self.machine[f"{self.device}/ras/umc_err_count"] = f"ue: 0\nce: {3 + errors}\nde: 0\n"

    def slower(self) -> None:
        self.machine[f"{self.device}/hwmon/hwmon4/freq1_input"] = "1200000000"

    def process(self, number: int, name: str) -> None:
        self.machine[f"{PROCESSES}/{number}/vram_5151"] = str(1 << 30)
        self.machine[f"/proc/{number}/comm"] = name

    def own(self) -> None:
        self.process(os.getpid(), "python3")

    def driver(self, version: str) -> None:
        self.machine["/sys/module/amdgpu/version"] = version


@dataclass(frozen=True)
class Vendor:
    """``signed`` and ``unsigned``, which the glob ``both`` names, are soon derived.

    ``rows`` is a wrong text of ``signed``, by which A's first element reaches the outputs ``lies_at``; ``other`` is
    a mutant of ``changed``, of whose derivation the report ``says`` a word; ``who`` and ``errors`` are commands that
    messages name, ``slower`` what a note says of clocks.
    """

    scheme: str
    architecture: str
    gpu: Callable[..., Any]
    plugged: Callable[..., Any]
    pack: Callable[..., Any]
    around: Callable[[], Around]
    signed: str
    unsigned: str
    both: str
    half: str
    changed: str
    rows: Seed
    lies_at: list[str]
    model: fake_cuda.Unit
    other: str
    says: str
    driver: str
    toolchain: str
    multiprocessor: str
    who: str
    errors: str
    slower: str
    names: tuple[str, str]


NVIDIA = Vendor(
    scheme="cuda",
    architecture="sm_90a",
    gpu=standin_gpu.StandIn,
    plugged=standin_gpu.plugged,
    pack=standin_gpu.pack,
    around=Nvml,
    signed="mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
    unsigned="mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32",
    both="mma.m16n8k16.s32.[su]8.s8.s32",
    half="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    changed="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    rows=("8 * ((slot / 4) & 1)", "8 * (1 - ((slot / 4) & 1))"),
    lies_at=["8,*"],
    model=fake_cuda.model,
    other="mutant:sm_90a/HMMA.16816.F32[f16,f16->f32]/tree.fraction_bits=24",
    says="below the largest exponent of the sum: 25 -> 24",
    driver="580.65.06",
    toolchain=standin_gpu.TOOLCHAIN,
    multiprocessor="multiprocessor",
    who="nvidia-smi",
    errors="nvidia-smi -q -d ECC",
    slower="clocks: core 1980 -> 1200 MHz; held down by hw_thermal_slowdown",
    names=("NVIDIA H200", "NVIDIA H100"),
)
AMD = Vendor(
    scheme="hip",
    architecture="gfx942",
    gpu=fake_hip.FakeHip,
    plugged=hip_gpu.plugged,
    pack=hip_gpu.pack,
    around=Sysfs,
    signed="v_mfma_i32_32x32x16_i8",
    unsigned="v_mfma_i32_16x16x32_i8",
    both="v_mfma_i32_??x??x??_i8",
    half="v_mfma_f32_16x16x16_f16",
    changed="v_mfma_f64_4x4x4_4b_f64",
    rows=("(lane % 32) * 16", "(31 - lane % 32) * 16"),
    lies_at=["31,*"],
    model=fake_hip.model("gfx942"),
    other="mutant:gfx942/MFMA.F64[f64,f64->f64,k4]/tree.to.rounding=RZ",
    says="RZ",
    driver="6.8.5",
    toolchain=fake_hip.TOOLCHAIN,
    multiprocessor="compute unit",
    who="rocm-smi --showpids",
    errors="amd-smi metric --ecc, rocm-smi --showrasinfo all",
    slower="clocks: core 1980 -> 1200 MHz",
    names=("AMD Instinct MI300X", "AMD Instinct MI325X"),
)
VENDORS = {vendor.scheme: vendor for vendor in (NVIDIA, AMD)}
