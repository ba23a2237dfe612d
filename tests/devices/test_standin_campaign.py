"""Fused campaigns on ``cuda:0`` of the stand-in GPU: from a pack, compiled, in stages, and how they fail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.evidence.files import sealed
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.pack import open_pack
from mmaprobe.toolchain.source import Source
from mmaprobe.validation import Summary, fused, validate
from stand_ins import fake_hip
from stand_ins.gpu import StandIn, name, pack, plugged
from stand_ins.kernel_source import Lies, Seed, seeded
from stand_ins.vendors import AMD, NVIDIA, Vendor

pytestmark = pytest.mark.needs("cuda.bindings")

AMD_HALF, AMD_BLOCKS, AMD_LANES = "v_mfma_f32_16x16x16_f16", "v_mfma_f32_4x4x4_16b_bf16", "v_dot4_i32_i8"
HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
GROUP = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
STAGED = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32"
VECTORS = 6000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaprobe.validation.stream.LEAST", 1000)
    monkeypatch.setattr("mmaprobe.validation.stream.ALONE", 100)
    monkeypatch.setattr(fused, "PROOF", 5)
    monkeypatch.setattr(fused, "SABOTAGED", 3)


def validated(
    gpu: Any, identifier: str = HALF, family: str = "cancel", vendor: Vendor = NVIDIA,
    said: Callable[[str], None] | None = None, child: str = "", **options: Any,
) -> Summary:  # fmt: skip
    made = instruction(identifier, vendor.architecture)
    reference = DatapathDevice(made, datapath_for(vendor.architecture, made))
    given = "&".join(f"{key}={value}" for key, value in {"trial": "no", **options}.items())
    with vendor.plugged(gpu, child=child):
        return validate(
            open_device(f"{vendor.scheme}:0?{given}"), reference, made, VECTORS, generators=[family], said=said
        )


FORMS = [(NVIDIA, HALF), (NVIDIA, GROUP), (NVIDIA, STAGED), (AMD, AMD_HALF), (AMD, AMD_BLOCKS), (AMD, AMD_LANES)]


@pytest.mark.parametrize(("vendor", "identifier"), FORMS, ids=lambda value: str(getattr(value, "scheme", value)))
def test_vectors_are_compared(vendor: Vendor, identifier: str) -> None:
    summary = validated(vendor.gpu(), identifier, "extremes" if identifier == AMD_LANES else "cancel", vendor)
    assert (summary.vectors, summary.mismatches, summary.exit_code) == (VECTORS, 0, 0)
    assert summary.screening is not None
    assert summary.screening.present == vendor.gpu.count
    assert f"{vendor.multiprocessor}s compared vectors; wrong: none" in str(summary.screening)


@pytest.mark.parametrize(
    ("seed", "said"),
    [
        (
            ("if (d != right) report", "if (false) report"),
            "was told to take one output for wrong and finds 0 mismatches, 0 without",
        ),
        (("checksum += Word64(right)", "checksum += Word64(right + 1)"), "are not those of the CPU: nothing it says"),
    ],
)
def test_a_kernel_of_amd_that_proves_nothing(seed: Seed, said: str) -> None:
    """One that never finds a fault, one with another model: nothing it says counts, the ordinary way compares."""
    made = instruction(AMD_HALF, "gfx942")

    def kernel(source: Source) -> Kernel:
        return fake_hip.campaign_kernel(replace(source, text=seeded(source, (seed,))))

    with AMD.plugged(AMD.gpu()), pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmaprobe.devices.amd.device.kernel_of", kernel)
        device = open_device("hip:0?trial=no")
        summary = validate(device, open_device("model:gfx942"), made, VECTORS, generators=["cancel"])
    check_fell_back(summary, said)


@pytest.mark.long
def test_the_command_tells_the_multiprocessors(capsys: pytest.CaptureFixture[str]) -> None:
    with plugged(StandIn(lies=Lies(40))):
        code = main(["validate", name(), "model:sm_90a", HALF, "--vectors", "6000", "--generator", "tie"])
    assert code == 5
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"4\d of 132 multiprocessors compared vectors; wrong: \d+ by number 40", said), said


def test_the_campaign_of_a_pack(tmp_path: Path) -> None:
    pack(tmp_path, (HALF,), campaigns=(HALF,))
    assert validated(StandIn(), pack=tmp_path).screening is not None


def test_a_pack_without_it_or_with_another_one(tmp_path: Path) -> None:
    """The ordinary way serves; of another datapath the pack's campaign is not taken."""
    pack(tmp_path, (HALF,))
    assert validated(StandIn(), pack=tmp_path).screening is None
    pack(tmp_path, (HALF,), campaigns=(HALF,))
    text = (tmp_path / "pack.json").read_text()
    changed = re.sub(r'"source": "\w+"', '"source": "00"', text)
    (tmp_path / "pack.json").write_text(changed)
    with pytest.raises(UsageError, match="sha256 is not that of the rest"):
        open_pack(tmp_path)
    (tmp_path / "pack.json").write_text(json.dumps(sealed(json.loads(changed))))
    assert validated(StandIn(), pack=tmp_path).screening is None


