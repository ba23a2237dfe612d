"""``cuda:0`` on a stand-in that runs kernels' own data movement: main forms are right, each fault has its own end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device, serial
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.driver import LostError, OutOfMemoryError
from mmaprobe.devices.gpu.health import VoidError, Watch
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.pack import write_pack
from mmaprobe.validation import validate
from mmaprobe.validation.elsewhere import others
from stand_ins.fake_cuda import LOST, FakeCuda, model
from stand_ins.fake_machine import FakeNvml
from stand_ins.gpu import StandIn, kernel, name, pack, plugged
from stand_ins.kernel_source import Lies, Seed, multiprocessors

pytestmark = pytest.mark.needs("cuda.bindings")

W = "wgmma.mma_async.sync.aligned"
HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
WIDE = f"{W}.m64n64k16.f32.f16.f16"
FORMS = [
    HALF,
    SPARSE,
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    f"{W}.m64n8k16.f16.f16.f16{{trans_a,trans_b}}",
    f"{W}.m64n64k16.f32.bf16.bf16{{a=regs,neg_a}}",
    f"{W}.m64n16k8.f32.tf32.tf32{{scale_d=0}}",
    f"{W}.m64n24k32.f32.e4m3.e5m2",
    f"{W}.m64n32k32.s32.u8.s8",
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16{neg_b}",
    "wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.s8.u8{a=regs}",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
    "wmma.mma.sync.aligned.col.row.m32n8k16.s32.s8.s8.s32",
]


def run(cuda: StandIn, identifier: str = HALF, size: int = 9, **options: Any) -> Any:
    made = instruction(identifier, "sm_90a")
    with plugged(cuda):
        return open_device(name(**options)).run(made, random_batch(made, size, 1))


def opened(cuda: StandIn, nvml: FakeNvml | None = None) -> GpuDevice:
    with plugged(cuda, nvml):
        device = open_device(name())
    assert isinstance(device, GpuDevice)
    return device


@pytest.mark.parametrize("identifier", FORMS)
def test_forms_are_computed_by_their_own_loads_and_stores(identifier: str) -> None:
    made = instruction(identifier, "sm_90a")
    assert (run(StandIn(), identifier) == model(made, random_batch(made, 9, 1))).all()


def test_kernels_come_from_a_pack(tmp_path: Path) -> None:
    made, cuda = instruction(WIDE, "sm_90a"), StandIn()
    pack(tmp_path, (HALF, WIDE))
    assert (run(cuda, WIDE, pack=tmp_path) == model(made, random_batch(made, 9, 1))).all()
    assert cuda.launches == 3


# What a source can have wrong

WRONG: list[tuple[str, Seed]] = [
    (HALF, ("8 * ((slot / 2) & 1)", "8 * ((slot / 4) & 1)")),
    (SPARSE, ("4 * ((lane & 3) & 1)", "4 * (1 - (lane & 1))")),
    (WIDE, ("(mn % 8) * 32", "(mn % 8) * 16")),
    (WIDE, ("describe(start + START_B)", "describe(start)")),
    (WIDE, (", 1, 1, 0, 0;", ", -1, 1, 0, 0;")),
    (f"{W}.m64n8k16.f32.f16.f16{{trans_b}}", (", 1, 1, 0, 1;", ", 1, 1, 0, 0;")),
    (HALF, (f'"{HALF} ', f'"{HALF.replace("f16.f16", "bf16.bf16")} ')),
    ("wmma.mma.sync.aligned.row.row.m32n8k16.f32.f16", ("k * 16 + line", "(k ^ 1) * 16 + line")),
]  # fmt: skip


@pytest.mark.parametrize(("identifier", "seed"), WRONG)
def test_a_wrong_source_gives_no_result(identifier: str, seed: Seed, tmp_path: Path) -> None:
    """A layout, a descriptor, a sign, an order, an opcode: from the pack to the known answer that does not come out."""
    identifier = instruction(identifier, "sm_90a").id
    pack(tmp_path, (identifier,), {identifier: (seed,)})
    with pytest.raises(DeviceError, match=rf"^{re.escape(identifier)}: cuda:0: wrong known answer before the batch; "
                       "the batch is void$"):  # fmt: skip
        run(StandIn(), identifier, pack=tmp_path)


def test_a_kernel_that_does_nothing() -> None:
    cuda = StandIn(dead=(HALF,))
    with pytest.raises(DeviceError, match="the kernel counts 0 items stored, of 37 given; the batch is void"):
        run(cuda)
    assert run(cuda, WIDE).shape == (9, 64, 64)


# What a GPU can do wrong


def test_items_go_to_multiprocessors_in_turn() -> None:
    assert list(multiprocessors(12, 1, 4, 2, 132)) == [0] * 4 + [1] * 4 + [0] * 4
    assert multiprocessors(2000, 1, 4, 400, 132)[4 * 131 : 4 * 133].tolist() == [131] * 4 + [0] * 4


@pytest.mark.long
def test_a_multiprocessor_that_lies_is_seen_and_no_model_is_blamed() -> None:
    """The small known answer does not reach it; the campaign does, and its answers do not repeat: exit code 5."""
    made = instruction(HALF, "sm_90a")
    cuda = StandIn(lies=Lies(multiprocessor=20, bit=3))
    found = validate(opened(cuda), open_device("model:sm_90a"), made, 100_000)
    assert (found.unstable, found.exit_code) == (True, 5)
    assert 0 < found.mismatches < 100_000 // 100


def test_a_lie_now_and_then() -> None:
    made = instruction(HALF, "sm_90a")
    batch = random_batch(made, 4 * 132, 1)
    d = run(StandIn(lies=Lies(131, bit=31, every=4)), size=4 * 132)
    changed = np.flatnonzero((d != model(made, batch)).any((1, 2)))
    assert changed.tolist() == [4 * 131 + 3]


@pytest.mark.parametrize("fault", LOST)
def test_a_gpu_that_goes_away(fault: str) -> None:
    """After three good batches: the batch is void, every later one is refused, and both say how to go on."""
    made = instruction(HALF, "sm_90a")
    batch = random_batch(made, 5, 1)
    device = opened(StandIn(fault=fault, after=9))
    for _ in range(3):
        assert (device.run(made, batch) == model(made, batch)).all()
    end = r"the device is lost: .*; what was recorded before stays valid; .* the same command with --resume goes on$"
    with pytest.raises(LostError, match=rf"^{made.id}: cuda:0: .*\({LOST[fault]}\): .*the batch is void; " + end[24:]):
        device.run(made, batch)
    with pytest.raises(LostError, match=end):
        device.run(made, batch)


EVENTS: dict[str, tuple[Callable[[FakeNvml], Any], str]] = {
    "corrected": (lambda nvml: nvml.errors.update(CORRECTED=5), "cuda:0: corrected ECC errors rose by 2, to 5"),
    "clocks": (
        lambda nvml: (nvml.clocks.update(SM=1200), setattr(nvml, "reasons", 0x40)),
        "cuda:0: clocks: core 1980 -> 1200 MHz; held down by hw_thermal_slowdown",
    ),
    "process": (
        lambda nvml: nvml.processes.update({4242: ("/opt/train", 9 << 30), os.getpid(): ("python3", 1 << 20)}),
        "cuda:0: another process uses the GPU now: pid 4242 (train, 9216 MiB)",
    ),
}


@pytest.mark.parametrize("event", EVENTS)
def test_what_happens_during_a_launch_is_noted_after_it(event: str) -> None:
    happens, said = EVENTS[event]
    nvml, made = FakeNvml(), instruction(HALF, "sm_90a")
    device = opened(StandIn(events={4: lambda: happens(nvml)}), nvml)
    watch, batch = Watch(device), random_batch(made, 5, 1)
    looks = []
    for _ in range(3):
        device.run(made, batch)
        looks.append(watch.look())
    assert looks == [[], [said], []]


def test_an_uncorrected_error_makes_the_launches_since_the_last_reading_void() -> None:
    """The batch itself looks right."""
    nvml, made = FakeNvml(), instruction(HALF, "sm_90a")
    device = opened(StandIn(events={4: lambda: nvml.errors.update(UNCORRECTED=1)}), nvml)
    watch, batch = Watch(device), random_batch(made, 5, 1)
    device.run(made, batch)
    assert watch.look() == []
    assert (device.run(made, batch) == model(made, batch)).all()
    with pytest.raises(VoidError, match="uncorrected ECC errors rose by 1, to 1: the results since the last reading"):
        watch.look()


def test_another_process_takes_the_memory() -> None:
    cuda = StandIn()
    cuda.events = {1: lambda: setattr(cuda, "memory", 0)}
    with pytest.raises(OutOfMemoryError, match=r"out of memory; see who holds it: nvidia-smi; .* the batch is void"):
        run(cuda, size=40)


def test_another_process_has_the_gpu_for_itself() -> None:
    with pytest.raises(NotHereError, match=r"Exclusive_Process, and another process has the GPU; see: nvidia-smi --q"):
        run(StandIn(mode=3, retain=46))


# Packs and first runs


def test_a_pack_for_another_architecture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack(tmp_path / "pack", (HALF,), architecture="sm_80")
    given = ["run", "--device", "cuda:0", "--pack", str(tmp_path / "pack"), "--out", str(tmp_path / "out")]
    with plugged(StandIn()):
        assert main(given) == 2
    assert "is for sm_80, this GPU is sm_90a; mmaprobe compile --arch sm_90a --out" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_pack_that_names_its_binaries_wrongly(tmp_path: Path) -> None:
    """Each binary is held against its hash, and its own header against the GPU."""
    made = kernel(instruction(HALF, "sm_90a"), "sm_90a")
    old = replace(made, binary=made.binary[:49] + bytes([80]) + made.binary[50:])
    write_pack(tmp_path, "sm_90a", made.toolchain, [Built(HALF, "sm_90a", "compiled", kernel=old)])
    with pytest.raises(DeviceError, match=r"cuda:0 is sm_90a, but the kernel of .* its binary is for sm_80; the batch"):
        run(StandIn(), pack=tmp_path)
    (tmp_path / f"{old.hash}.cubin").write_bytes(made.binary)
    with pytest.raises(UsageError, match=r"is not the kernel that pack\.json names: damaged or changed"):
        run(StandIn(), pack=tmp_path)


@pytest.mark.parametrize(("child", "said"), [("", ""), ("never", "counts 0 items stored")])
def test_the_first_run_is_in_a_child_by_the_device_name(child: str, said: str, tmp_path: Path) -> None:
    """The child opens the same device with the same pack; what goes wrong there never reaches this process."""
    pack(tmp_path, (HALF,))
    cuda, made = StandIn(), instruction(HALF, "sm_90a")
    batch = random_batch(made, 5, 1)
    with plugged(cuda, child=child):
        device = open_device(name(trial="yes", pack=tmp_path))
        if not said:
            assert (device.run(made, batch) == model(made, batch)).all()
            return
        with pytest.raises(DeviceError, match=said):
            device.run(made, batch)
    assert not cuda.launches


@pytest.mark.parametrize("gpus", [1, 2])
def test_the_places_where_a_mismatch_is_asked_again(gpus: int) -> None:
    """All its multiprocessors, and the next GPU; through a lock, as a validation asks."""
    with plugged(FakeCuda(gpus=gpus)):
        there = [(place.where, place.tiles) for place in others(serial(open_device(name())))]
    assert there == [("all 132 multiprocessors", 528), ("cuda:1", 0)][:gpus]
