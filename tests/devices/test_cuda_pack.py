"""``cuda:N`` with kernels from a pack: no compiler is asked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu import opening
from mmaprobe.devices.nvidia.device import open_cuda
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.pack import write_pack
from stand_ins.fake_cuda import FakeCuda, kernels, model
from stand_ins.fake_machine import machine
from stand_ins.vendors import AMD, NVIDIA, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")


def pack(folder: Path, architecture: str) -> Path:
    made = kernels(MADE, architecture)
    write_pack(folder, architecture, made.toolchain, [Built(MADE.id, architecture, "compiled", kernel=made)])
    return folder


def test_kernels_come_from_the_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "version", lambda: pytest.fail("the compiler was asked"))
    opened = open_cuda(f"0?trial=no&pack={pack(tmp_path, 'sm_90a')}", machine(FakeCuda()))
    batch = random_batch(MADE, 9, 4)
    assert (opened.run(MADE, batch) == model(MADE, batch)).all()
    with pytest.raises(UsageError, match=r"the pack .* has no mma.*mmaprobe compile --arch sm_90a"):
        opened.run(OTHER, random_batch(OTHER, 1, 4))


def test_a_pack_for_another_gpu_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is for sm_80, this GPU is sm_90a; mmaprobe compile --arch sm_90a"):
        open_cuda(f"0?pack={pack(tmp_path, 'sm_80')}", machine(FakeCuda()))
    with pytest.raises(UsageError, match=r"pack\.json: No such file"):
        open_cuda(f"0?pack={tmp_path / 'none'}", machine(FakeCuda()))


def test_a_pack_is_for_gpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--device", "cpu", "--pack", str(tmp_path)]) == 2
    assert "--pack holds kernels for a GPU; cpu is none" in capsys.readouterr().err


def absent(*_: object) -> str:
    raise NotHereError("no compiler")


@pytest.mark.parametrize(
    ("vendor", "compiler", "none"),
    [
        (NVIDIA, "mmaprobe.toolchain.nvidia.nvrtc.version", absent),
        (AMD, "mmaprobe.devices.amd.device.compiler_for", lambda _: SimpleNamespace(version=absent)),
    ],
    ids=["cuda", "hip"],
)
def test_a_pack_of_the_package_serves_without_a_compiler(
    vendor: Vendor, compiler: str, none: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a build puts it there; with a compiler kernels are compiled."""
    vendor.pack(tmp_path / vendor.architecture, (vendor.signed,))
    monkeypatch.setattr(opening, "PACKS", tmp_path)
    name = f"{vendor.scheme}:0?trial=no"
    signed, half = (instruction(name, vendor.architecture) for name in (vendor.signed, vendor.half))
    with vendor.plugged(vendor.gpu()):
        batch = random_batch(half, 1, 4)
        assert (open_device(name).run(half, batch) == vendor.model(half, batch)).all()
        monkeypatch.setattr(compiler, none)
        opened, batch = open_device(name), random_batch(signed, 2, 4)
        assert opened.toolchain() == {"kernels": vendor.toolchain}
        assert (opened.run(signed, batch) == vendor.model(signed, batch)).all()
        with pytest.raises(UsageError, match=rf"the pack {tmp_path}/.* has no"):
            opened.run(half, random_batch(half, 1, 4))
