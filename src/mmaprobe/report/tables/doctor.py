"""What is here, what is missing, and the command that gets it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from mmaprobe import _native
from mmaprobe.devices.base import open_device, schemes
from mmaprobe.devices.listed import device_names
from mmaprobe.errors import MmaprobeError
from mmaprobe.evidence.silicon import remark
from mmaprobe.parameters.lookup import edited, known_parameters, load
from mmaprobe.report.tables.run import first_names
from mmaprobe.showing import counted
from mmaprobe.toolchain.vendors import compiler_for, disassembler
from mmaprobe.vendors import every

EXTRAS = {
    **{extra: modules for vendor in every() for extra, modules in vendor.extras.items()},
    "plot": ("matplotlib",),
    "report": ("jinja2", "matplotlib"),
    "cluster": ("pyarrow", "duckdb"),
    "test": ("pytest", "xdist", "hypothesis", "gfloat"),
}


@dataclass(frozen=True)
class Check:
    """One thing that may be here: ``ok``, what was found, and what to type when it is missing."""

    subject: str
    ok: bool
    found: str
    command: str = ""


def doctor_rows() -> list[dict[str, Any]]:
    """Every check, in the order a person would go through them."""
    checks = [
        *_package(),
        *_parameters(),
        *_cpu(),
        *(check for vendor in every() for check in _gpus(vendor.scheme)),
        *_compilers(),
    ]
    checks += [*_extras(), *_tools(), *_corpus()]
    return [asdict(check) for check in checks]


def _package() -> list[Check]:
    version = metadata.version("mmaprobe")
    builds = _native.engine_builds()
    left_out = [name for name in _native.runnable_builds() if name not in builds]
    native = f"builds here: {', '.join(builds)}" + (f"; built without {', '.join(left_out)}" if left_out else "")
    again = "pip install --force-reinstall -C cmake.define.MMAPROBE_BUILDS=all ." if left_out else ""
    return [
        Check(
            "mmaprobe",
            True,
            f"{version} on Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        ),
        Check("native module", not left_out, native, again),
        Check("devices registered", True, ", ".join(schemes())),
    ]


def _parameters() -> list[Check]:
    """Whether the parameter files are those that ship."""
    changed = [name for name in known_parameters() if edited(load(name))]
    found = f"edited: {', '.join(changed)}" if changed else "as they ship"
    return [Check("parameter files", not changed, found, "pip install --force-reinstall mmaprobe" if changed else "")]


def _cpu() -> list[Check]:
    try:
        cpu = open_device("cpu")
    except MmaprobeError as error:
        return [Check("cpu", False, str(error))]
    info = cpu.info()
    here = [i for i in cpu.instructions() if cpu.supports(i)]
    absent: dict[str, list[str]] = {}
    for instruction in cpu.instructions():
        support = cpu.supports(instruction)
        if not support:
            absent.setdefault(support.reason, []).append(instruction.id)
    checks = [
        Check(
            "cpu",
            True,
            f"{_processor(info)} ({info['architecture']}): {counted(len(here), 'instruction')} run here",
        )
    ]
    return checks + [Check("  not here", False, f"{first_names(ids)}: {reason}") for reason, ids in absent.items()]


def _processor(info: Mapping[str, str]) -> str:
    """What a processor calls itself; Arm's have numbers and no name."""
    numbers = (info.get(key, "unknown") for key in ("vendor", "model"))
    maker, part = (f"{int(each):#x}" if each.isdecimal() else each for each in numbers)
    return info.get("model_name") or f"a processor of implementer {maker}, part {part}"


def _gpus(scheme: str) -> list[Check]:
    """Each GPU of a vendor, or the one line that opening it says."""
    checks = []
    for name in device_names(scheme):
        try:
            info = open_device(name).info()
        except MmaprobeError as error:
            checks.append(Check(name, False, str(error)))
            continue
        beside = remark(name, info)
        said = f"{info['model_name']} ({info['architecture']}), driver {info['driver']}"
        told = [f", {key.upper()} {info[key]}" for key in ("ecc", "mig") if info.get(key, "no") != "no"]
        checks.append(Check(name, True, said + "".join([*told, f", {beside}" if beside else ""])))
    return checks


def _compilers() -> list[Check]:
    """What compiles and what reads kernels, of each vendor."""
    checks = []
    for vendor in every():
        for what, found in (("compiler", _compiler), ("disassembler", disassembler)):
            try:
                checks.append(Check(f"{what} for {vendor.name}", True, found(vendor.example)))
            except MmaprobeError as error:
                checks.append(Check(f"{what} for {vendor.name}", False, str(error)))
    return checks


def _compiler(architecture: str) -> str:
    return compiler_for(architecture).version()


def _extras() -> list[Check]:
    checks = []
    for extra, modules in EXTRAS.items():
        missing = [name for name in modules if not _is_here(name)]
        found = f"missing {', '.join(missing)}" if missing else ", ".join(modules)
        checks.append(
            Check(f"extra [{extra}]", not missing, found, f"pip install 'mmaprobe[{extra}]'" if missing else "")
        )
    return checks


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in
        return False


def _tools() -> list[Check]:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    arm = shutil.which("aarch64-linux-gnu-g++")
    emulator = shutil.which("qemu-aarch64-static")
    return [
        Check(
            "C++ compiler (to build from source)",
            bool(compiler),
            compiler or "not found",
            "" if compiler else "apt-get install g++",
        ),
        Check(
            "Arm cross compiler (optional)",
            bool(arm),
            arm or "not found",
            "" if arm else "apt-get install g++-aarch64-linux-gnu",
        ),
        Check(
            "Arm emulator (optional)",
            bool(emulator),
            emulator or "not found",
            "" if emulator else "apt-get install qemu-user-static",
        ),
    ]


def _corpus() -> list[Check]:
    path = os.environ.get("MMAPROBE_CORPUS", "")
    if path and (Path(path) / "manifest.json").exists():
        return [Check("recorded corpus", True, path)]
    found = f"MMAPROBE_CORPUS={path} holds no manifest.json" if path else "MMAPROBE_CORPUS is not set"
    return [
        Check(
            "recorded corpus",
            False,
            found,
            "mmaprobe corpus import model_validation/ corpus/; export MMAPROBE_CORPUS=$PWD/corpus",
        )
    ]
