"""Arrays that lie on a GPU are read where they are, against stand-ins for NVIDIA's driver and ROCm's runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest

from emulator.batches import random_batch
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu.launch import item_bytes
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch, Bits
from stand_ins import fake_cuda, fake_hip
from stand_ins.fake_cuda import Interfaced
from stand_ins.vendors import AMD, NVIDIA, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")


@dataclass(frozen=True)
class On:
    """A vendor's stand-in and its device; DLPack's numbers of its memory and of its default stream."""

    vendor: Vendor
    fake: Callable[..., Any]
    device: Callable[[Any], Any]
    kind: int
    stream: int

    @cached_property
    def made(self) -> Instruction:
        return instruction(self.vendor.half, self.vendor.architecture)

    @cached_property
    def batch(self) -> Batch:
        return random_batch(self.made, 21, 1)

    @cached_property
    def c(self) -> Bits:
        return dict(self.batch.items())["c"]

    @cached_property
    def d(self) -> Bits:
        return self.vendor.model(self.made, self.batch)


CUDA = On(NVIDIA, fake_cuda.FakeCuda, fake_cuda.device, 2, 1)
HIP = On(AMD, fake_hip.FakeHip, fake_hip.device, 10, 0)


@pytest.fixture(params=[CUDA, HIP], ids=lambda on: on.vendor.scheme)
def on(request: pytest.FixtureRequest) -> On:
    found: On = request.param
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


def copies_in(on: On, gpu: Any, *operands: Any) -> tuple[Bits, int]:
    """D through the Python API, and how many bytes of operands went to the device for the batch itself."""
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    bound(*(value[:1] for _, value in on.batch.items()))
    before = gpu.copied
    bound(*(value[:0] for _, value in on.batch.items()))
    known = gpu.copied - before
    d = bound(*operands)
    return d, gpu.copied - before - 2 * known


def test_arrays_on_this_gpu_are_read_where_they_are(on: On) -> None:
    for kind in (Interfaced, partial(Tensor, kind=on.kind)):
        gpu = on.fake()
        d, copied = copies_in(on, gpu, *(kind(gpu, value) for _, value in on.batch.items()))
        assert (np.asarray(d) == on.d).all()
        assert copied == 0


def test_arrays_here_and_there_mix_and_types_are_viewed(on: On) -> None:
    gpu = on.fake()
    a = Tensor(gpu, on.batch.a.view(np.float16), on.kind)
    d, copied = copies_in(on, gpu, a, on.batch.b, on.c)
    assert d.dtype == np.float32
    assert (d.view(np.uint32) == on.d).all()
    assert copied == on.batch.b.nbytes + on.c.nbytes
    assert a.streams == [on.stream]


def test_a_batch_on_the_gpu_is_split_too(on: On) -> None:
    gpu = on.fake(memory=40 * item_bytes(on.made))
    d, copied = copies_in(on, gpu, Interfaced(gpu, on.batch.a), on.batch.b, on.c)
    assert (d == on.d).all()
    assert copied < on.batch.a.nbytes + on.batch.b.nbytes + on.c.nbytes
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    assert (bound(Interfaced(gpu, on.batch.a[0]), on.batch.b[0], on.c[0]) == on.d[0]).all()


def test_another_stream_is_waited_for(on: On) -> None:
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


def test_arrays_that_cannot_be_read(on: On) -> None:
    gpu, b = on.fake(gpus=2), on.batch.b
    bound = OpenDevice(on.device(gpu)).instruction(on.made)
    elsewhere = Interfaced(gpu, on.batch.a)
    gpu.foreign[elsewhere.address] = 1
    there = f"{on.vendor.scheme}:1"
    with pytest.raises(
        UsageError, match=f"an operand lies on {there}; move it to {on.vendor.scheme}:0, or open {there}"
    ):
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
    gpu = HIP.fake()
    lost = Interfaced(gpu, HIP.batch.a)
    gpu.allocated.clear()
    with pytest.raises(UsageError, match="hip:0: an operand lies where HIP knows no memory; copy it to the host first"):
        OpenDevice(HIP.device(gpu)).instruction(HIP.made)(lost, HIP.batch.b, HIP.c)
