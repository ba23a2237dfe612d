"""What single tests need beside g++ and the extra ``test``: ``@pytest.mark.needs("clang")``.

Where it is not here the test is skipped, and the summary says how many were for want of what, and what gets it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cases import numpy_products
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import code_object
from mmaprobe.toolchain.amd.clang import Clang
from mmaprobe.toolchain.nvidia import nvdisasm, nvrtc

OPENS_ROCM = "from mmaprobe.devices.amd.machine import Machine; Machine().hip()"


def rocm_environment(here: bool = True) -> dict[str, str]:
    """Where a process finds ROCm's libraries: in ``MMAPROBE_ROCM``, or by the loader alone."""
    folder = os.environ.get("MMAPROBE_ROCM", "") if here else ""
    hidden = ("LD_LIBRARY_PATH", "MMAPROBE_CLANG")
    taken = {name: value for name, value in os.environ.items() if name not in hidden}
    return taken | {"MMAPROBE_CACHE": ""} | ({"LD_LIBRARY_PATH": folder} if folder else {})


def _reason(ask: Callable[[], object]) -> str:
    """What a question to the toolchain says is not here, empty if all is."""
    try:
        ask()
    except NotHereError as error:
        return str(error)
    return ""


def _cuda() -> str:
    """What compiles NVIDIA's kernels and reads them."""
    return _reason(nvrtc.version) or _reason(nvdisasm.nvdisasm)


def _newest_cuda() -> str:
    """The same, of a version that knows the newest architecture of the catalog."""
    return _cuda() or _reason(lambda: nvrtc.check_architecture("sm_107a"))


def _clang() -> str:
    """A clang that knows all of the catalog's AMD architectures, and llvm-objdump."""
    return _reason(lambda: Clang().check_architecture("gfx1251")) or _reason(code_object.objdump)


def _rocm() -> str:
    done = subprocess.run([sys.executable, "-c", OPENS_ROCM], env=rocm_environment(), capture_output=True, check=False)
    return "no ROCm, neither installed nor in MMAPROBE_ROCM" if done.returncode else ""


def _program(name: str) -> str:
    return "" if shutil.which(name) else f"{name} is not installed"


def _module(name: str) -> str:
    package = name.partition(".")[0]
    return "" if find_spec(package) and find_spec(name) else f"{name} is not installed"


def _arm(variable: str) -> str:
    """A runner of Arm's instructions that was built, and what emulates them where this is no Arm machine."""
    if not os.environ.get(variable):
        return f"{variable} is not set"
    return "" if platform.machine() == "aarch64" else _program("qemu-aarch64-static")


def _runs(machine: str) -> str:
    """What compiles a static program in C for another machine, and QEMU, which runs it."""
    return _program(f"{machine}-linux-gnu-gcc") or _program(f"qemu-{machine}-static")


def _slurm() -> str:
    """Slurm's own programs, the right to start them, and what submits jobs."""
    if hasattr(os, "geteuid") and os.geteuid():
        return "a Slurm of one node is started by root alone"
    return _program("slurmctld") or _program("munged") or _module("submitit")


def _openblas() -> str:
    """The OpenBLAS whose schedule ships, in a process that chooses its kernels."""
    there = numpy_products.asked()
    return (
        ""
        if there == numpy_products.WANTED
        else f"NumPy has {there or 'no such OpenBLAS'}, not {numpy_products.WANTED}"
    )


def _corpus() -> str:
    folder = os.environ.get("MMAPROBE_CORPUS", "")
    return "" if folder and Path(folder, "manifest.json").is_file() else "MMAPROBE_CORPUS names no folder of a corpus"


def _rows() -> str:
    folder = os.environ.get("MMAPROBE_ROWS", "")
    there = folder and Path(folder, "integer_wmma.json").is_file()
    return "" if there else "MMAPROBE_ROWS names no folder of RDNA's recorded rows"


@dataclass(frozen=True)
class Need:
    """What tests may need, the command that gets it, and why it is not here (empty where it is)."""

    what: str
    command: str
    missing: Callable[[], str]


