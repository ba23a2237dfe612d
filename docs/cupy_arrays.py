"""Arrays of CuPy go in and come out on the GPU that they lie on: ``python docs/cupy_arrays.py [cuda:0]``.

Where there is no GPU, or no CuPy, one line says so and the exit code is 3.
"""

from __future__ import annotations

import sys

import numpy as np

import mmaprobe
from mmaprobe.errors import NotHereError

INSTRUCTION = "mma.m16n8k16.f32.f16.f16.f32"


def main(name: str) -> int:
    """What ``shown`` returns, or 3 where something is missing."""
    try:
        return shown(name)
    except (NotHereError, ImportError) as error:
        print(f"{error}; nothing was run")
        return 3


def shown(name: str) -> int:
    """D of 1,000 random tiles by the tensor cores, beside the model's (1 where they differ); what CuPy's pool holds."""
    device = mmaprobe.device(name)
    import cupy

    multiply = device.instruction(INSTRUCTION)
    numbers = np.random.default_rng(0)
    shapes = {"a": ((1000, 16, 16), np.float16), "b": ((1000, 16, 8), np.float16), "c": ((1000, 16, 8), np.float32)}
    there = {}
    for key, (shape, dtype) in shapes.items():
        there[key] = cupy.asarray(numbers.standard_normal(shape).astype(dtype))
    d = multiply(*there.values())
    assert isinstance(d, cupy.ndarray)
    assert d.device == there["a"].device
    assert d.dtype == np.float32
    model = mmaprobe.model(device.info()["architecture"], INSTRUCTION)
    expected = model(*(value.get() for value in there.values()))
    same = bool((d.get().view(np.uint32) == expected.view(np.uint32)).all())
    held = cupy.get_default_memory_pool().total_bytes()
    said = "equal to" if same else "unlike"
    print(f"{name}: D of {d.shape} lies on {d.device}, {said} the model's; CuPy's pool holds {held} bytes")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "cuda:0"))
