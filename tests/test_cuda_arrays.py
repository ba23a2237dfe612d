"""Arrays that lie on a GPU are read where they are, against a stand-in for NVIDIA's driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from emulator.batches import random_batch
from fake_cuda import FakeCuda, Interfaced, device, model
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.batch import Bits
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu_launch import item_bytes
from mmaprobe.errors import UsageError

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
SPARSE = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
BATCH = random_batch(MADE, 21, 1)


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
