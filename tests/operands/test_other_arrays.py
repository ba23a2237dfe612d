"""Arrays of CuPy go in and come out as they came, by a stand-in as strict as it is.  PyTorch's: ``torch_tensors.py``.

CuPy refuses to become a NumPy array unasked, and its functions run where its current device is; what a model does not
compute on a GPU is copied by ``get`` and put back beside what came in.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

import mmaprobe
from mmaprobe.errors import UsageError

MMA = "mma.m16n8k16.f32.f16.f16.f32"


class Device:
    """``cupy.cuda.Device``: inside of it arrays are made there."""

    current: ClassVar[list[int]] = [0]

    def __init__(self, number: int) -> None:
        self.id = number

    def __enter__(self) -> Device:
        self.current.append(self.id)
        return self

    def __exit__(self, *_: object) -> None:
        self.current.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    __hash__ = None  # type: ignore[assignment]


class Array:
    """``cupy.ndarray``: memory of a GPU, which this one counts the ways out of."""

    copies = 0

    def __init__(self, value: Any, device: int) -> None:
        self._value, self.device = value, Device(device)
        self.dtype, self.shape, self.ndim, self.size = value.dtype, value.shape, value.ndim, value.size

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind = self._value.__array_interface__
        return {"shape": self.shape, "typestr": kind["typestr"], "version": 3, "data": (0, False), "stream": 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("this memory is no memory of the host")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __len__(self) -> int:
        return int(self.shape[0])

    def get(self) -> Any:
        Array.copies += 1
        return self._value.copy()

    def view(self, dtype: Any) -> Array:
        return Array(self._value.view(dtype), self.device.id)


Array.__module__ = "cupy"


def asarray(value: Any) -> Array:
    """``cupy.asarray``: of NumPy's own types alone, onto the current device."""
    if value.dtype.isbuiltin != 1:
        raise ValueError(f"Unsupported dtype {value.dtype}")
    return Array(np.array(value), Device.current[-1])


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("cupy")
    vars(module).update(ndarray=Array, asarray=asarray)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@contextmanager
def refused(said: str) -> Iterator[None]:
    with pytest.raises(UsageError, match=said):
        yield


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def test_tiles_of_cupy(cupy: types.ModuleType) -> None:
    """By values and by bits; the result lies on the GPU of the operands, in the type that goes with theirs."""
    model = mmaprobe.model("sm_90a", MMA)
    a, b, c = numbers(3, 16, 16).astype("f2"), numbers(3, 16, 8).astype("f2"), numbers(3, 16, 8).astype("f4")
    expected = model(a, b, c)
    with Device(1):
        given = [asarray(each) for each in (a, b, c)]
        bits = [asarray(each.view(f"u{each.itemsize}")) for each in (a, b, c)]
    for operands, wanted in ((given, expected), (bits, expected.view("u4"))):
        before = Array.copies
        d = model(*operands)
        assert Array.copies == before + 3
        assert (type(d), d.device, d.dtype, d.shape) == (Array, Device(1), wanted.dtype, wanted.shape)
        assert (d.get().view("u4") == wanted.view("u4")).all()
    assert Device.current == [0]


def test_vectors_of_cupy(cupy: types.ModuleType) -> None:
    """Of one axis gives a result of no axis, which is CuPy's too."""
    model = mmaprobe.model("sm_90a", MMA)
    a, b = numbers(16).astype("f2"), numbers(16).astype("f2")
    d = model.dot(asarray(a), asarray(b), asarray(np.float32(0.5)))
    assert (type(d), d.shape, d.dtype) == (Array, (), np.dtype("f4"))
    assert d.get() == model.dot(a, b, np.float32(0.5))


def test_whole_matrices_of_cupy(cupy: types.ModuleType) -> None:
    product = mmaprobe.gemm("openblas_haswell_f32")
    a, b = numbers(5, 40).astype("f4"), numbers(40, 7).astype("f4")
    d = product(asarray(a), asarray(b))
    assert type(d) is Array
    assert (d.get() == product(a, b)).all()


def test_formats_that_cupy_has_no_type_for(cupy: types.ModuleType) -> None:
    """They go in as bits: bf16 and FP8."""
    model = mmaprobe.model("sm_90a", "wgmma.m64n8k16.f32.bf16.bf16")
    a, b = numbers(2, 16).astype(ml_dtypes.bfloat16), numbers(2, 16).astype(ml_dtypes.bfloat16)
    c = numbers(2).astype("f4")
    d = model.dot(asarray(a.view("u2")), asarray(b.view("u2")), asarray(c.view("u4")))
    assert (d.get() == model.dot(a, b, c).view("u4")).all()


def test_a_wrong_type_of_cupy_is_one_line(cupy: types.ModuleType) -> None:
    model = mmaprobe.model("sm_90a", MMA)
    half, wide = asarray(numbers(16).astype("f2")), asarray(numbers(16))
    with refused("operand b is f16 and takes uint16 bit patterns or float16, got float64 of shape .*never converted"):
        model.dot(half, wide, asarray(np.float32(0)))
