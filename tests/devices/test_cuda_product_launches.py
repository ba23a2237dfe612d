"""Our own products as the device ``cuda-gemm:N`` over a stand-in for the driver: what a launch is handed."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.errors import DeviceError
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia.products.named import Product
from mmaprobe.toolchain.source import Source

pytestmark = [pytest.mark.long, pytest.mark.needs("cuda.bindings")]

SHAPE = (24, 16, 40)


def opened(fault: str = "", options: str = "") -> Any:
    """The device over a stand-in that computes by the schedule, and reads the arrays that the launch names."""
    from mmaprobe.devices.nvidia.product import open_product
    from stand_ins.fake_cuda import HEADER, FakeCuda, Grid, real
    from stand_ins.fake_machine import machine

    class FakeProducts(FakeCuda):
        made: Product
        maps: list[tuple[int, list[int], list[int]]] = []  # noqa: RUF012

        def concerns(self, of: str, image: bytes) -> bool:
            return True

        def cuTensorMapEncodeTiled(self, kind: Any, rank: int, address: int, sizes: Any, strides: Any, box: Any,
                                   *rest: Any) -> tuple[Any, Any]:  # fmt: skip
            assert [int(strides[0]), len(sizes), rank] == [2 * int(sizes[0]), 2, 2]
            made = real.CUtensorMap()
            ctypes.memmove(int(made.getPtr()), struct.pack("<3Q", address, int(sizes[1]), int(sizes[0])), 24)
            self.maps.append((address, [int(size) for size in sizes], [int(size) for size in box]))
            return self._status(), made

        def compute(self, image: bytes, grid: Grid, operands: int, done: int, fault: str) -> None:
            made = self.made
            assert (grid.threads, grid.groups) == (made.threads, made.groups)
            places = [ctypes.c_uint64.from_address(operands + at).value for at in (0, 128, 256, 272)]
            if not hasattr(made, "boxes"):
                places = [ctypes.c_uint64.from_address(operands + 8 * at).value for at in range(3)]
            elif made.most_parts > 1:
                assert not self.array_at(places[3], (made.order.steps * 2,), np.dtype(np.uint32)).any()
            half, word = np.dtype(np.uint16), np.dtype(np.uint32)
            a = self.array_at(places[0], (made.m, made.k), half)
            b = self.array_at(places[1], (made.k, made.n), half)
            d = self.array_at(places[2], (made.m, made.n), word)
            d[:] = mmaprobe.gemm(made.schedule())(a.copy(), b.copy())
            if fault == "canary":
                d[-1, -1] = 0xA5A5A5A5 if self.launches % 2 else 0x5B5B5B5B
            self.array_at(done, (1,), np.dtype(np.uint64))[0] += made.corners - (fault == "count")

    cuda = FakeProducts(fault=fault)

    def build(source: Source) -> Kernel:
        cuda.made = device.of(*SHAPE)
        assert cuda.made.source() == source
        header = HEADER.pack(b"\x7fELF", 8, 190, 90 << 8 | 4)
        return Kernel.of(source, header, "NVRTC 13.0")

    m, n, k = SHAPE
    device = open_product(f"0?m={m}&n={n}&k={k}{options}", machine(cuda), build)
    return device


@pytest.mark.parametrize("options", ["", "&kernel=cooperative&tile=128x64", "&kernel=pingpong&tile=64x64&stream=1"])
def test_a_launch_hands_the_arrays_over(options: str) -> None:
    device = opened(options=options)
    rng = np.random.default_rng(0)
    m, n, k = SHAPE
    a, b = (rng.standard_normal(shape).astype(np.float16).view(np.uint16) for shape in ((m, k), (k, n)))
    expected = mmaprobe.gemm(device.schedule)(a, b)
    assert (device.multiply(a, b) == expected).all()
    assert (device.a, device.b, device.d, device.shape) == ("f16", "f16", "f32", SHAPE)


@pytest.mark.parametrize(("fault", "said"), [("canary", "was never written"), ("count", "counts 0 items stored, of 1")])
def test_a_launch_that_went_wrong_is_no_result(fault: str, said: str) -> None:
    device = opened(fault)
    m, n, k = SHAPE
    with pytest.raises(DeviceError, match=said):
        device.multiply(np.ones((m, k), np.uint16), np.ones((k, n), np.uint16))
