"""The device ``hip:N`` on a stand-in for ROCm: D as the model has it, what is missing in one line, failing closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from emulator.batches import random_batch
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.amd.device import open_hip
from mmaprobe.devices.amd.driver import open_driver
from mmaprobe.devices.amd.machine import Machine
from mmaprobe.devices.gpu.driver import HungError, LostError, OutOfMemoryError, StuckError, TooOldError
from mmaprobe.devices.gpu.known_answer import WrongAnswerError, known_answer
from mmaprobe.devices.model import open_model
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.amd.code_object import code_object_version
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.pack import write_pack
from mmaprobe.validation.stream import validate
from stand_ins.fake_hip import FakeHip, device, kernel, machine
from stand_ins.kernel_source import Seed

MADE = instruction("v_mfma_f32_16x16x16_f16", "gfx942")


FORMS = [
    ("gfx908", "v_mfma_f32_16x16x2bf16{blgp=3}"),
    ("gfx90a", "v_mfma_f64_4x4x4f64"),
    ("gfx90a", "v_mfma_i32_32x32x8i8"),
    ("gfx942", "v_mfma_f32_4x4x4_16b_f16{abid=3,blgp=6,cbsz=2}"),
    ("gfx942", "v_mfma_f32_32x32x4_2b_bf16{abid=1,cbsz=1}"),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_bf8"),
    ("gfx942", "v_mfma_f32_16x16x8_xf32"),
    ("gfx942", "v_mfma_f64_16x16x4_f64{neg=101}"),
    ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=1}"),
    ("gfx1100", "v_wmma_i32_16x16x16_iu8{neg_lo=100}"),
    ("gfx1100", "v_wmma_i32_16x16x16_iu8{wave=64}"),
]


@pytest.mark.parametrize(("home", "name"), FORMS)
def test_d_is_that_of_the_model(home: str, name: str) -> None:
    """Random bits; before and after them the known answer, with blocks fed from others and operands negated."""
    made = instruction(name, home)
    batch = random_batch(made, 5, 3)
    hip = FakeHip(home)
    opened = device(hip)
    assert (opened.run(made, batch) == open_model(home).run(made, batch)).all()
    assert hip.current == 7
    opened.close()
    assert not hip.allocated
    assert not hip.images


@pytest.mark.long
def test_validation_against_the_model() -> None:
    """The shared way of all devices; a unit that rounds wrong is found."""
    model = open_model("gfx942")
    assert validate(device(FakeHip()), model, MADE, vectors=2000).mismatches == 0

    def wrong(made: Instruction, batch: Batch) -> Bits:
        d = model.run(made, batch)
        return d if (d >> 23 & 0xFF < 150).all() else d ^ np.uint32(1)

    summary = validate(device(FakeHip("gfx942", wrong)), model, MADE, vectors=2000)
    assert summary.mismatches


def test_identity() -> None:
    """What evidence records; the chip's own number, versions, compute units."""
    opened = device(FakeHip())
    assert opened.info() == {
        "silicon": "yes", "architecture": "gfx942", "model_name": "AMD Instinct MI300X", "uuid": "GPU-0000000000000042",
        "driver": "6.8.5", "vbios": "not read", "rocm_version": "6.2", "multiprocessors": "304",
    }  # fmt: skip
    assert opened.toolchain() == {"kernels": "clang 22.1.8"}
    assert opened.siblings() == ["hip:0"]


SWAPPED = {"e4m3fnuz": "e4m3", "e5m2fnuz": "e5m2", "e4m3": "e4m3fnuz", "e5m2": "e5m2fnuz"}


@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx942", "v_mfma_f32_32x32x16_bf8_fp8"),
        ("gfx950", "v_mfma_f32_16x16x32_bf8_bf8"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4"),
        ("gfx1200", "v_wmma_f32_16x16x16_fp8_bf8"),
    ],
)
def test_a_gpu_that_reads_other_8_bit_floats_is_found(home: str, name: str) -> None:
    """FNUZ and OCP floats have one opcode; a known answer tells them apart, each value being twice another."""

    def unit(read: dict[str, str]) -> Callable[[Instruction, Batch], Bits]:
        def product(made: Instruction, batch: Batch) -> Bits:
            assert batch.c is not None
            a, b = (_values(read.get(fmt, fmt), codes) for fmt, codes in ((made.a, batch.a), (made.b, batch.b)))
            d: Bits = (a @ b + batch.c.view(np.float32)).astype(np.float32).view(np.uint32)
            return d

        return product

    made = instruction(name, home)
    batch, expected = known_answer(made, 2, 3)
    assert (device(FakeHip(home, unit({}))).run(made, batch) == expected).all()
    with pytest.raises(WrongAnswerError, match="wrong known answer before the batch"):
        device(FakeHip(home, unit(SWAPPED))).run(made, batch)


