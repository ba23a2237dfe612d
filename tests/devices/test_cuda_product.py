"""Our own products as the device ``cuda-gemm:N``: over a stand-in for the driver, without one, and options."""

from __future__ import annotations

import ctypes
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.devices import products
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.parameters.schedule import read_schedule
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia.products.named import Product, product
from mmaprobe.toolchain.source import Source

SHAPE = (24, 16, 40)


def test_options_choose_the_kernel() -> None:
    made = product({"kernel": "pingpong", "stages": "5", "parts": "2", "operands": "bf16"}, 64, 64, 256, "sm_90a")
    assert (made.stages, made.operands, made.tile) == (5, "bf16", (64, 128))
    assert made.schedule().kernels[0].ranges.parts == 2
    plain = product({"tile": "64x64x32", "turned": "1"}, 64, 64, 256, "sm_86")
    assert (plain.tile, plain.turned, plain.architecture) == ((64, 64, 32), True, "sm_86")


WRONG: list[tuple[dict[str, str], str, str]] = [
    ({"kernel": "multistge"}, "sm_80", "must be one of multistage, cooperative, pingpong; did you mean multistage"),
    ({"parts": "2"}, "sm_80", "kernel=multistage takes no parts"),
    ({"kernel": "pingpong"}, "sm_80", "kernel=pingpong is for sm_90a, not sm_80; take kernel=multistage"),
    ({"stages": "0x4"}, "sm_80", "option stages=.* must be a whole number from 1"),
    ({"turned": "2"}, "sm_80", "option turned=.* from 0 to 1"),
    ({"tile": "64x64"}, "sm_80", "tile is"),
]


@pytest.mark.parametrize(("options", "architecture", "said"), WRONG)
def test_wrong_options_are_refused(options: dict[str, str], architecture: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        product(options, 64, 64, 64, architecture)


def test_without_a_gpu_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(NotHereError, match=r"^cuda:0: .*(driver|cuda13|GPU|CUDA_VISIBLE_DEVICES)"):
        products.open_product("cuda-gemm:0?m=64&n=64&k=64")
    with pytest.raises(UsageError, match="GPUs are named by number, such as cuda-gemm:0"):
        products.open_product("cuda-gemm:x")
    with pytest.raises(UsageError, match="unknown option 'kernl'; did you mean kernel"):
        products.open_product("cuda-gemm:0?kernl=pingpong")


@pytest.mark.long
@pytest.mark.needs("cuda")
def test_the_command_reads_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is written is the schedule that ``gemm:FILE`` takes; another architecture or device is refused."""
    name, out = "cuda-gemm:0?kernel=multistage&m=40&n=40&k=72&tile=32x32x32", tmp_path / "stated.toml"
    assert main(["gemm", "kernel", name, "--arch", "sm_80", "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == [{"order": "0+[0:16]+[16:32]+[32:48]+[48:64]+[64:72]", "elements": 1600}]
    assert said["wrong"] == []
    assert read_schedule(out) == product({"tile": "32x32x32"}, 40, 40, 72, "sm_80").schedule()


@pytest.mark.parametrize("words", [["gemm:x"], ["cuda-gemm:0", "--arch", "gfx942"]])
def test_what_is_no_kernel_of_ours_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", "kernel", *words]) == 2
    assert "is no kernel of ours; name cuda-gemm:0 with --arch sm_90a" in capsys.readouterr().err


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


@pytest.mark.long
@pytest.mark.needs("cuda.bindings")
@pytest.mark.parametrize("options", ["", "&kernel=cooperative&tile=128x64", "&kernel=pingpong&tile=64x64&stream=1"])
def test_a_launch_hands_the_arrays_over(options: str) -> None:
    device = opened(options=options)
    rng = np.random.default_rng(0)
    m, n, k = SHAPE
    a, b = (rng.standard_normal(shape).astype(np.float16).view(np.uint16) for shape in ((m, k), (k, n)))
    expected = mmaprobe.gemm(device.schedule)(a, b)
    assert (device.multiply(a, b) == expected).all()
    assert (device.a, device.b, device.d, device.shape) == ("f16", "f16", "f32", SHAPE)


@pytest.mark.long
@pytest.mark.needs("cuda.bindings")
@pytest.mark.parametrize(("fault", "said"), [("canary", "was never written"), ("count", "counts 0 items stored, of 1")])
def test_a_launch_that_went_wrong_is_no_result(fault: str, said: str) -> None:
    device = opened(fault)
    m, n, k = SHAPE
    with pytest.raises(DeviceError, match=said):
        device.multiply(np.ones((m, k), np.uint16), np.ones((k, n), np.uint16))
