"""The device ``cuda:N`` against a stand-in for NVIDIA's driver: it runs, and it fails closed."""

from __future__ import annotations

import gc
import inspect
import re
from typing import Any

import numpy as np
import pytest

from emulator.batches import random_batch
from emulator.warp import run_warp
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu.driver import HungError, LostError, OutOfMemoryError, StuckError
from mmaprobe.devices.gpu.launch import CTAS_EACH, item_bytes
from mmaprobe.devices.nvidia.calls import ENDS_THE_PROCESS
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.render import render
from stand_ins.fake_cuda import BREAKS, FakeCuda, Interfaced, device, model, real

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
SPARSE = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
BATCH = random_batch(MADE, 21, 1)
BATCH_OF_OTHER = random_batch(OTHER, 5, 1)


def run(cuda: FakeCuda, batch: Batch = BATCH, **more: Any) -> Bits:
    return device(cuda, **more).run(MADE, batch)


@pytest.mark.parametrize("made", [MADE, OTHER, SPARSE], ids=lambda made: made.id)
def test_d_is_what_the_unit_computes(made: Instruction) -> None:
    batch = random_batch(made, 21, 2)
    assert (device(FakeCuda()).run(made, batch) == model(made, batch)).all()


def test_a_warp_of_the_kernel_between_driver_and_model() -> None:
    """Batch, device memory, the kernel's own loads, the model as tensor core, the kernel's own stores, D."""

    def unit(made: Instruction, batch: Batch) -> Bits:
        def core(seen: dict[str, Any]) -> Any:
            formats = made.formats()
            codes = {name: value.astype(formats[name].dtype) for name, value in seen.items()}
            return model(made, Batch(**codes)).astype(np.uint64)

        return run_warp(render(made, "sm_90a"), made, batch, core)

    batch = random_batch(MADE, 5, 3)
    assert (run(FakeCuda(unit=unit), batch) == model(MADE, batch)).all()


def test_an_empty_batch_is_an_empty_result() -> None:
    assert run(FakeCuda(), random_batch(MADE, 0, 1)).shape == (0, 16, 8)


def test_launches_are_as_large_as_the_device_and_no_larger() -> None:
    """CTAs for the items, at most what keeps the multiprocessors busy; threads of all groups; memory freed."""
    cuda = FakeCuda(unit=lambda made, batch: model(made, batch) if batch.size < 100 else any_d(batch))
    run(cuda, random_batch(MADE, 9000, 1))
    before, batch, after = cuda.configs
    assert (before.gridDimX, batch.gridDimX, after.gridDimX) == (10, 132 * CTAS_EACH, 10)
    assert (batch.blockDimX, batch.sharedMemBytes, batch.numAttrs) == (128, 0, 0)
    assert not cuda.allocated


def any_d(batch: Batch) -> Bits:
    return np.zeros((batch.size, 16, 8), np.uint32)


def test_clusters_are_whole_and_shared_memory_is_asked_for() -> None:
    cuda = FakeCuda()
    run(cuda, cluster=2, groups=1, shared=100_000, threads=128)
    config = cuda.configs[1]
    assert (config.gridDimX, config.blockDimX, config.sharedMemBytes) == (42, 128, 100_000)
    assert config.attrs[0].value.clusterDim.x == 2


def test_a_result_that_looks_like_the_canary_is_a_result() -> None:
    """D all 0xa5 is asked once more under another canary."""
    batch = random_batch(MADE, 3, 1)
    zero = {name: np.zeros_like(value) for name, value in batch.items()}
    batch = Batch(**zero | {"c": np.full((3, 16, 8), 0xA5A5A5A5, np.uint32)})
    cuda = FakeCuda()
    assert (run(cuda, batch) == 0xA5A5A5A5).all()
    assert cuda.launches == 4


