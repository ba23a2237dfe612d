"""Whole matrix products as something to ask: D = A B of any shape, bits in, bits out, one product a call."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from mmaprobe.errors import UsageError, brief
from mmaprobe.operands.batch import Bits
from mmaprobe.vendors import every

if TYPE_CHECKING:
    from typing_extensions import TypeIs

SCHEMES = {"function": "mmaprobe.devices.function", "gemm": "mmaprobe.devices.gemm"} | {
    f"{vendor.scheme}-gemm": vendor.products for vendor in every() if vendor.products
}
"""Devices that multiply matrices of any shape, and the modules whose ``open_product`` opens them."""


@dataclass(frozen=True)
class Manner:
    """How a product is called, besides with what.

    ``shift``: the operands begin so many elements after an address that 64 divides; ``pad``: rows of theirs lie so many
    elements further apart than they are long.  ``batch``: so many equal products in one call; 0: no axis for them.
    ``fill``: D is written over an array of this bit pattern, which the call gets as ``out``; None: as it makes it.
    """

    shift: int = 0
    pad: int = 0
    batch: int = 0
    fill: int | None = None


PLAIN = Manner()


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


class MannerlyProduct(MatrixProduct, Protocol):
    """A product that can be called in other manners; ``writes`` is whether it writes to ``out``."""

    @property
    def writes(self) -> bool:
        """Whether a call takes ``out``."""
        ...

    def multiply_so(self, a: Bits, b: Bits, manner: Manner) -> Bits:
        """D (M, N), or (batch, M, N), of one call; DeviceError where it cannot be called so."""
        ...


def knows_manners(product: MatrixProduct) -> TypeIs[MannerlyProduct]:
    """Whether a product can be called in other manners."""
    return hasattr(product, "multiply_so")


def open_product(name: str) -> MatrixProduct:
    """The product called ``name``: ``function:numpy:matmul?m=256&n=256&k=1000``, ``gemm:SCHEDULE?m=8&n=8&k=64``, or
    one of our own on a GPU (``cuda-gemm:0?m=256&n=256&k=1024``)."""
    scheme, _, argument = name.partition(":")
    if scheme not in SCHEMES:
        gpus = "".join(f", {each}:0" for each in list(SCHEMES)[2:])
        raise UsageError(
            f"{brief(name)} multiplies no matrices of any shape; name function:MODULE:NAME or gemm:SCHEDULE{gpus}"
        )
    found: MatrixProduct = import_module(SCHEMES[scheme]).open_product(argument)
    return found


def is_product(name: str) -> bool:
    """Whether ``open_product`` opens what is called so."""
    return name.partition(":")[0] in SCHEMES