def _values(fmt: str, codes: Bits) -> NDArray[np.float64]:
    got = formats.decode(formats.get(fmt), codes)
    return np.where(got.negative, -1.0, 1.0) * got.significand * np.exp2(got.exponent.astype(float))


def test_an_open_layout_is_refused() -> None:
    opened = device(FakeHip("gfx942"))
    wanted = instruction("v_smfmac_f32_16x16x64_f16", "gfx950")
    with pytest.raises(NotHereError, match="this GPU lacks it"):
        opened.run(wanted, random_batch(wanted, 1, 1))
    on_950 = device(FakeHip("gfx950"))
    assert on_950.supports(wanted).reason.startswith("the layout of b is open: consecutive k a lane")


@pytest.mark.parametrize(
    ("function", "status", "expected", "said"),
    [
        ("hipModuleLaunchKernel", 719, DeviceError, r"hipModuleLaunchKernel answers hipErrorLaunchFailure \(719\)"),
        ("hipMemcpy", 214, LostError, "the device is lost: uncorrectable ECC error"),
        ("hipMalloc", 2, OutOfMemoryError, r"hipErrorOutOfMemory \(2\): out of memory"),
        ("hipModuleLoadData", 209, TooOldError, "ROCm 6.2 cannot load v_mfma_.*, made by clang 22.1.8 for gfx942"),
        ("hipEventQuery", 700, DeviceError, "hipEventQuery answers"),
    ],
)
def test_every_status_is_checked(function: str, status: int, expected: type[Exception], said: str) -> None:
    hip = FakeHip()
    opened = device(hip)
    hip.faults = {function: status}
    with pytest.raises(expected, match=said):
        opened.run(MADE, random_batch(MADE, 2, 1))


def packed(folder: Path, version: int, toolchain: str) -> str:
    """The name of a device with a pack whose code object is of a version."""
    made = kernel(MADE, "gfx942")
    code = made.binary[:4] + bytes([2, 1, 1, 0x40, version - 2, 0]) + made.binary[4:]
    built = Built(MADE.id, "gfx942", "compiled", kernel=replace(made, binary=code))
    write_pack(folder, "gfx942", toolchain, [built])
    return f"0?trial=no&pack={folder}"


@pytest.mark.parametrize(("version", "rocm", "there"), [(5, 62, True), (5, 57, True), (6, 63, True), (6, 70, True),
                                                        (6, 62, False), (6, 57, False)])  # fmt: skip
def test_an_old_rocm_is_noticed_as_the_device_opens(version: int, rocm: int, there: bool, tmp_path: Path) -> None:
    """ROCm loads code objects of version 6 from 6.3 on; those of version 5, which clang makes here, before."""
    hip = FakeHip()
    hip.version = rocm // 10 * 10_000_000 + rocm % 10 * 100_000
    name, where = packed(tmp_path, version, "hiprtc 7.0.1, clang 20.0.0"), machine(hip)
    if there:
        assert open_hip(name, where).toolchain() == {"kernels": "hiprtc 7.0.1, clang 20.0.0"}
        return
    said = rf"ROCm {rocm // 10}.{rocm % 10} loads no code object of version 6, .*update ROCm to 6.3 or newer, or make"
    with pytest.raises(TooOldError, match=f"{said}.*; then make the pack anew: mmaprobe compile --arch gfx942"):
        open_hip(name, where)
    assert not hip.images


def test_a_code_object_tells_its_version() -> None:
    assert code_object_version(b"\x7fELF\x02\x01\x01\x40\x03") == 5
    assert code_object_version(b"\x7fELF\x02\x01\x01\x00\x03") == code_object_version(b"") == 0


def test_a_launch_that_hangs() -> None:
    """It ends at its time limit; nothing else runs in this process until it has ended."""
    hip = FakeHip(fault="hang")
    opened = device(hip, options="&timeout=0.01")
    with pytest.raises(HungError, match=r"hung: the launch did not end within 0.01 s; the batch is void"):
        opened.run(MADE, random_batch(MADE, 2, 1))
    with pytest.raises(StuckError, match="a launch that hung still runs"):
        opened.run(MADE, random_batch(MADE, 2, 1))
    hip.fault, hip.running = "", False
    assert opened.run(MADE, random_batch(MADE, 2, 1)).shape == (2, 16, 16)


