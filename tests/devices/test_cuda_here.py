"""What the device ``cuda:N`` says of a machine: what is missing, in one line, and what a GPU is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.batches import random_batch
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.devices.gpu.driver import TooOldError
from mmaprobe.devices.listed import listed
from mmaprobe.devices.nvidia.device import open_cuda
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.report.tables.doctor import doctor_rows
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.nvidia.nvrtc import compile_source
from mmaprobe.toolchain.pack import write_pack
from mmaprobe.toolchain.render import render
from stand_ins.fake_cuda import FakeCuda, cubin, device, driver, kernels, model
from stand_ins.fake_machine import FakeNvml, machine

pytestmark = pytest.mark.needs("cuda.bindings")

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
OTHER = instruction("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
SPARSE = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
BATCH = random_batch(MADE, 21, 1)


def run(cuda: FakeCuda, batch: Batch = BATCH, **more: Any) -> Bits:
    return device(cuda, **more).run(MADE, batch)


ABSENT: dict[str, tuple[FakeCuda | None, dict[str, Any], str]] = {
    "no driver": (None, {}, "no NVIDIA driver .libcuda.so.1.; run on a machine with one"),
    "container": (None, {"files": ("/.dockerenv",)}, "in this container; on a GPU host start it with `docker run"),
    "library not mounted": (None, {"files": ("/dev/nvidiactl",)}, "device nodes are here but libcuda.so.1 is not"),
    "wsl": (None, {"proc_version": "Linux version 5.15-microsoft-standard-WSL2"}, "WSL without libcuda.so.1: install"),
    "no bindings": (FakeCuda(), {"missing": "cuda.bindings.driver"}, r"pip install 'mmaprobe\[cuda13\]'"),
    "no device": (FakeCuda(init=100), {}, "the NVIDIA driver is here but has no GPU; see: nvidia-smi -L"),
    "no device in a container": (FakeCuda(init=100), {"files": ("/.dockerenv",)}, "in this container but no GPU is"),
    "count of none": (FakeCuda(gpus=0), {}, "has no GPU"),
    "hidden": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": ""}}, "type: unset CUDA_VISIBLE_DEVICES"),
    "hidden by -1": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": "-1"}}, "='-1' hides every GPU"),
    "wrong": (FakeCuda(init=100), {"environment": {"CUDA_VISIBLE_DEVICES": "7"}}, "='7' names no GPU of this machine"),
    "MIG without a slice": (FakeCuda(init=100), {"nvml": FakeNvml(mig=1)}, "MIG is on but there is no slice"),
    "mismatch": (FakeCuda(init=803), {}, "kernel module are of different versions; reboot"),
    "fabric": (FakeCuda(init=802), {}, "systemctl start nvidia-fabricmanager"),
    "stub": (FakeCuda(init=34), {}, "toolkit's stub"),
    "unknown": (FakeCuda(init=999), {}, "cuInit answers CUDA_ERROR_UNKNOWN .999."),
    "new GPU": (FakeCuda(capability=(13, 7)), {}, "compute capability 13.7 is none of the catalog's .sm_70,"),
}


@pytest.mark.parametrize("case", ABSENT)
def test_what_is_missing_is_named(case: str) -> None:
    """One line of exit code 3 that names the device and what to do."""
    cuda, facts, said = ABSENT[case]
    with pytest.raises(NotHereError, match=said) as failed:
        open_cuda("0", machine(cuda, **facts))
    assert failed.value.exit_code == 3
    assert str(failed.value).startswith("cuda:0: ")
    assert "\n" not in str(failed.value)


def test_an_index_beyond_the_last() -> None:
    with pytest.raises(NotHereError, match="cuda:1: cuda:0 is the only GPU here; see: nvidia-smi -L"):
        open_cuda("1", machine(FakeCuda()))
    with pytest.raises(NotHereError, match="cuda:5: there are cuda:0 to cuda:3 here"):
        open_cuda("5", machine(FakeCuda(gpus=4)))


@pytest.mark.parametrize(
    ("name", "said"),
    [("x", "named by number, such as cuda:0"), ("0?tral=no", "did you mean trial"), ("0?trial=maybe", "yes or no"),
     ("0?timeout=0", "option timeout=0 must lie in")],
)  # fmt: skip
def test_wrong_names(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_cuda(name, machine(FakeCuda()))


def test_a_gpu_that_another_process_has() -> None:
    with pytest.raises(NotHereError, match="Exclusive_Process, and another process has the GPU; see: nvidia-smi"):
        run(FakeCuda(mode=3, retain=46))
    with pytest.raises(NotHereError, match="Prohibited: nobody may compute on it"):
        run(FakeCuda(mode=2, retain=46))
    with pytest.raises(NotHereError, match="the GPU is unavailable; see: nvidia-smi -q"):
        run(FakeCuda(retain=46))


def test_a_driver_too_old_for_the_binary() -> None:
    with pytest.raises(
        TooOldError, match=r"serves CUDA 12\.4 and loads no .*to 580 or newer, or pip install 'mmaprobe"
    ):
        run(FakeCuda(version=12040))
    with pytest.raises(NotHereError, match=r"cannot load .*NO_BINARY_FOR_GPU.*or make the kernel anew") as failed:
        run(FakeCuda(fault="no binary"))
    assert not isinstance(failed.value, TooOldError), "of the same version: that one binary is to blame"


AGES = [  # what made the kernels, what the driver serves, and why it loads none of them
    ("NVRTC 13.5", 13000, ""),
    ("NVRTC 12.9", 13000, ""),
    ("NVRTC 12.9", 12040, ""),
    ("nvcc 11.8", 12040, ""),
    ("NVRTC 13.5", 12090, r"update the driver to 580 or newer, or pip install 'mmaprobe\[cuda12\]'"),
    ("nvcc 13.0", 12040, r"serves CUDA 12.4 and loads no kernel made by nvcc 13.0; update the driver to 580 or newer"),
    ("NVRTC 12.8", 11080, r"update the driver to 525 or newer(; then make the pack anew|$)"),
    ("NVRTC 14.1", 13050, r"update the driver, or pip install 'mmaprobe\[cuda13\]'"),
]


@pytest.mark.parametrize(("made", "serves", "said"), AGES)
@pytest.mark.parametrize("packed", [False, True])
def test_an_old_driver_is_noticed_as_the_device_opens(
    made: str, serves: int, said: str, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a major version of CUDA any driver loads any binary; nothing is compiled or launched to find out."""
    cuda = FakeCuda(version=serves)
    monkeypatch.setattr("mmaprobe.toolchain.nvidia.nvrtc.version", lambda: pytest.fail("asked") if packed else made)
    name = "0"
    if packed:
        kernel = replace(kernels(MADE, "sm_90a"), toolchain=made)
        write_pack(tmp_path, "sm_90a", made, [Built(MADE.id, "sm_90a", "compiled", kernel=kernel)])
        name = f"0?trial=no&pack={tmp_path}"
    if not said:
        opened = open_cuda(name, machine(cuda))
        assert not packed or (opened.run(MADE, BATCH) == model(MADE, BATCH)).all()
        return
    with pytest.raises(TooOldError, match=said) as failed:
        open_cuda(name, machine(cuda))
    assert failed.value.exit_code == 3
    assert ("; then make the pack anew: mmaprobe compile --arch sm_90a" in str(failed.value)) == packed
    assert (cuda.contexts, "\n" in str(failed.value)) == (0, False)