@pytest.mark.long
def test_a_multiprocessor_that_lies_is_named() -> None:
    summary = validated(StandIn(lies=Lies(40, bit=3)))
    assert summary.screening is not None
    assert list(summary.screening.wrong) == ["40"]
    assert summary.exit_code in (1, 5)


def check_fell_back(summary: Summary, why: str) -> None:
    """Everything was compared without the fused kernel, and a note says why."""
    assert (summary.vectors, summary.mismatches, summary.exit_code) == (VECTORS, 0, 0)
    assert summary.screening is None
    (note,) = summary.form()["notes"]
    assert note.startswith("compared the ordinary way, not by the fused kernel: ")
    assert why in note


@pytest.mark.parametrize(("fault", "message"), [("refused", "cuLaunchKernelEx"), ("never", "counts 0")])
def test_a_launch_that_fails_is_void(fault: str, message: str) -> None:
    """A fused kernel's failure is none of the instruction's, which is compared the ordinary way."""
    summary = validated(StandIn(fault=f"{fault} of campaigns"))
    check_fell_back(summary, message)
    assert "is void" in summary.notes[0]


@pytest.mark.parametrize(("vendor", "made", "fault", "message"), [
    (NVIDIA, HALF, "hang", "the launch did not end within 1 s"),
    (AMD, AMD_HALF, "die", "ended with exit code 9"),
    pytest.param(NVIDIA, HALF, "never", "the kernel counts 0 tiles, of 5 ordered", marks=pytest.mark.long),
    pytest.param(AMD, AMD_HALF, "illegal", "hipErrorIllegalAddress (700)", marks=pytest.mark.long),
])  # fmt: skip
def test_a_first_launch_that_fails_in_the_child(vendor: Vendor, made: str, fault: str, message: str) -> None:
    """Nothing of it reaches this process's GPU; the ordinary way compares, and a note says why."""
    gpu, limit = vendor.gpu(fault="die of campaigns"), 1 if fault == "hang" else 60
    summary = validated(gpu, made, vendor=vendor, trial="yes", timeout=limit, child=f"{fault} of campaigns")
    check_fell_back(summary, message)
    assert "first" in summary.notes[0]


@pytest.mark.long
def test_a_first_launch_that_goes_well_in_the_child() -> None:
    assert validated(StandIn(), trial="yes").screening is not None


@pytest.mark.parametrize(("fault", "message"), [("hang", "still runs"), ("illegal", "ILLEGAL"), ("bus", "lost")])
def test_a_device_that_breaks_in_a_campaign(fault: str, message: str) -> None:
    """What came of the campaign is told before the device answers nothing more."""
    told: list[str] = []
    with pytest.raises(DeviceError, match=message):
        validated(StandIn(fault=f"{fault} of campaigns"), timeout=0.3, said=told.append)
    assert len(told) == (fault != "bus")


def test_a_compiler_that_refuses_a_campaign() -> None:
    def refuses(source: Source) -> Kernel:
        raise RefusedError("NVRTC: too many registers")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stand_ins.gpu.campaign_kernel", refuses)
        check_fell_back(validated(StandIn()), "too many registers")