CUDA, ARM = ("the CUDA wheels", "pip install '.[test,cuda13]'"), ("Arm's runners", "nox -s arm")
NEEDS = {
    "cuda": Need(*CUDA, _cuda),
    "sm_107a": Need("a newer NVRTC", "pip install -U nvidia-cuda-nvrtc", _newest_cuda),
    "cuda.bindings": Need(*CUDA, lambda: _module("cuda.bindings")),
    "cupy": Need("CuPy", "pip install '.[test,cuda13]'", lambda: _module("cupy")),
    "clang": Need("clang 22", "apt install clang-22 lld-22 llvm-22", _clang),
    "clang++": Need("clang++", "apt install clang", lambda: _program("clang++")),
    "g++": Need("g++", "apt install g++", lambda: _program("g++")),
    "arm": Need(*ARM, lambda: _arm("MMAPROBE_ARM_RUNNER")),
    "arm kernels": Need(*ARM, lambda: _arm("MMAPROBE_ARM_KERNELS")),
    "aarch64 programs": Need(
        "programs of Arm", "apt install gcc-aarch64-linux-gnu qemu-user-static", lambda: _runs("aarch64")
    ),
    "riscv64 programs": Need(
        "programs of RISC-V", "apt install gcc-riscv64-linux-gnu qemu-user-static", lambda: _runs("riscv64")
    ),
    "spike": Need("Spike and pk", "nox -s emulators", lambda: _runs("riscv64") or _program("spike") or _program("pk")),
    "corpus": Need("a corpus", "MMAPROBE_CORPUS=FOLDER pytest", _corpus),
    "rows": Need("RDNA's recorded rows", "MMAPROBE_ROWS=FOLDER pytest", _rows),
    "openblas": Need(f"NumPy with {numpy_products.WANTED}", "pip install numpy==2.4.6, on AVX2", _openblas),
    "rocm": Need("ROCm", "apt install libamdhip64-5", _rocm),
    "duckdb": Need(
        "pyarrow and duckdb", "pip install '.[test,cluster]'", lambda: _module("pyarrow") or _module("duckdb")
    ),
    "matplotlib": Need("matplotlib", "pip install '.[test,plot]'", lambda: _module("matplotlib")),
    "dask": Need("dask", "pip install '.[test,cluster]'", lambda: _module("distributed")),
    "slurm": Need("Slurm", "apt install slurm-wlm munge, as root", _slurm),
    "torch": Need("PyTorch", "pip install torch", lambda: _module("torch")),
}


@cache
def missing(name: str) -> str:
    """Why what tests call ``name`` is not here; empty where it is."""
    return NEEDS[name].missing()


def said(tests: Iterable[tuple[str, str]], files: Iterable[str], left_out: int) -> str:
    """One line on what did not run: single tests (a need's name, else the reason given), whole files, long ones."""
    wanted, features, others = Counter[tuple[str, str]](), Counter[str](), 0
    for name, reason in tests:
        lacking = re.search(r"\bneeds ([\w-]+)$", reason)
        if name:
            wanted[NEEDS[name].what, NEEDS[name].command] += 1
        elif lacking:
            features[lacking[1]] += 1
        else:
            others += 1
    whole = Counter((NEEDS[name].what, NEEDS[name].command) for name in files)
    parts = []
    for need in sorted(wanted | whole, key=wanted.__getitem__, reverse=True):
        counts = [f"{wanted[need]}"] * bool(wanted[need]) + [f"{whole[need]} whole files"] * bool(whole[need])
        parts.append(f"{' and '.join(counts)} want {need[0]} ({need[1]})")
    if features:
        parts.append(f"{features.total()} want another CPU ({', '.join(sorted(features))})")
    if others:
        parts.append(f"{others} say why themselves (pytest -rs)")
    if left_out:
        parts.append(f"{left_out} are long (nox -s long)")
    return f"did not run: {'; '.join(parts)}" if parts else ""
