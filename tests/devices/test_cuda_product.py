"""Our own products as the device ``cuda-gemm:N``: over a stand-in for the driver, without one, and options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmaprobe.cli import main
from mmaprobe.devices import products
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.parameters.schedule import read_schedule
from mmaprobe.toolchain.nvidia.products.named import product


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


@pytest.mark.parametrize("words", [["gemm:x", "--arch", "sm_90a"], ["cuda-gemm:0", "--arch", "gfx942"]])
def test_what_is_no_kernel_of_ours_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", "kernel", *words]) == 2
    assert "is no kernel of ours; name cuda-gemm:0 with --arch sm_90a" in capsys.readouterr().err
