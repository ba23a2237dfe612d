"""Makers of GPUs, one record each: all that the rest of the house says of one, and where its folders are.

A new one is a record here and a folder each in ``devices``, ``toolchain`` and ``csrc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Vendor:
    """``scheme`` names its devices (``cuda:0``), ``begins`` is how names of its architectures begin, ``example`` one.

    ``device`` opens a device (``module:function``), ``tools`` is the module of its toolchain (``toolchain.vendors``);
    both are imported when they are first used.  ``products`` is the module of whole products of our own on its GPUs
    (``cuda-gemm:0``), or ``""``.  ``suffix``: of a compiled kernel's file.  ``compilers`` are those that
    have a name, ``programs`` those that are told by their path.  ``extras``: those of the package that it takes, with
    the modules that they bring; ``driver`` the one that runs kernels with its driver alone, or ``""``.  ``memory`` is
    DLPack's number of its GPUs' memory, ``stream`` how the Python array API numbers the default stream there.
    """

    name: str
    scheme: str
    begins: str
    example: str
    device: str
    tools: str
    products: str
    suffix: str
    compilers: tuple[str, ...]
    programs: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    driver: str
    memory: int
    stream: int

    def makes(self, architecture: str) -> bool:
        """Whether an architecture is one of its own, by its name."""
        return architecture.startswith(self.begins)

    def first(self) -> str:
        """Its first device: ``cuda:0``."""
        return f"{self.scheme}:0"

    def opener(self) -> Any:
        """What opens its devices."""
        module, _, function = self.device.partition(":")
        return getattr(import_module(module), function)


NVIDIA = Vendor(
    "NVIDIA",
    scheme="cuda",
    begins="sm_",
    example="sm_90a",
    device="mmaprobe.devices.nvidia.device:open_cuda",
    tools="mmaprobe.toolchain.nvidia.tools",
    products="mmaprobe.devices.nvidia.product",
    suffix=".cubin",
    compilers=("nvrtc",),
    programs=("nvcc",),
    extras={"cuda13": ("cuda.core", "cuda.bindings", "cupy")},
    driver="driver",
    memory=2,
    stream=1,
)
AMD = Vendor(
    "AMD",
    scheme="hip",
    begins="gfx",
    example="gfx942",
    device="mmaprobe.devices.amd.device:open_hip",
    tools="mmaprobe.toolchain.amd.tools",
    products="",
    suffix=".co",
    compilers=("hiprtc", "clang", "ziglang"),
    programs=("clang++",),
    extras={"rocm": ("ziglang",)},
    driver="",
    memory=10,
    stream=0,
)
VENDORS = (NVIDIA, AMD)


def every() -> tuple[Vendor, ...]:
    """All of them, in the order in which devices are looked for."""
    return VENDORS


def vendor_of(architecture: str) -> Vendor | None:
    """Who makes an architecture; None where no GPU has it."""
    return next((vendor for vendor in every() if vendor.makes(architecture)), None)


def vendor_called(scheme: str) -> Vendor | None:
    """Whose devices a scheme names; None where it names no GPU."""
    return next((vendor for vendor in every() if vendor.scheme == scheme), None)


def compilers(last: str = "") -> str:
    """What ``--compiler`` may be: ``nvrtc, clang, or the path of nvcc or clang++``."""
    names = [name for vendor in every() for name in vendor.compilers]
    listed = f"{', '.join(names[:-1])} {last} {names[-1]}" if last else ", ".join(names)
    return f"{listed}, or the path of {' or '.join(name for vendor in every() for name in vendor.programs)}"


def gpus(number: object, between: str = ", ") -> str:
    """The GPUs of this number: ``cuda:0, hip:0``."""
    return between.join(f"{vendor.scheme}:{number}" for vendor in every())
