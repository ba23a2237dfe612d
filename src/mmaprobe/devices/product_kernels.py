"""Our own products on GPUs, read from their machine code on a machine without one."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.schedule import Schedule
from mmaprobe.vendors import every, vendor_of


class KernelRead(Protocol):
    """What was read of a compiled product (``read_kernel``)."""

    @property
    def what(self) -> str:
        """The product and its kernel."""
        ...

    @property
    def toolchain(self) -> str:
        """What compiled it."""
        ...

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The orders that elements of D have, and how many have each."""
        ...

    @property
    def schedule(self) -> Schedule:
        """What it states."""
        ...

    @property
    def wrong(self) -> tuple[str, ...]:
        """How it differs from that, or what it does that no kernel should."""
        ...

    @property
    def states(self) -> int:
        """States of its barriers, all visited; 0 where it has none."""
        ...


def read_kernel(name: str, architecture: str) -> KernelRead:
    """What a product of ours on a GPU (``cuda-gemm:0?kernel=multistage&m=64&n=64&k=64``) runs on an architecture,
    compiled and read on a machine without one; UsageError for another product or architecture."""
    scheme, _, argument = name.partition(":")
    vendor = vendor_of(architecture)
    if vendor is None or not vendor.products or scheme != f"{vendor.scheme}-gemm":
        ours = " or ".join(f"{each.scheme}-gemm:0 with --arch {each.example}" for each in every() if each.products)
        raise UsageError(f"{brief(name)} for {architecture} is no kernel of ours; name {ours}")
    found: KernelRead = import_module(vendor.products).read_kernel(argument, architecture)
    return found
