"""ROCm's own libraries where no GPU is: in the folder ``MMAPROBE_ROCM``, which CI unpacks, else as installed.

Everything runs in a process of its own, which alone finds them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from compilers import compiles_amd

FOLDER = os.environ.get("MMAPROBE_ROCM", "")
NAME = "v_mfma_f32_32x32x8f16"
OPENS = "from mmaprobe.devices.hip_machine import Machine; Machine().hip()"
COMMAND = "import sys; from mmaprobe.cli import main; sys.exit(main(sys.argv[1:]))"


def python(text: str, *arguments: str, rocm: bool = True) -> subprocess.CompletedProcess[str]:
    """A Python that finds ROCm's libraries, or nothing beside what the loader knows by itself."""
    where = {"LD_LIBRARY_PATH": FOLDER} if rocm and FOLDER else {}
    taken = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "MMAPROBE_CLANG")}
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(
        command, env=taken | where | {"MMAPROBE_CACHE": ""}, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module", autouse=True)
def _rocm() -> None:
    if python(OPENS).returncode:
        pytest.skip("no ROCm; of Debian: apt-get install libamdhip64-5, or unpack it and set MMAPROBE_ROCM")
    if os.path.exists("/dev/kfd"):
        pytest.skip("this machine may have an AMD GPU")


def hip_row(rocm: bool) -> dict[str, str]:
    done = python(COMMAND, "devices", "--json", rocm=rocm)
    assert done.returncode == 0, done.stderr
    (row,) = (row for row in json.loads(done.stdout) if row["device"].startswith("hip"))
    return dict(row)


def test_a_runtime_without_a_gpu_is_one_line() -> None:
    row = hip_row(rocm=True)
    assert row["what"].startswith("hip:0: ROCm's runtime is here but no AMD GPU is (/dev/kfd is missing); on a host")
    assert "\n" not in row["what"]
    done = python(COMMAND, "run", "--device", "hip:0")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"mmaprobe: {row['what']}\n")


def test_no_runtime_is_one_line() -> None:
    if not python(OPENS, rocm=False).returncode:
        pytest.skip("ROCm is installed here")
    row = hip_row(rocm=False)
    assert row["what"].startswith("hip:0: no ROCm: libamdhip64.so is neither where the loader looks nor in ROCM_PATH")


@compiles_amd
def test_its_compiler_needs_no_gpu() -> None:
    """By itself where it serves the architecture; another one where it does not, whatever LLVM makes of that."""
    done = python(COMMAND, "compile", "--arch", "gfx90a", "--instruction", NAME, "--compiler", "hiprtc", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in json.loads(done.stdout)["kernels"]] == ["compiled"]
    done = python(COMMAND, "compile", "--arch", "gfx1250", "--compiler", "hiprtc")
    assert done.returncode == 3
    assert "does not compile for gfx1250: update ROCm, or set MMAPROBE_CLANG" in done.stderr