LIES = {
    "never": r"counts 0 items stored, of 37 given",
    "count": r"counts 36 items stored, of 37 given",
    "canary": r"canary intact: D of item 36 was never written",
    "wrong": r"wrong known answer before the batch",
    "overrun": r"wrote beyond the end of D",
    "wait": r"hung: a wait inside the kernel ran out",
    "refused": r"cuLaunchKernelEx answers CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES \(701\)",
    "failed": r"cuEventQuery answers CUDA_ERROR_LAUNCH_FAILED \(719\)",
    "illegal": r"cuEventQuery answers CUDA_ERROR_ILLEGAL_ADDRESS \(700\)",
    "leak": r"cuEventQuery answers CUDA_ERROR_TENSOR_MEMORY_LEAK \(721\)",
    "assert": r"cuEventQuery answers CUDA_ERROR_ASSERT \(710\)",
}
STUCK = "since a launch failed CUDA does nothing more in this process; the same command with --resume goes on"
AFTERWARDS = {"never": "counts 0", "count": "counts 20", "canary": "item 20", "wrong": "wrong known answer after"}


@pytest.mark.parametrize("fault", LIES)
@pytest.mark.parametrize("after", [0, 1])
def test_a_lie_is_no_result(fault: str, after: int) -> None:
    """In the first known answer or in the batch: one line of exit code 5, and the next batch on a fresh context; after
    what breaks CUDA for the process no instruction is blamed, and what was found stays."""
    cuda = FakeCuda(fault=fault, after=after)
    opened = device(cuda)
    said = AFTERWARDS.get(fault, LIES[fault]) if after else LIES[fault]
    with pytest.raises(DeviceError, match=said) as failed:
        opened.run(MADE, BATCH)
    assert failed.value.exit_code == 5
    assert str(failed.value).startswith(f"{MADE.id}: cuda:0: ")
    assert str(failed.value).endswith("; the batch is void")
    assert "\n" not in str(failed.value)
    assert cuda.references == 0
    assert not cuda.current
    cuda.fault = ""
    if fault in BREAKS:
        for _ in range(2):
            with pytest.raises(StuckError, match=STUCK):
                opened.run(OTHER, BATCH_OF_OTHER)
        return
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    assert cuda.contexts == 2


@pytest.mark.parametrize("fault", BREAKS)
def test_every_error_that_ends_the_process_is_known(fault: str) -> None:
    """By the text that the bindings hold of each status: none is cured by giving the context up."""
    texts = {int(status): " ".join((status.__doc__ or "").split()) for status in real.CUresult}
    if texts[2].startswith("The API call failed"):  # older bindings hold no texts
        said = {status for status, text in texts.items() if "any further CUDA work will return the same error" in text}
        assert said == set(BREAKS.values()) == ENDS_THE_PROCESS
    opened = device(FakeCuda(fault=fault, shared=True))
    with pytest.raises(DeviceError, match=rf"\({BREAKS[fault]}\); the batch is void"):
        opened.run(MADE, BATCH)
    with pytest.raises(StuckError, match=rf"\({BREAKS[fault]}\): since a launch failed CUDA does nothing more"):
        opened.run(MADE, BATCH)


def test_a_wrong_known_answer_after_the_batch_voids_it() -> None:
    with pytest.raises(DeviceError, match="wrong known answer after the batch"):
        run(FakeCuda(fault="wrong", after=2))


def test_a_context_that_others_hold_is_dead_for_us_too() -> None:
    """The driver's error stays where another library keeps the context: no later instruction is blamed for it."""
    cuda = FakeCuda(fault="assert", shared=True)
    opened = device(cuda)
    with pytest.raises(DeviceError, match="ASSERT"):
        opened.run(MADE, BATCH)
    cuda.fault = ""
    for _ in range(2):
        with pytest.raises(StuckError, match=STUCK):
            opened.run(OTHER, BATCH_OF_OTHER)


def test_a_hang_ends_and_keeps_its_context_until_the_launch_does() -> None:
    cuda = FakeCuda(fault="hang", after=1)
    opened = device(cuda, seconds=0.01)
    with pytest.raises(HungError, match=r"hung: the launch did not end within 0\.01 s; the batch is void"):
        opened.run(MADE, BATCH)
    assert cuda.references == 1
    with pytest.raises(StuckError, match="a launch that hung still runs; end this process"):
        opened.run(MADE, BATCH)
    cuda.running, cuda.fault = False, ""
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    assert cuda.contexts == 2


def test_an_interrupt_gives_the_context_up() -> None:
    def interrupted(made: Instruction, batch: Batch) -> Bits:
        raise KeyboardInterrupt

    cuda = FakeCuda(unit=interrupted)
    opened = device(cuda)
    with pytest.raises(KeyboardInterrupt):
        opened.run(MADE, BATCH)
    assert cuda.references == 0
    cuda.unit = model
    assert opened.run(MADE, BATCH).shape == (21, 16, 8)


