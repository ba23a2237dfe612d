"""What a GPU's readings say: errors, clocks, other processes, a GPU that is gone; each in one line, nothing guessed."""

from __future__ import annotations

import os
from typing import Any

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device, serial
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.driver import LostError
from mmaprobe.devices.gpu.health import GpuProcess, Health, VoidError, Watch, changes
from mmaprobe.devices.nvidia.driver import open_driver
from stand_ins.fake_cuda import FakeCuda, kernels
from stand_ins.fake_machine import FakeNvml, machine

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
IDLE, POWER_CAP = 1, 4
"""Bits of ``nvml.ClocksEventReasons``."""


def opened(nvml: FakeNvml | None, cuda: FakeCuda | None = None, **facts: Any) -> GpuDevice:
    return GpuDevice(open_driver(0, machine(cuda or FakeCuda(), nvml=nvml, **facts)), kernels, None, 5)


def test_a_reading() -> None:
    nvml = FakeNvml()
    nvml.reasons, nvml.processes = POWER_CAP, {os.getpid(): ("/usr/bin/python3", 1 << 30)}
    assert opened(nvml).health() == Health(
        uncorrected=0,
        corrected=3,
        reports=(),
        clock_core_mhz=1980,
        clock_memory_mhz=3201,
        reasons=("sw_power_cap",),
        temperature_c=41,
        power_w=120.5,
        processes=(),
    )


def test_what_is_read_is_in_the_real_module() -> None:
    nvml = pytest.importorskip("cuda.bindings.nvml")
    used = [name for name in vars(FakeNvml) if name.startswith(("device_", "system_", "event_", "init", "Gpu"))]
    assert not [name for name in used if not hasattr(nvml, name)]
    assert {"pid", "used_gpu_memory"} <= set(dir(nvml.ProcessInfo))
    assert hasattr(nvml.EventData, "event_data")


def test_what_nvml_refuses_is_left_out() -> None:
    refused = (
        "device_get_total_ecc_errors", "device_get_compute_running_processes_v3", "device_get_power_usage",
        "device_register_events",
    )  # fmt: skip
    reading = opened(FakeNvml(refuses=refused)).health()
    assert reading.form() == {
        "clock_core_mhz": 1980, "clock_memory_mhz": 3201, "reasons": (), "temperature_c": 41
    }  # fmt: skip
    assert opened(None).health() == Health()
    assert changes(reading, opened(FakeNvml()).health()) == []


def test_a_device_that_reads_nothing_says_nothing() -> None:
    watch = Watch(open_device("model:sm_90a"))
    assert (watch.reading, watch.opening(), watch.look()) == (None, [], [])


def test_uncorrected_errors_make_the_step_void() -> None:
    nvml = FakeNvml()
    watch = Watch(serial(opened(nvml)))
    nvml.errors["UNCORRECTED"] = 2
    with pytest.raises(VoidError, match=r"^cuda:0: uncorrected ECC errors rose by 2, to 2: the results since the last "
                       r"reading are void, .*nvidia-smi -q -d ECC; .*--resume goes on$") as caught:  # fmt: skip
        watch.look()
    assert caught.value.exit_code == 5
    assert watch.look() == []


def test_a_counter_that_began_anew() -> None:
    """Errors between the readings may have been counted and forgotten."""
    (change,) = changes(Health(uncorrected=4), Health(uncorrected=0))
    assert (change.void, change.text) == (
        True, "the count of uncorrected ECC errors began anew (4 -> 0): the GPU was reset"
    )  # fmt: skip


def test_corrected_errors_are_noted() -> None:
    nvml = FakeNvml()
    watch = Watch(opened(nvml))
    nvml.errors["CORRECTED"] += 1
    assert watch.look() == ["cuda:0: corrected ECC errors rose by 1, to 4"]


