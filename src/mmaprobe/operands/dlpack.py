"""Read a tensor through DLPack, whatever its element type (bfloat16 and float8 included).

NumPy's own reader knows NumPy's types alone, so the tensor's description is
read here and its elements copied; nothing of the producer is imported.
Source: DLPack 1.1, ``dlpack.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError

HOST = (1, 3, 11)  # kDLCPU, kDLCUDAHost and kDLROCMHost (pinned memory)

_NUMBERS = {0: "int", 1: "uint", 2: "float"}
_SMALL = {
    4: "bfloat16",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def element_type(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    """The NumPy or ml_dtypes type of a DLPack element; UsageError for one that has none."""
    name = _SMALL.get(code, f"{_NUMBERS.get(code, '')}{bits}")
    if lanes == 1 and code in _SMALL:
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    if lanes == 1 and code == 6:
        return np.dtype(bool)
    if lanes != 1 or code not in _NUMBERS:
        raise UsageError(f"a DLPack tensor of element type {code} with {bits} bits and {lanes} lanes cannot be read")
    return np.dtype(name)


class TensorDescription(NamedTuple):
    """What a capsule says of its tensor; ``strides`` count elements, None where they are those of a row-major one."""

    address: int
    device_type: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[Any]


def describe(capsule: Any) -> TensorDescription:
    """The tensor of a capsule, which must outlive what is done with it; UsageError for an unknown element type."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    dtype = element_type(tensor.code, tensor.bits, tensor.lanes)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    return TensorDescription((tensor.data or 0) + tensor.byte_offset, tensor.device_type, shape, strides, dtype)


def read_tensor(value: Any) -> NDArray[Any]:
    """A copy of a tensor in host memory; its capsule stays unused and frees what it holds."""
    capsule = value.__dlpack__()
    address, device_type, shape, steps, dtype = describe(capsule)
    if device_type not in HOST:
        raise UsageError(f"a DLPack tensor on device type {device_type} is not in host memory")
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = None
    reach = int(np.prod(shape, dtype=np.int64)) - 1
    if steps is not None:
        strides = tuple(step * dtype.itemsize for step in steps)
        reach = sum(step * (size - 1) for step, size in zip(steps, shape, strict=True))
    memory = (ctypes.c_char * ((reach + 1) * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memoryview(memory), 0, strides).copy()
