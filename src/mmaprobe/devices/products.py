"""Whole matrix products as something to ask: D = A B of any shape, bits in, bits out, one product a call."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from mmaprobe.errors import UsageError, brief
from mmaprobe.operands.batch import Bits

SCHEMES = ("function", "gemm")
"""Devices that multiply matrices of any shape; ``mmaprobe.devices.SCHEME.open_product`` opens them."""


class MatrixProduct(Protocol):
    """D = A B; ``shape`` (M, N, K) is the one that its name says, and others may be asked for.

    ``threads`` (0: not said) and ``environment`` (NAME=VALUE) are those that its library was loaded with.
    """

    @property
    def name(self) -> str:
        """The device's name."""
        ...

    @property
    def a(self) -> str:
        """Format of A."""
        ...

    @property
    def b(self) -> str:
        """Format of B."""
        ...

    @property
    def d(self) -> str:
        """Format of D."""
        ...

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K."""
        ...

    @property
    def version(self) -> str:
        """Version of the library."""
        ...

    @property
    def threads(self) -> int:
        """Threads that it was told to have, or 0."""
        ...

    @property
    def environment(self) -> tuple[str, ...]:
        """Its environment."""
        ...

    def multiply(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of A (M, K) and B (K, N); DeviceError where it fails, UsageError for a shape that it has not."""
        ...


def open_product(name: str) -> MatrixProduct:
    """The product called ``name``: ``function:numpy:matmul?m=256&n=256&k=1000`` or ``gemm:SCHEDULE?m=8&n=8&k=64``."""
    scheme, _, argument = name.partition(":")
    if scheme not in SCHEMES:
        raise UsageError(
            f"{brief(name)} multiplies no matrices of any shape; name function:MODULE:NAME or gemm:SCHEDULE"
        )
    found: MatrixProduct = import_module(f"mmaprobe.devices.{scheme}").open_product(argument)
    return found


def is_product(name: str) -> bool:
    """Whether ``open_product`` opens what is called so."""
    return name.partition(":")[0] in SCHEMES