def test_what_the_driver_reports() -> None:
    """An error of a program is noted; one of memory makes the step void."""
    nvml = FakeNvml()
    watch = Watch(opened(nvml))
    nvml.xids = [13, 31]
    assert watch.look() == ["cuda:0: the driver reports XID 13", "cuda:0: the driver reports XID 31"]
    assert watch.look() == []
    nvml.xids = [94, 43]
    with pytest.raises(VoidError, match=r"cuda:0: the driver reports XID 94 \(contained memory error\): the results"):
        watch.look()
    assert watch.reading is not None
    assert watch.reading.form()["reports"][2] == {
        "text": "the driver reports XID 94 (contained memory error)", "void": True
    }  # fmt: skip
    nvml.xids = [31] * 1000
    assert len(watch.look()) == 96


def test_clocks_are_noted_while_the_gpu_works() -> None:
    nvml = FakeNvml()
    watch = Watch(opened(nvml))
    nvml.clocks["SM"], nvml.reasons = 1410, POWER_CAP
    assert watch.look() == ["cuda:0: clocks: core 1980 -> 1410 MHz; held down by sw_power_cap"]
    nvml.clocks["SM"], nvml.reasons = 345, IDLE
    assert watch.look() == []
    assert Watch(opened(nvml)).opening() == []
    nvml.reasons = POWER_CAP
    assert Watch(opened(nvml)).opening() == ["cuda:0: clocks are held down by sw_power_cap"]


def test_another_process_is_named() -> None:
    nvml = FakeNvml()
    watch = Watch(opened(nvml))
    nvml.processes = {os.getpid(): ("/usr/bin/python3", 1 << 30), 4242: ("/opt/bin/train", (1 << 64) - 1)}
    assert watch.look() == ["cuda:0: another process uses the GPU now: pid 4242 (train)"]
    nvml.processes[4242] = ("/opt/bin/train", 5 << 30)
    assert Watch(opened(nvml)).opening() == ["cuda:0: another process uses the GPU: pid 4242 (train, 5120 MiB)"]
    assert watch.look() == []


def test_a_child_is_no_other_process() -> None:
    """Field 4 of /proc/PID/stat is the parent; a command may have a parenthesis in it."""
    nvml = FakeNvml()
    nvml.processes = {4242: ("python3", 0)}
    child = opened(nvml, proc_version=f"4242 (py) thon) S {os.getpid()} 1 1")
    assert child.health().processes == ()


def test_processes_with_other_numbers_outside() -> None:
    """A container: the list has this process under a number that it does not know; no other is made of it."""
    nvml, gpu = FakeNvml(), FakeCuda()
    device = opened(nvml, gpu)
    watch = Watch(device)
    nvml.processes = {70001: ("python3", 0)}
    device.run(MADE, random_batch(MADE, 1, 1))
    assert watch.look() == []
    assert watch.opening() == []
    nvml.processes[70002] = ("train", 1 << 20)
    assert watch.look() == ["cuda:0: another process uses the GPU now: pid 70002 (train, 1 MiB)"]
    assert watch.opening() == [
        "cuda:0: processes on the GPU, this one among them: pid 70001 (python3, 0 MiB); pid 70002 (train, 1 MiB)"
    ]
    assert Health(processes=(GpuProcess(1),), own_unseen=True).form() == {
        "processes": ({"pid": 1, "name": "", "mib": None},), "own_unseen": True
    }  # fmt: skip


def test_a_gpu_that_is_gone() -> None:
    """NVML finds it lost: the reading says so, and so does every later batch."""
    nvml = FakeNvml()
    device = opened(nvml)
    watch = Watch(device)
    nvml.lost = True
    with pytest.raises(LostError, match=r"^cuda:0: NVML: GPU is lost: the device is lost; see: dmesg, nvidia-smi -q; "
                       r"what was recorded before stays valid; .*--resume goes on$") as caught:  # fmt: skip
        watch.look()
    assert caught.value.exit_code == 5
    with pytest.raises(LostError, match="the device is lost"):
        device.run(MADE, random_batch(MADE, 1, 1))
