"""The device ``cuda:N`` against a stand-in for NVIDIA's driver: it runs, and it fails closed."""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fake_cuda
from emulator.warp import run_warp
from fake_cuda import FakeCuda, FakeNvml, cubin, device, driver, machine, model, real
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.cuda import open_cuda
from mmaprobe.devices.cuda_machine import Machine
from mmaprobe.devices.gpu_driver import HungError, LostError, OutOfMemoryError
from mmaprobe.devices.gpu_launch import CTAS_EACH, item_bytes
from mmaprobe.devices.gpu_trial import ChildTrial, command
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.toolchain.render import render
from test_emulated_warp import random_batch

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
SPARSE = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
BATCH = random_batch(MADE, 21, 1)


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
    "illegal": r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\)",
}
AFTERWARDS = {"never": "counts 0", "count": "counts 20", "canary": "item 20", "wrong": "wrong known answer after"}


@pytest.mark.parametrize("fault", LIES)
@pytest.mark.parametrize("after", [0, 1])
def test_a_lie_is_no_result(fault: str, after: int) -> None:
    """In the first known answer or in the batch: one line of exit code 5, and the next batch on a fresh context."""
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
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    assert cuda.contexts == 2


def test_a_wrong_known_answer_after_the_batch_voids_it() -> None:
    with pytest.raises(DeviceError, match="wrong known answer after the batch"):
        run(FakeCuda(fault="wrong", after=2))


def test_a_context_that_others_hold_is_dead_for_us_too() -> None:
    """The driver's error stays where another library keeps the context: no batch looks like a result."""
    cuda = FakeCuda(fault="illegal", shared=True)
    opened = device(cuda)
    for _ in range(2):
        with pytest.raises(DeviceError, match="ILLEGAL_ADDRESS"):
            opened.run(MADE, BATCH)
        cuda.fault = ""


def test_a_hang_ends_and_keeps_its_context_until_the_launch_does() -> None:
    cuda = FakeCuda(fault="hang", after=1)
    opened = device(cuda, seconds=0.01)
    with pytest.raises(HungError, match=r"hung: the launch did not end within 0\.01 s; the batch is void"):
        opened.run(MADE, BATCH)
    assert cuda.references == 1
    with pytest.raises(LostError, match="a launch that hung still runs; end this process"):
        opened.run(MADE, BATCH)


def test_after_a_hang_that_ended_there_is_a_fresh_context() -> None:
    cuda = FakeCuda(fault="hang", after=1)
    opened = device(cuda, seconds=0.01)
    with pytest.raises(HungError):
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
    with pytest.raises(LostError, match=r"recorded before stays valid; open cuda:0 anew once it is back"):
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


# What is not here


ABSENT: dict[str, tuple[FakeCuda | None, dict[str, Any], str]] = {
    "no driver": (None, {}, "no NVIDIA driver .libcuda.so.1.; run on a machine with one"),
    "container": (None, {"files": ("/.dockerenv",)}, "in this container; on a GPU host start it with `docker run"),
    "library not mounted": (None, {"files": ("/dev/nvidiactl",)}, "device nodes are here but libcuda.so.1 is not"),
    "wsl": (None, {"proc_version": "Linux version 5.15-microsoft-standard-WSL2"}, "WSL without libcuda.so.1: install"),
    "no bindings": (FakeCuda(), {"missing": "cuda.bindings.driver"}, r"pip install 'mmaprobe\[cuda13\]'"),
    "no device": (FakeCuda(init=100), {}, "the NVIDIA driver is here but has no GPU; see: nvidia-smi -L"),
    "no device in a container": (FakeCuda(init=100), {"files": ("/.dockerenv",)}, "in this container but no GPU is"),
    "count of none": (FakeCuda(gpus=0), {}, "has no GPU"),
    "hidden": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": ""}}, "type: unset CUDA_VISIBLE_DEVICES"),
    "hidden by -1": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": "-1"}}, "='-1' hides every GPU"),
    "wrong": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": "7"}}, "='7' names no GPU of this machine"),
    "MIG without a slice": (FakeCuda(init=100), {"nvml": FakeNvml(mig=1)}, "MIG is on but there is no slice"),
    "mismatch": (FakeCuda(init=803), {}, "kernel module are of different versions; reboot"),
    "fabric": (FakeCuda(init=802), {}, "systemctl start nvidia-fabricmanager"),
    "stub": (FakeCuda(init=34), {}, "toolkit's stub"),
    "unknown": (FakeCuda(init=999), {}, "cuInit answers CUDA_ERROR_UNKNOWN .999."),
    "new GPU": (FakeCuda(capability=(13, 7)), {}, "compute capability 13.7 is none of the catalog's .sm_70,"),
}


