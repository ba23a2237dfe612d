"""What the kernel's driver tells of ``hip:0``: every file read, none needed, a GPU that is gone."""

from __future__ import annotations

import os

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.amd.driver import open_driver
from mmaprobe.devices.amd.health import PROCESSES
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.driver import LostError
from mmaprobe.devices.gpu.health import GpuProcess, Health, VoidError, Watch, changes
from stand_ins.fake_hip import FakeHip, machine, tree
from stand_ins.vendors import Sysfs

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("v_mfma_f32_16x16x16_f16", "gfx942")


def opened(files: dict[str, str]) -> GpuDevice:
    return GpuDevice(open_driver(0, machine(FakeHip(), files)), _none, None, 5)


def _none(*_: object) -> None:
    raise AssertionError("no kernel is asked for")


def test_a_reading() -> None:
    """Errors of all parts; the clock that is marked where no sensor tells it; memory of this GPU alone."""
    around = Sysfs()
    around.own()
    around.process(4242, "train")
    assert opened(around.machine).health() == Health(
        uncorrected=0, corrected=3, clock_core_mhz=1980, clock_memory_mhz=1300, temperature_c=41, power_w=140,
        processes=(GpuProcess(4242, "train", 1024),),
    )  # fmt: skip


def test_what_no_file_tells_is_left_out() -> None:
    assert opened(tree()).health() == Health()
    around = Sysfs()
    around.machine[f"{around.device}/ras/gfx_err_count"] = "Query currently inaccessible\n"
    around.machine[f"{around.device}/ras/umc_err_count"] = ""
    around.machine[f"{around.device}/pp_dpm_mclk"] = "0: 900Mhz\n1: 1300Mhz\n"
    reading = opened(around.machine).health()
    assert (reading.uncorrected, reading.corrected, reading.clock_memory_mhz) == (None, None, None)
    assert changes(reading, opened(Sysfs().machine).health()) == []


def test_a_clock_that_the_gpu_moves_by_itself() -> None:
    """Nobody tells why: little moves and those of a GPU that does nothing are not worth a line."""

    def clocks(*mhz: int, idle: bool = False) -> list[str]:
        before, after = (Health(clock_core_mhz=each, reasons=("gpu_idle",) if idle else None) for each in mhz)
        return [change.text for change in changes(before, after)]

    assert clocks(2100, 2000) == []
    assert clocks(2100, 132, idle=True) == []
    assert clocks(2100, 1400) == ["clocks: core 2100 -> 1400 MHz"]
    around = Sysfs()
    around.machine[f"{around.device}/gpu_busy_percent"] = "0\n"
    assert opened(around.machine).health().reasons == ("gpu_idle",)


def test_errors_of_memory_make_results_void() -> None:
    around = Sysfs()
    watch = Watch(opened(around.machine))
    around.uncorrected()
    with pytest.raises(VoidError, match=r"^hip:0: uncorrected ECC errors rose by 1, to 1: .*; see: amd-smi metric"):
        watch.look()
    around.machine[f"{around.device}/ras/gfx_err_count"] = "ue: 0\nce: 0\n"
    with pytest.raises(VoidError, match=r"began anew \(1 -> 0\): the GPU was reset"):
        watch.look()


def test_a_gpu_that_is_gone() -> None:
    around = Sysfs()
    device = opened(around.machine)
    device.health()
    for path in [path for path in around.machine if path.startswith(around.device)]:
        del around.machine[path]
    with pytest.raises(LostError, match=r"0000:03:00\.0 is gone: the device is lost; .*--resume goes on"):
        device.health()
    with pytest.raises(LostError, match="the device is lost"):
        device.run(MADE, random_batch(MADE, 1, 1))


def test_a_container_hides_this_process() -> None:
    """While it computes, one of those listed is this one, under a number of the host's."""
    around = Sysfs()
    around.process(901, "python3")
    device = opened(around.machine)
    driver = device._driver
    assert not device.health().own_unseen
    driver.start()
    assert device.health().own_unseen
    around.machine[f"{PROCESSES}/{os.getpid()}/pasid"] = "32770"
    assert not device.health().own_unseen
