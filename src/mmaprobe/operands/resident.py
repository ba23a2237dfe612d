"""Arrays that lie in a GPU's memory and stay there.

Described by DLPack where a library speaks it, else by ``__cuda_array_interface__``
(CuPy, PyTorch, Numba; under ROCm, too).  What was begun on the array is over
before a launch on the default stream: DLPack's producer sees to it, of the
other interface the named stream is waited for.
Source: DLPack 1.1; Python array API, ``__dlpack__`` (how the default stream is
numbered); Numba, CUDA Array Interface version 3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from mmaprobe.errors import UsageError
from mmaprobe.operands import dlpack
from mmaprobe.vendors import every


@dataclass(frozen=True, eq=False)
class Resident:
    """A row-major array at an address; ``stream`` is to be waited for before it is read, ``owner`` keeps it alive."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    owner: Any = None
    stream: int | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def view(self, dtype: np.dtype[Any]) -> Resident:
        """The same bytes as another type of the same size."""
        return replace(self, dtype=dtype)

    def __getitem__(self, index: slice | None) -> Resident:
        """Items ``start`` to ``stop``, or (None) the whole as one item."""
        if index is None:
            return replace(self, shape=(1, *self.shape))
        start, stop, _ = index.indices(self.shape[0])
        each = prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, address=self.address + start * each, shape=(stop - start, *self.shape[1:]))


def resident(value: Any, kinds: Collection[int]) -> Resident | None:
    """The array where it lies in memory of one of these kinds (DLPack's device types), None elsewhere.

    UsageError for one that is not contiguous or of an element type that cannot be read.
    """
    if hasattr(value, "__dlpack_device__"):
        kind = int(value.__dlpack_device__()[0])
        if kind not in kinds:
            return None
        try:
            capsule = value.__dlpack__(stream=_default_streams()[kind])
        except BufferError:  # of an element type that its DLPack does not know, such as CuPy's of float8
            if not hasattr(value, "__cuda_array_interface__"):
                raise
        else:
            found = dlpack.describe(capsule)
            return _contiguous(Resident(found.address, found.shape, found.dtype, (value, capsule)), found.strides)
    if not kinds or not hasattr(value, "__cuda_array_interface__"):
        return None
    said = value.__cuda_array_interface__
    dtype, stream = np.dtype(said["typestr"]), said.get("stream")
    if (
        dtype.kind == "V"
        and isinstance(own := getattr(value, "dtype", None), np.dtype)
        and own.itemsize == dtype.itemsize
    ):
        dtype = own  # of ml_dtypes, which the interface spells as bytes
    steps = said.get("strides")
    strides = None if steps is None else tuple(step // dtype.itemsize for step in steps)
    if stream in _default_streams().values():  # which is not waited for
        stream = None
    made = Resident(said["data"][0] or 0, tuple(said["shape"]), dtype, value, stream)
    return _contiguous(made, strides)


def _default_streams() -> dict[int, int]:
    """How the default stream is numbered, by the kind of memory."""
    return {vendor.memory: vendor.stream for vendor in every()}


def _contiguous(made: Resident, strides: tuple[int, ...] | None) -> Resident:
    due = [prod(made.shape[axis + 1 :]) for axis in range(made.ndim)]
    if strides is not None and 0 not in made.shape:
        for size, step, wanted in zip(made.shape, strides, due, strict=True):
            if size > 1 and step != wanted:
                raise UsageError(
                    f"an array on the GPU of shape {made.shape} with strides {strides} is not contiguous; "
                    "copy it first: cupy.ascontiguousarray(x), or x.contiguous()"
                )
    return made
