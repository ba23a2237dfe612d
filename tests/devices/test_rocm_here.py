"""ROCm's own libraries where no GPU is: in the folder ``MMAPROBE_ROCM``, which CI unpacks, else as installed.

Everything runs in a process of its own, which alone finds them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from needs import OPENS_ROCM, rocm_environment

NAME = "v_mfma_f32_32x32x8f16"
COMMAND = "import sys; from mmaprobe.cli import main; sys.exit(main(sys.argv[1:]))"


def python(text: str, *arguments: str, rocm: bool = True) -> subprocess.CompletedProcess[str]:
    """A Python that finds ROCm's libraries, or nothing beside what the loader knows by itself."""
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, env=rocm_environment(rocm), capture_output=True, text=True, check=False)


pytestmark = [
    pytest.mark.needs("rocm"),
    pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine may have an AMD GPU"),
]


def hip_row(rocm: bool) -> dict[str, str]:
    done = python(COMMAND, "devices", "--json", rocm=rocm)
    assert done.returncode == 0, done.stderr
    (row,) = (row for row in json.loads(done.stdout)["rows"] if row["device"].startswith("hip"))
    return dict(row)


def test_a_runtime_without_a_gpu_is_one_line() -> None:
    row = hip_row(rocm=True)
    assert row["what"].startswith("hip:0: ROCm's runtime is here but no AMD GPU is (/dev/kfd is missing); on a host")
    assert "\n" not in row["what"]
    done = python(COMMAND, "run", "--device", "hip:0")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"mmaprobe: {row['what']}\n")


def test_no_runtime_is_one_line() -> None:
    if not python(OPENS_ROCM, rocm=False).returncode:
        pytest.skip("ROCm is installed here")
    row = hip_row(rocm=False)
    assert row["what"].startswith("hip:0: no ROCm: libamdhip64.so is neither where the loader looks nor in ROCM_PATH")


@pytest.mark.needs("clang")
def test_its_compiler_needs_no_gpu() -> None:
    """By itself where it serves the architecture; another one where it does not, whatever LLVM makes of that."""
    done = python(COMMAND, "compile", "--arch", "gfx90a", "--instruction", NAME, "--compiler", "hiprtc", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["status"] for row in json.loads(done.stdout)["kernels"]] == ["compiled"]
    done = python(COMMAND, "compile", "--arch", "gfx1250", "--compiler", "hiprtc")
    assert done.returncode == 3
    assert "does not compile for gfx1250: update ROCm, or set MMAPROBE_CLANG" in done.stderr
