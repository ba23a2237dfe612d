"""The edge of the package: what people hold becomes bit patterns, and results become what they hold.

Accepted are NumPy and ml_dtypes arrays and anything that speaks DLPack or
``__cuda_array_interface__`` (copied to the host).  An array is taken as bits
when it holds the operand's unsigned container, or viewed as bits when it holds
the operand's own format; nothing is ever converted by value.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.operands import dlpack
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.resident import Resident, resident

_HELD_AS = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e3m2": "float6_e3m2fn",
    "e2m3": "float6_e2m3fn",
    "e2m1": "float4_e2m1fn",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "float8_e4m3fn",
    "s8": "int8",
    "s16": "int16",
    "s32": "int32",
    "s64": "int64",
    "s4": "int4",
    "u4": "uint4",
    "b1": "bool",
}


def held_as(fmt: Format) -> np.dtype[Any] | None:
    """The array type whose elements are this format's bit patterns, other than its unsigned container."""
    name = _HELD_AS.get(fmt.name)
    if name is None:
        return None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name, name))
    return dtype


def to_host(value: Any) -> NDArray[Any]:
    """An array in host memory; one on a GPU is copied by its own ``get``, ``cpu`` or ``copy_to_host``."""
    if isinstance(value, np.ndarray):
        return value
    if _on_gpu(value):
        for method in ("get", "cpu", "copy_to_host"):
            if callable(copy := getattr(value, method, None)):
                return to_host(copy())
    if hasattr(value, "__dlpack__"):
        return dlpack.read_tensor(value)
    return np.asarray(value)


def _on_gpu(value: Any) -> bool:
    if hasattr(value, "__cuda_array_interface__"):
        return True
    return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in dlpack.HOST


def to_bits(who: str, name: str, value: Any, fmt: Format, kinds: Collection[int] = ()) -> tuple[Bits | Resident, bool]:
    """The operand's bit patterns, and whether it came in its own type rather than as bits.

    An array in GPU memory of one of these kinds (``resident``) stays there, if
    every bit pattern of its container is one of the format's; others are looked at.
    Raises ValueError naming the operand, what it may be and what came.
    """
    try:
        array = (resident(value, kinds) if fmt.code_limit == 1 << fmt.container_bits else None) or to_host(value)
    except (ValueError, BufferError) as error:
        raise UsageError(f"{who}: operand {name} is not an array that can be read: {error}") from None
    dtype, typed = array.dtype.newbyteorder("="), held_as(fmt)
    if dtype not in (fmt.dtype, typed):
        also = f" or {typed}" if typed else ""
        raise UsageError(
            f"{who}: operand {name} is {fmt.name} and takes {fmt.dtype} bit patterns{also}, "
            f"got {array.dtype} of shape {array.shape}; values are never converted"
        )
    own = dtype != fmt.dtype
    if isinstance(array, Resident):
        return array.view(fmt.dtype), own
    if not own:
        return array.astype(fmt.dtype, copy=False), False
    return array.astype(dtype, copy=False).view(fmt.dtype), True


def from_bits(bits: Bits, fmt: Format, typed: bool, like: Any) -> Any:
    """A result in the caller's kind.

    ``typed``: in the array type that is the format's own, where it has one.
    It becomes an array of the library that ``like`` belongs to (found among
    the modules already loaded), on the device of ``like``.
    """
    own = held_as(fmt) if typed else None
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    if isinstance(like, np.ndarray) or not callable(asarray := getattr(library, "asarray", None)):
        return bits if own is None else bits.view(own)
    known_to_numpy = own is None or own.isbuiltin == 1
    with _beside(like):
        array = asarray(bits.view(own) if own is not None and known_to_numpy else bits)
        if own is not None and not known_to_numpy:
            array = array.view(getattr(library, own.name, own))
    return array.to(like.device) if hasattr(array, "to") else array


def _beside(like: Any) -> AbstractContextManager[Any]:
    """What puts an array that is made inside on the GPU of ``like``: its device, where that is a context (CuPy)."""
    device: Any = getattr(like, "device", None)
    enters = hasattr(device, "__enter__") and not hasattr(like, "to")
    return device if enters else nullcontext()