def test_a_newer_compiler_whose_binary_is_refused() -> None:
    """What minor versions promise may fail; then it fails for every kernel, and the line says how to get others."""
    for serves, wheel in ((13000, "nvidia-cuda-nvrtc==13.0.*"), (12040, "nvidia-cuda-nvrtc-cu12==12.4.*")):
        made = f"NVRTC {serves // 1000}.9"
        with pytest.raises(TooOldError, match=re.escape(f"made by {made} (CUDA_ERROR_NO_BINARY_FOR_GPU)")) as failed:
            run(FakeCuda(fault="no binary", version=serves), toolchain=made)
        assert f"pip install '{wheel}', or with its nvcc: mmaprobe compile --arch sm_90a" in str(failed.value)


def test_a_binary_for_another_architecture() -> None:
    with pytest.raises(DeviceError, match=r"is sm_90a, but the kernel of .* its binary is for sm_80"):
        run(FakeCuda(), binary=cubin(MADE, 80))
    with pytest.raises(DeviceError, match="was made for sm_80"):
        run(FakeCuda(), architecture="sm_80")
    with pytest.raises(DeviceError, match="are no cubin"):
        run(FakeCuda(), binary=b"PTX")


def test_an_instruction_that_this_gpu_lacks() -> None:
    lacking = instruction("tcgen05.mma.cta_group::1.kind::f16.m128n64k16.f32.f16.f16")
    opened = device(FakeCuda())
    assert opened.supports(MADE)
    assert re.match("this GPU lacks it: sm_90a has no tcgen05; sm_100a, ", opened.supports(lacking).reason)
    with pytest.raises(NotHereError, match=r"this GPU lacks it: .*; see `mmaprobe instructions sm_90a`"):
        opened.run(lacking, random_batch(lacking, 1, 1))