def test_a_kernel_that_never_ran() -> None:
    hip = FakeHip(fault="never")
    with pytest.raises(DeviceError, match="the kernel counts 0 items stored, of 37 given"):
        device(hip).run(MADE, random_batch(MADE, 2, 1))


WRONG = [
    (MADE.id, ("lane % 16", "15 - lane % 16")),
    (MADE.id, ("mfma_f32_16x16x16f16", "mfma_f32_16x16x16bf16_1k")),
    ("v_smfmac_f32_16x16x32_f16{abid=1}", (", 0, 1)", ", 0, 0)")),
    ("v_mfma_f64_16x16x4_f64{neg=101}", (", 0, 0, 5)", ", 0, 0, 0)")),
]


@pytest.mark.parametrize(("name", "seed"), WRONG)
def test_a_wrong_source_is_a_wrong_known_answer(name: str, seed: Seed) -> None:
    """A layout, an opcode, a set of indices, a sign."""
    made = instruction(name, "gfx942")
    with pytest.raises(WrongAnswerError, match="wrong known answer before the batch"):
        device(FakeHip(), seed).run(made, random_batch(made, 1, 1))


def test_a_code_object_for_another_gpu() -> None:
    with pytest.raises(DeviceError, match=r"is gfx942, but the kernel of .* and its code object is for gfx950"):
        device(FakeHip(), target="gfx950").run(MADE, random_batch(MADE, 1, 1))


def test_an_override_is_told_and_stamped(caplog: pytest.LogCaptureFixture) -> None:
    driver = open_driver(0, machine(FakeHip("gfx1101"), HSA_OVERRIDE_GFX_VERSION="11.0.0"))
    assert driver.architecture == "gfx1100"
    assert "hip:0 is gfx1101; HSA_OVERRIDE_GFX_VERSION makes it gfx1100" in caplog.text
    assert driver.identity()["hsa_override_gfx_version"] == "11.0.0 on gfx1101"
    with pytest.raises(NotHereError, match=r"'11' is no version such as 11.0.0; type: unset"):
        open_driver(0, machine(FakeHip("gfx1101"), HSA_OVERRIDE_GFX_VERSION="11"))


def no_gpu(status: int = 101, **environment: str) -> Machine:
    """ROCm's runtime where it sees no GPU; that of ROCm 5.2 starts with status 101, and counts with 100."""
    hip = FakeHip()
    hip.faults = {"hipInit": status}
    return machine(hip, **environment)


MISSING = [
    (machine(None), r"^hip:0: no ROCm: libamdhip64.so is neither .* or /opt/rocm; install AMD's, or Debian's: apt-get"),
    (replace(no_gpu(), exists=lambda path: False), r"no AMD GPU is \(/dev/kfd is missing\).*--device /dev/kfd"),
    (replace(no_gpu(), usable=lambda path: False), r"/dev/kfd may not be opened; .* usermod -a -G render,video"),
    (no_gpu(HIP_VISIBLE_DEVICES=""), "HIP_VISIBLE_DEVICES='' hides every GPU; type: unset HIP_VISIBLE_DEVICES"),
    (no_gpu(ROCR_VISIBLE_DEVICES="5"), "ROCR_VISIBLE_DEVICES='5' names no GPU of this machine"),
    (no_gpu(), "the kernel's driver is here but has no GPU"),
    (no_gpu(100), "the kernel's driver is here but has no GPU"),
    (no_gpu(999), r"hip:0: ROCm does not start: an unknown status \(999\); see: rocminfo"),
    (replace(machine(FakeHip()), entries=lambda path: []), "the kernel's driver lists no GPU at 0000:03:00.0"),
    (machine(FakeHip("gfx900")), "gfx900 has none of the catalog's matrix units"),
]


@pytest.mark.parametrize(("where", "said"), MISSING)
def test_what_is_missing_is_said_in_one_line(where: Machine, said: str) -> None:
    with pytest.raises(NotHereError, match=said) as raised:
        open_hip("0", where)
    assert "\n" not in str(raised.value)


def test_names() -> None:
    with pytest.raises(NotHereError, match="hip:3: hip:0 is the only GPU here"):
        open_hip("3", machine(FakeHip()))
    with pytest.raises(UsageError, match="hip:x: GPUs are named by number"):
        open_hip("x")
    with pytest.raises(UsageError, match="must be yes or no"):
        open_hip("0?trial=maybe")


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine may have an AMD GPU")
def test_this_machine_without_a_gpu() -> None:
    """With ROCm's runtime or without: one line."""
    with pytest.raises(NotHereError, match=r"^hip:0: (no ROCm|ROCm's runtime is here but no AMD GPU is)"):
        open_hip("")