@pytest.mark.parametrize("case", ABSENT)
def test_what_is_missing_is_named(case: str) -> None:
    """One line of exit code 3 that names the device and what to do."""
    cuda, facts, said = ABSENT[case]
    with pytest.raises(NotHereError, match=said) as failed:
        open_cuda("0", machine(cuda, **facts))
    assert failed.value.exit_code == 3
    assert str(failed.value).startswith("cuda:0: ")
    assert "\n" not in str(failed.value)


def test_an_index_beyond_the_last() -> None:
    with pytest.raises(NotHereError, match="cuda:1: cuda:0 is the only GPU here; see: nvidia-smi -L"):
        open_cuda("1", machine(FakeCuda()))
    with pytest.raises(NotHereError, match="cuda:5: there are cuda:0 to cuda:3 here"):
        open_cuda("5", machine(FakeCuda(gpus=4)))


@pytest.mark.parametrize(
    ("name", "said"),
    [("x", "named by number, such as cuda:0"), ("0?tral=no", "did you mean trial"), ("0?trial=maybe", "yes or no"),
     ("0?timeout=0", "option timeout=0 must lie in")],
)  # fmt: skip
def test_wrong_names(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_cuda(name, machine(FakeCuda()))


def test_a_gpu_that_another_process_has() -> None:
    with pytest.raises(NotHereError, match="Exclusive_Process, and another process has the GPU; see: nvidia-smi"):
        run(FakeCuda(mode=3, retain=46))
    with pytest.raises(NotHereError, match="Prohibited: nobody may compute on it"):
        run(FakeCuda(mode=2, retain=46))
    with pytest.raises(NotHereError, match="the GPU is unavailable; see: nvidia-smi -q"):
        run(FakeCuda(retain=46))


def test_a_driver_too_old_for_the_binary() -> None:
    with pytest.raises(NotHereError, match=r"serves CUDA 12\.4 and cannot load .*update the driver, or pip install 'm"):
        run(FakeCuda(version=12040))
    with pytest.raises(NotHereError, match=r"cannot load .*NO_BINARY_FOR_GPU"):
        run(FakeCuda(fault="no binary"))


def test_a_binary_for_another_architecture() -> None:
    with pytest.raises(DeviceError, match=r"is sm_90a, but the kernel of .* its binary is for sm_80"):
        run(FakeCuda(), cubin=cubin(MADE, 80))
    with pytest.raises(DeviceError, match="was made for sm_80"):
        run(FakeCuda(), architecture="sm_80")
    with pytest.raises(DeviceError, match="are no cubin"):
        run(FakeCuda(), cubin=b"PTX")


def test_an_instruction_that_this_gpu_lacks() -> None:
    lacking = instruction("tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16")
    opened = device(FakeCuda())
    assert opened.supports(MADE)
    assert re.match("this GPU lacks it: sm_90a has no tcgen05; sm_100a, ", opened.supports(lacking).reason)
    with pytest.raises(NotHereError, match=r"this GPU lacks it: .*; see `mmaprobe instructions sm_90a`"):
        opened.run(lacking, random_batch(lacking, 1, 1))


def test_this_machine_says_what_it_lacks() -> None:
    """Through the registry."""
    if Machine().library():
        pytest.skip("there is a driver here")
    with pytest.raises(NotHereError, match=r"^cuda:0: .*libcuda\.so\.1"):
        open_device("cuda:0")


# What it is


def test_identity() -> None:
    """Name, UUID, architecture, driver, VBIOS, ECC and clocks; read once, so that it stays the same."""
    opened = open_cuda("0", machine(FakeCuda(), nvml=FakeNvml()))
    assert opened.info() == {
        "architecture": "sm_90a",
        "model_name": "NVIDIA H200",
        "uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
        "mig": "no",
        "driver": "580.65.06",
        "vbios": "96.00.A5.00.01",
        "ecc": "on",
        "clock_sm_mhz": "1980",
        "clock_memory_mhz": "3201",
        "cuda_version": "13.0",
        "multiprocessors": "132",
    }
    assert opened.siblings() == ["cuda:0"]


def test_identity_of_a_slice_without_nvml() -> None:
    found = open_cuda("", machine(FakeCuda(name=b"NVIDIA A100-SXM4-40GB MIG 1g.5gb", capability=(8, 0)))).info()
    assert (found["architecture"], found["mig"], found["ecc"]) == ("sm_80", "1g.5gb", "not read")
    assert found["uuid"].startswith("MIG-")


@pytest.mark.parametrize(("major", "minor", "name"), [(7, 0, "sm_70"), (8, 9, "sm_89"), (10, 0, "sm_100a"),
                                                      (12, 0, "sm_120a"), (12, 1, "sm_121a")])  # fmt: skip
def test_architectures_by_compute_capability(major: int, minor: int, name: str) -> None:
    assert driver(FakeCuda(capability=(major, minor))).architecture == name


# The first run


def trial(fault: str, seconds: float = 60) -> ChildTrial:
    command = (sys.executable, str(Path(fake_cuda.__file__).with_name("fake_trial.py")), fault)
    return ChildTrial("cuda:0", command, seconds)


def test_the_first_run_is_in_a_child() -> None:
    tried = trial("")
    opened = device(FakeCuda(), tried)
    assert (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
    opened.run(OTHER, random_batch(OTHER, 2, 1))
    tried._child.stop()
    opened.run(MADE, BATCH)


FIRST = {
    "wrong": "first run in a child process: .*wrong known answer before the batch",
    "hang": "first run in a child process: .*hung",
    "die": "in a child: .*ended with exit code 9",
}


@pytest.mark.parametrize("fault", FIRST)
def test_a_first_run_that_fails_never_reaches_this_process(fault: str) -> None:
    cuda = FakeCuda()
    opened = device(cuda, trial(fault))
    with pytest.raises(DeviceError, match=FIRST[fault]):
        opened.run(MADE, BATCH)
    assert not cuda.launches


def test_the_real_child_tries_a_device_by_name() -> None:
    """The command that ``cuda:N`` starts, on a device that is here, and one that is not."""
    ChildTrial("the model", command("model:sm_90a"), 60).check(MADE)
    with pytest.raises(DeviceError, match=r"its first run on nobody, in a child: .*unknown device 'nobody'"):
        ChildTrial("nobody", command("nobody"), 60).check(MADE)


def test_the_child_has_an_exclusive_gpu_to_itself() -> None:
    cuda = FakeCuda(mode=3)

    class Watch:
        def check(self, instruction: Instruction) -> None:
            assert cuda.references == 0
            tried.append(instruction)

    tried: list[Instruction] = []
    opened = device(cuda, Watch())
    for made in (MADE, OTHER, MADE):
        opened.run(made, random_batch(made, 2, 1))
    assert tried == [MADE, OTHER]
    assert cuda.contexts == 2


# Arrays on the GPU


class Interfaced:
    """An array of a library that speaks ``__cuda_array_interface__``."""

    def __init__(self, cuda: FakeCuda, value: Any, **said: Any) -> None:
        self.address = cuda.array(value.view(np.uint8))
        self.__cuda_array_interface__ = {
            "shape": value.shape, "typestr": value.dtype.str, "data": (self.address, False), "version": 3, **said,
        }  # fmt: skip


class Tensor:
    """An array of a library that speaks DLPack."""

    def __init__(self, cuda: FakeCuda, value: Any, kind: int = 2) -> None:
        self.value, self.kind, self.address, self.streams = value, kind, cuda.array(value), []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.streams.append(stream)
        capsule = self.value.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        at = get(capsule, b"dltensor")
        ctypes.c_void_p.from_address(at).value = self.address
        ctypes.c_int32.from_address(at + 8).value = self.kind
        return capsule


def copies_in(cuda: FakeCuda, *operands: Any) -> tuple[Bits, int]:
    """D through the Python API, and how many bytes of operands went to the device for the batch itself."""
    bound = OpenDevice(device(cuda)).instruction(MADE)
    bound(*(value[:1] for _, value in BATCH.items()))
    before = cuda.copied
    bound(*(value[:0] for _, value in BATCH.items()))
    known = cuda.copied - before
    d = bound(*operands)
    return d, cuda.copied - before - 2 * known


@pytest.mark.parametrize("kind", [Interfaced, Tensor])
def test_arrays_on_this_gpu_are_read_where_they_are(kind: Any) -> None:
    cuda = FakeCuda()
    d, copied = copies_in(cuda, *(kind(cuda, value) for _, value in BATCH.items()))
    assert (np.asarray(d) == model(MADE, BATCH)).all()
    assert copied == 0


def test_arrays_here_and_there_mix_and_types_are_viewed() -> None:
    cuda = FakeCuda()
    a = Tensor(cuda, BATCH.a.view(np.float16))
    d, copied = copies_in(cuda, a, BATCH.b, BATCH.c)
    assert d.dtype == np.float32
    assert (d.view(np.uint32) == model(MADE, BATCH)).all()
    assert copied == BATCH.b.nbytes + dict(BATCH.items())["c"].nbytes
    assert a.streams == [1]


def test_a_batch_on_the_gpu_is_split_too() -> None:
    cuda = FakeCuda(memory=40 * item_bytes(MADE))
    d, copied = copies_in(cuda, Interfaced(cuda, BATCH.a), BATCH.b, BATCH.c)
    assert (d == model(MADE, BATCH)).all()
    assert copied < BATCH.a.nbytes + BATCH.b.nbytes + dict(BATCH.items())["c"].nbytes
    one = OpenDevice(device(cuda)).instruction(MADE)(Interfaced(cuda, BATCH.a[0]), BATCH.b[0], BATCH.c[0])
    assert (one == model(MADE, BATCH)[0]).all()


def test_another_stream_is_waited_for() -> None:
    cuda = FakeCuda()
    copies_in(cuda, Interfaced(cuda, BATCH.a, stream=77), Interfaced(cuda, BATCH.b, stream=1), BATCH.c)
    assert cuda.settled == [77]


def test_operands_of_few_bits_are_looked_at_here() -> None:
    """A code outside of its format would not be seen on the GPU."""
    made = instruction("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32")
    batch = random_batch(made, 2, 1)

    class Copied(Interfaced):
        def get(self) -> Any:
            return batch.a

    cuda = FakeCuda()
    d = OpenDevice(device(cuda)).instruction(made)(Copied(cuda, batch.a), batch.b, batch.c)
    assert (d == model(made, batch)).all()


def test_arrays_that_cannot_be_read() -> None:
    cuda = FakeCuda(gpus=2)
    bound = OpenDevice(device(cuda)).instruction(MADE)
    elsewhere = Interfaced(cuda, BATCH.a)
    cuda.foreign[elsewhere.address] = 1
    with pytest.raises(UsageError, match="an operand lies on cuda:1; move it to cuda:0, or open cuda:1"):
        bound(elsewhere, BATCH.b, BATCH.c)
    turned = Interfaced(cuda, BATCH.a, strides=(512, 2, 32))
    with pytest.raises(UsageError, match=r"operand a .* is not contiguous; copy it first: cupy.ascontiguousarray"):
        bound(turned, BATCH.b, BATCH.c)
    with pytest.raises(UsageError, match=r"operand a must have shape .21, 16, 16., got .21, 16, 8."):
        bound(Interfaced(cuda, BATCH.a[:, :, :8].copy()), BATCH.b, BATCH.c)
    with pytest.raises(UsageError, match="operand a is f16 and takes uint16 bit patterns or float16, got uint32"):
        bound(Interfaced(cuda, BATCH.a.astype(np.uint32)), BATCH.b, BATCH.c)
    assert (bound(*(value for _, value in BATCH.items())) == model(MADE, BATCH)).all()


# The stand-in itself


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
        with pytest.raises(RuntimeError, match="is an NVIDIA driver library and can only be found via system search"):
            getattr(real, name)(*given)