def test_this_machine_says_what_it_lacks() -> None:
    """Through the registry."""
    if Machine().library():
        pytest.skip("there is a driver here")
    with pytest.raises(NotHereError, match=r"^cuda:0: .*libcuda\.so\.1"):
        open_device("cuda:0")


def test_identity() -> None:
    """Name, UUID, architecture, driver, VBIOS, ECC and clocks; read once, so that it stays the same."""
    opened = open_cuda("0", machine(FakeCuda(), nvml=FakeNvml()))
    assert opened.info() == {
        "silicon": "yes",
        "architecture": "sm_90a",
        "model_name": "NVIDIA H200",
        "uuid": "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f",
        "mig": "no",
        "driver": "580.65.06",
        "vbios": "96.00.A5.00.01",
        "ecc": "on",
        "clock_sm_mhz": "1980",
        "clock_memory_mhz": "3201",
        "cuda_version": "13.0",
        "multiprocessors": "132",
    }
    assert opened.siblings() == ["cuda:0"]


def test_identity_of_a_slice_without_nvml() -> None:
    found = open_cuda("", machine(FakeCuda(name=b"NVIDIA A100-SXM4-40GB MIG 1g.5gb", capability=(8, 0)))).info()
    assert (found["architecture"], found["mig"], found["ecc"]) == ("sm_80", "1g.5gb", "not read")
    assert found["uuid"].startswith("MIG-")


@pytest.mark.parametrize(("major", "minor", "name"), [(7, 0, "sm_70"), (8, 9, "sm_89"), (10, 0, "sm_100a"),
                                                      (12, 0, "sm_120a"), (12, 1, "sm_121a")])  # fmt: skip
def test_architectures_by_compute_capability(major: int, minor: int, name: str) -> None:
    assert driver(FakeCuda(capability=(major, minor))).architecture == name


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90a", "sm_120a"])
def test_a_binary_of_the_compiler_is_loaded(architecture: str) -> None:
    """The architecture in a cubin as NVRTC writes it is that of the GPU."""
    made = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")
    major, minor = int(architecture.strip("sm_a")) // 10, int(architecture.strip("sm_a")) % 10
    kernel = compile_source(render(made, architecture))
    gpu = driver(FakeCuda(capability=(major, minor), version=int(kernel.toolchain.split()[1].split(".")[0]) * 1000))
    gpu.start()
    with gpu.current():
        assert gpu.load(kernel)
        with pytest.raises(DeviceError, match=f"is {architecture}, but the kernel of"):
            gpu.load(replace(kernel, architecture="sm_89"))


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """A machine with two GPUs, as ``open_device`` sees it."""
    cuda = FakeCuda(gpus=2)
    monkeypatch.setattr("mmaprobe.devices.nvidia.device.Machine", lambda: machine(cuda, nvml=FakeNvml()))
    monkeypatch.setattr("mmaprobe.devices.nvidia.device.kernel", kernels)
    return cuda


def test_every_gpu_is_listed(two_gpus: FakeCuda) -> None:
    rows = [row.as_row() for row in listed() if row.device.startswith("cuda")]
    assert [row["device"] for row in rows] == ["cuda:0", "cuda:1"]
    assert re.fullmatch(r"NVIDIA H200 sm_90a: \d+ instructions run here", rows[1]["what"])
    found = [row for row in doctor_rows() if row["subject"].startswith("cuda:")]
    assert [row["ok"] for row in found] == [True, True]
    assert found[0]["found"] == "NVIDIA H200 (sm_90a), driver 580.65.06, ECC on"


@pytest.mark.parametrize(("fault", "code"), [("", 0), ("never", 5), ("hang", 5), ("ecc", 5), ("no binary", 3)])
def test_exit_codes(two_gpus: FakeCuda, capsys: pytest.CaptureFixture[str], fault: str, code: int) -> None:
    """``mmaprobe validate``: equal, or one line of standard error."""
    two_gpus.fault = fault
    name = "cuda:1?trial=no&timeout=0.05"
    assert main(["validate", name, "model:sm_90a", MADE.id, "-n", "2000"]) == code
    said = capsys.readouterr().err
    if fault:
        assert re.match(r"mmaprobe: .*cuda:1.*\n\Z", said), said
