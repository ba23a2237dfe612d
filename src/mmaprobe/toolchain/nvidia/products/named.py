"""Our products by name and options, such as those in a device's name: ``kernel=pingpong&stages=5&tile=64x128``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmaprobe.errors import UsageError, brief, near
from mmaprobe.toolchain.nvidia.products.multistage import Multistage
from mmaprobe.toolchain.nvidia.products.warp_specialised import WarpSpecialised

Product = Multistage | WarpSpecialised
KERNELS = ("multistage", "cooperative", "pingpong")
"""What ``kernel`` may be; the last two are of the warp-specialised kernel."""
NUMBERS = {"multistage": ("stages", "group"), "cooperative": ("stages", "group", "workers", "parts")}
FLAGS = {"multistage": ("turned",), "cooperative": ("turned", "stream")}
OPTIONS = ("kernel", "operands", "tile", "stages", "group", "turned", "workers", "parts", "stream")
"""Every option; ``kernel=multistage`` takes no ``workers``, ``parts`` and ``stream``."""
WARP_SPECIALISED = "sm_90a"
"""The architecture that has TMA and wgmma."""
LARGEST = 1 << 20
"""Largest value of an option that is a number."""


def product(options: Mapping[str, str], m: int, n: int, k: int, architecture: str) -> Product:
    """The product of a shape on an architecture; UsageError for an unknown kernel, an option that it has not, a wrong
    value, or what the kernel does not fit."""
    kernel = options.get("kernel", KERNELS[0])
    if kernel not in KERNELS:
        raise UsageError(f"kernel={brief(kernel)} must be one of {', '.join(KERNELS)}{near(kernel, KERNELS)}")
    plain = kernel == "multistage"
    kind = "multistage" if plain else "cooperative"
    given: dict[str, Any] = {"operands": options.get("operands", "f16")}
    for name, text in options.items():
        if name in NUMBERS[kind]:
            given[name] = _whole(name, text)
        elif name in FLAGS[kind]:
            given[name] = bool(_whole(name, text, 0, 1))
        elif name == "tile":
            given[name] = tuple(_whole(name, each) for each in text.split("x"))
        elif name in OPTIONS and name not in ("kernel", "operands"):
            raise UsageError(f"kernel={kernel} takes no {name}")
    if plain:
        return Multistage(m, n, k, architecture=architecture, **given)
    if architecture != WARP_SPECIALISED:
        raise UsageError(f"kernel={kernel} is for {WARP_SPECIALISED}, not {architecture}; take kernel=multistage")
    if kernel == "pingpong":
        given = {"tile": (64, 128), "pingpong": True} | given
    return WarpSpecialised(m, n, k, **given)


def _whole(name: str, text: str, least: int = 1, most: int = LARGEST) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 7 or not least <= int(text) <= most:
        raise UsageError(f"option {name}={brief(text)} must be a whole number from {least} to {most}")
    return int(text)
