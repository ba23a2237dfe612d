"""Arrays that lie on a GPU are read where they are, against stand-ins for NVIDIA's driver and ROCm's runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest

import fake_cuda
import fake_hip
from emulator.batches import random_batch
from fake_cuda import Interfaced
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu_launch import item_bytes
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError


class Hip(fake_hip.FakeHip):
    """Where other libraries have arrays, which stay; ``copied`` bytes went to the GPU."""

    def __init__(self, gpus: int = 1, memory: int = 1 << 30) -> None:
        super().__init__("gfx942", lambda made, batch: open_model("gfx942").run(made, batch))
        self.count, self.free, self.copied = gpus, memory, 0
        self.held: dict[int, Any] = {}
        self.foreign: dict[int, int] = {}
        self.settled: list[int] = []

    def array(self, value: Bits) -> int:
        """The address of a copy of an array, as another library would make it."""
        held = ctypes.create_string_buffer(value.tobytes(), max(value.nbytes, 1))
        self.held[ctypes.addressof(held)] = held
        return ctypes.addressof(held)

    def _hipPointerGetAttribute(self, found: Any, attribute: int, address: Any) -> int:
        assert attribute == 9, "HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL"
        starts = [start for start, held in self.held.items() if 0 <= address.value - start < len(held)]
        found._obj.value = self.foreign.get(address.value, 0) if starts else -2
        return 0 if starts else 1

    def _hipStreamSynchronize(self, stream: Any) -> None:
        self.settled.append(stream.value)

    def _hipMemGetInfo(self, free: Any, whole: Any) -> None:
        free._obj.value = whole._obj.value = self.free

    def _hipMemcpy(self, to: Any, start: Any, size: Any, kind: int) -> None:
        self.copied += size.value if kind == 1 else 0
        ctypes.memmove(to, start, size.value)


@dataclass(frozen=True)
class Vendor:
    """A stand-in, its device, an instruction; DLPack's number of its memory and of its default stream."""

    scheme: str
    fake: Callable[..., Any]
    device: Callable[[Any], Any]
    architecture: str
    name: str
    kind: int
    stream: int

    @cached_property
    def made(self) -> Instruction:
        return instruction(self.name, self.architecture)

    @cached_property
    def batch(self) -> Batch:
        return random_batch(self.made, 21, 1)

    @cached_property
    def c(self) -> Bits:
        return dict(self.batch.items())["c"]

    @cached_property
    def d(self) -> Bits:
        return open_model(self.architecture).run(self.made, self.batch)


F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
VENDORS = [
    Vendor("cuda", fake_cuda.FakeCuda, fake_cuda.device, "sm_90a", F16, 2, 1),
    Vendor("hip", Hip, fake_hip.device, "gfx942", "v_mfma_f32_16x16x16_f16", 10, 0),
]


@pytest.fixture(params=VENDORS, ids=lambda vendor: vendor.scheme)
def on(request: pytest.FixtureRequest) -> Vendor:
    found: Vendor = request.param
    return found


class Tensor:
    """An array of a library that speaks DLPack."""

    def __init__(self, gpu: Any, value: Any, kind: int = 2) -> None:
        self.value, self.kind, self.address, self.streams = value, kind, gpu.array(value), []

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


def copies_in(on: Vendor, gpu: Any, *operands: Any) -> tuple[Bits, int]:
    """D through the Python API, and how many bytes of operands went to the device for the batch itself."""
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    bound(*(value[:1] for _, value in on.batch.items()))
    before = gpu.copied
    bound(*(value[:0] for _, value in on.batch.items()))
    known = gpu.copied - before
    d = bound(*operands)
    return d, gpu.copied - before - 2 * known


def test_arrays_on_this_gpu_are_read_where_they_are(on: Vendor) -> None:
    for kind in (Interfaced, partial(Tensor, kind=on.kind)):
        gpu = on.fake()
        d, copied = copies_in(on, gpu, *(kind(gpu, value) for _, value in on.batch.items()))
        assert (np.asarray(d) == on.d).all()
        assert copied == 0


def test_arrays_here_and_there_mix_and_types_are_viewed(on: Vendor) -> None:
    gpu = on.fake()
    a = Tensor(gpu, on.batch.a.view(np.float16), on.kind)
    d, copied = copies_in(on, gpu, a, on.batch.b, on.c)
    assert d.dtype == np.float32
    assert (d.view(np.uint32) == on.d).all()
    assert copied == on.batch.b.nbytes + on.c.nbytes
    assert a.streams == [on.stream]


def test_a_batch_on_the_gpu_is_split_too(on: Vendor) -> None:
    gpu = on.fake(memory=40 * item_bytes(on.made))
    d, copied = copies_in(on, gpu, Interfaced(gpu, on.batch.a), on.batch.b, on.c)
    assert (d == on.d).all()
    assert copied < on.batch.a.nbytes + on.batch.b.nbytes + on.c.nbytes
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    assert (bound(Interfaced(gpu, on.batch.a[0]), on.batch.b[0], on.c[0]) == on.d[0]).all()


def test_another_stream_is_waited_for(on: Vendor) -> None:
    gpu = on.fake()
    copies_in(on, gpu, Interfaced(gpu, on.batch.a, stream=77), Interfaced(gpu, on.batch.b, stream=1), on.c)
    assert gpu.settled == [77]


def test_operands_of_few_bits_are_looked_at_here() -> None:
    """A code outside of its format would not be seen on the GPU."""
    made = instruction("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32")
    batch = random_batch(made, 2, 1)

    class Copied(Interfaced):
        def get(self) -> Any:
            return batch.a

    cuda = fake_cuda.FakeCuda()
    d = OpenDevice(fake_cuda.device(cuda)).instruction(made)(Copied(cuda, batch.a), batch.b, batch.c)
    assert (d == fake_cuda.model(made, batch)).all()


def test_arrays_that_cannot_be_read(on: Vendor) -> None:
    gpu, b = on.fake(gpus=2), on.batch.b
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    elsewhere = Interfaced(gpu, on.batch.a)
    gpu.foreign[elsewhere.address] = 1
    there = f"{on.scheme}:1"
    with pytest.raises(UsageError, match=f"an operand lies on {there}; move it to {on.scheme}:0, or open {there}"):
        bound(elsewhere, b, on.c)
    turned = Interfaced(gpu, on.batch.a, strides=(512, 2, 32))
    with pytest.raises(UsageError, match=r"operand a .* is not contiguous; copy it first: cupy.ascontiguousarray"):
        bound(turned, b, on.c)
    with pytest.raises(UsageError, match=r"operand a must have shape .21, 16, 16., got .21, 16, 8."):
        bound(Interfaced(gpu, on.batch.a[:, :, :8].copy()), b, on.c)
    with pytest.raises(UsageError, match="operand a is f16 and takes uint16 bit patterns or float16, got uint32"):
        bound(Interfaced(gpu, on.batch.a.astype(np.uint32)), b, on.c)
    assert (bound(*(value for _, value in on.batch.items())) == on.d).all()


def test_memory_that_is_not_amds() -> None:
    """An array of a CUDA library beside, or one that is gone."""
    gpu, on = Hip(), VENDORS[1]
    lost = Interfaced(gpu, on.batch.a)
    gpu.held.clear()
    with pytest.raises(UsageError, match="hip:0: an operand lies where HIP knows no memory; copy it to the host first"):
        OpenDevice(on.device(gpu)).instruction(on.made)(lost, on.batch.b, on.c)
