"""Our own products on a GPU: ``pytest tests/devices/products_on_gpu.py`` (``nox -s gpu``); red without one.

Every kernel gives the bits of its schedule's model; stages, tiles, orders of tiles, cooperative and pingpong change
none, and cuts of K change some.  ``MMAPROBE_GPU`` is the number of the GPU (0).
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest

import mmaprobe
from mmaprobe import formats
from mmaprobe.devices.nvidia.product import CudaProduct, open_product
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.edge import held_as

SHAPE = (264, 136, 1048)
"""Short last tiles along every axis."""
MULTISTAGE = [
    *(f"kernel=multistage&stages={stages}" for stages in range(2, 8)),
    "kernel=multistage&tile=64x128x64",
    "kernel=multistage&tile=32x32x32&group=3",
    "kernel=multistage&turned=1&group=1",
]
WHOLE = [
    *(f"kernel={kernel}&stages={stages}" for kernel in ("cooperative", "pingpong") for stages in range(2, 7)),
    "kernel=cooperative&tile=256x64&turned=1",
    "kernel=cooperative&workers=3&group=1",
    "kernel=pingpong&tile=128x64&workers=2",
]
CUT = [
    "kernel=cooperative&parts=3",
    "kernel=pingpong&parts=4",
    "kernel=cooperative&stream=1&workers=5",
    "kernel=pingpong&stream=1&workers=7",
]


def device(options: str, operands: str) -> CudaProduct:
    m, n, k = SHAPE
    return open_product(f"{os.environ.get('MMAPROBE_GPU', '0')}?m={m}&n={n}&k={k}&operands={operands}&{options}")


@cache
def given(operands: str, family: str) -> tuple[Bits, Bits]:
    """A and B: normal values, values that cancel, or products far below 1."""
    rng = np.random.default_rng(0)
    m, n, k = SHAPE
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    if family == "cancelling":
        a[:, 1::2] = -a[:, ::2]
        b[1::2] = b[::2] * np.float32(1.0078125)
    if family == "tiny":
        a, b = a * np.float32(2.0**-12), b * np.float32(2.0**-10)
    kind = held_as(formats.get(operands))
    return a.astype(kind).view(np.uint16), b.astype(kind).view(np.uint16)


@cache
def computed(options: str, operands: str, family: str) -> Bits:
    return device(options, operands).multiply(*given(operands, family))


@pytest.mark.parametrize("family", ["normal", "cancelling", "tiny"])
@pytest.mark.parametrize("operands", ["f16", "bf16"])
@pytest.mark.parametrize("options", [*MULTISTAGE, *WHOLE, *CUT])
def test_every_bit_is_that_of_the_schedule(options: str, operands: str, family: str) -> None:
    made = device(options, operands)
    expected = mmaprobe.gemm(made.schedule)(*given(operands, family))
    differ = np.argwhere(computed(options, operands, family) != expected)
    assert not len(differ), f"{len(differ)} elements differ, D{differ[0].tolist()} the first"


@pytest.mark.parametrize("kernels", [MULTISTAGE, WHOLE], ids=["multistage", "warp-specialised"])
def test_stages_tiles_and_orders_change_no_bit(kernels: list[str]) -> None:
    first, *others = (computed(options, "f16", "normal") for options in kernels)
    assert [options for options, d in zip(kernels[1:], others, strict=True) if (d != first).any()] == []


@pytest.mark.parametrize("options", CUT)
def test_a_cut_of_k_changes_bits(options: str) -> None:
    assert (computed(options, "f16", "normal") != computed(WHOLE[0], "f16", "normal")).any()