def test_a_lost_device_stays_lost() -> None:
    cuda = FakeCuda(fault="ecc", after=1)
    opened = device(cuda)
    with pytest.raises(LostError, match=r"device is lost: uncorrectable ECC error; see: dmesg, nvidia-smi -q"):
        opened.run(MADE, BATCH)
    with pytest.raises(
        LostError, match=r"recorded before stays valid; once the GPU is back, the same command with --resume goes on"
    ):
        opened.run(MADE, BATCH)
    assert cuda.launches == 2


def test_a_batch_is_split_to_fit_into_memory() -> None:
    """What half of the free memory holds at a time, and smaller pieces where it lies in pieces."""
    batch = random_batch(MADE, 40, 4)
    assert item_bytes(MADE) == 2 * 16 * 16 + 2 * 16 * 8 + 2 * 4 * 16 * 8
    for cuda, launches in ((FakeCuda(memory=40 * item_bytes(MADE)), 2 + 2 + 2), (FakeCuda(fault="fragmented"), 100)):
        assert (run(cuda, batch) == model(MADE, batch)).all()
        assert launches <= cuda.launches <= 2 * launches
        assert not cuda.allocated


def test_what_does_not_fit_says_so() -> None:
    with pytest.raises(OutOfMemoryError, match=r"cuMemAlloc answers CUDA_ERROR_OUT_OF_MEMORY .2.: out of memory; see"):
        run(FakeCuda(fault="no memory"))


def test_a_batch_too_large_for_this_machine() -> None:
    vast = Batch(**{name: np.broadcast_to(value[:1], (1 << 42, *value.shape[1:])) for name, value in BATCH.items()})
    with pytest.raises(UsageError, match="a batch of 4398046511104 items is too large for this machine's memory"):
        run(FakeCuda(), vast)


def test_a_device_that_is_dropped_gives_its_context_up() -> None:
    cuda = FakeCuda()
    opened = device(cuda)
    opened.run(MADE, BATCH)
    assert cuda.references == 1
    del opened
    gc.collect()
    assert cuda.references == 0


def test_the_stand_in_takes_what_the_bindings_take() -> None:
    """Each function of the stand-in has the parameters that the real one documents."""
    for name, function in vars(FakeCuda).items():
        if not name.startswith("cu"):
            continue
        said = re.search(rf"{name}\((.*)\)", getattr(real, name).__doc__.strip().split("\n")[0])
        assert said, name
        documented = [part.split(":")[0].split()[-1] for part in said[1].replace("*", "").split(", ") if part]
        assert list(inspect.signature(function).parameters)[1:] == documented, name


def test_the_bindings_take_what_the_device_gives_them() -> None:
    """Every call of a run, made to the real bindings: no driver is there, and nothing but that is wrong."""
    if Machine().library():
        pytest.skip("there is a driver here, which would obey")
    if Machine().library():
        pytest.skip("there is a driver here, which would be called with what is a stand-in's")
    calls: list[tuple[str, tuple[Any, ...]]] = []

    class Recorded(FakeCuda):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if not name.startswith("cu") or not callable(found):
                return found
            return lambda *given: (calls.append((name, given)), found(*given))[1]

    cuda = Recorded()
    opened = device(cuda, cluster=2, groups=1, shared=1024)
    bound = OpenDevice(opened).instruction(MADE)
    bound(Interfaced(cuda, BATCH.a, stream=77), BATCH.b, BATCH.c)
    opened.close()
    assert {name for name, _ in calls} == {name for name in vars(FakeCuda) if name.startswith("cu")} - {"current"}
    for name, given in dict(calls).items():
        with pytest.raises(RuntimeError, match=r"is an NVIDIA driver library and can only be found|dlopen libcuda"):
            getattr(real, name)(*given)


def test_an_instruction_with_an_open_layout_is_not_supported() -> None:
    opened = device(FakeCuda(capability=(10, 0)))
    made = instruction("tcgen05.mma.sp.cta_group::1.kind::f16.m64n8k32.f32.f16.f16", "sm_100a")
    assert opened.supports(made).reason.startswith("the layout of metadata is open")
    with pytest.raises(NotHereError, match="the layout of metadata is open"):
        opened.run(made, random_batch(made, 1, 1))
