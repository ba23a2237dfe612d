"""The device ``cuda-gemm:N?kernel=...``: a product of our own on an NVIDIA GPU, of any shape, one product a call.

``kernel`` is ``multistage`` (the default), ``cooperative`` or ``pingpong``; ``m``, ``n`` and ``k`` (256) are the shape
that is meant; ``timeout`` (60) bounds each launch.  Other options are the kernel's own: ``operands`` (f16 or bf16),
``stages``, ``tile`` (``128x128x32``), ``group``, ``turned``, and of the last two ``workers``, ``parts``, ``stream``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mmaprobe.devices.gpu.launch import MARGIN, memory, run_checked
from mmaprobe.devices.nvidia.driver import CudaDriver, open_driver
from mmaprobe.devices.nvidia.machine import Machine
from mmaprobe.devices.options import number, split_options, whole
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.schedule import Schedule
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.kernel_cache import kernel_of
from mmaprobe.toolchain.nvidia.products.named import OPTIONS, Product, product
from mmaprobe.toolchain.nvidia.products.reading import KernelReading, reading
from mmaprobe.toolchain.nvidia.products.ring import CONSUMERS
from mmaprobe.toolchain.nvidia.products.warp_specialised import WarpSpecialised
from mmaprobe.toolchain.source import Source

MEANT = 256
"""M, N and K where the name says nothing."""
ALIGNMENT = 64
"""Bytes on which the parameters of a kernel with tensor maps lie, and which they fill."""
Compile = Callable[[Source], Kernel]


@dataclass(frozen=True)
class CudaProduct:
    """One kernel of ours; it is compiled for each shape that is asked."""

    name: str
    shape: tuple[int, int, int]
    options: dict[str, str]
    seconds: float
    _driver: CudaDriver = field(repr=False)
    _compile: Compile = field(default=kernel_of, repr=False)
    d: ClassVar[str] = "f32"
    threads: ClassVar[int] = 0
    environment: ClassVar[tuple[str, ...]] = ()

    @property
    def a(self) -> str:
        """Format of A."""
        return self.of(*self.shape).operands

    @property
    def b(self) -> str:
        """Format of B."""
        return self.a

    @property
    def version(self) -> str:
        """The GPU that it runs on."""
        return self._driver.identity()["model_name"]

    @property
    def schedule(self) -> Schedule:
        """The schedule that it states for its shape."""
        return self.of(*self.shape).schedule()

    def of(self, m: int, n: int, k: int) -> Product:
        """The product of a shape; UsageError where the kernel does not fit it."""
        return product(self.options, m, n, k, self._driver.architecture)

    def multiply(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of A (M, K) and B (K, N); UsageError for a shape that the kernel does not fit, DeviceError where
        anything shows that D was not computed."""
        made = self.of(a.shape[0], b.shape[1], a.shape[1])
        kernel = self._compile(made.source())
        driver = self._driver
        driver.start()
        try:
            with driver.current():
                return self._launched(made, kernel, np.ascontiguousarray(a), np.ascontiguousarray(b))
        except DeviceError:
            driver.stop()
            raise

    def _launched(self, made: Product, kernel: Kernel, a: Bits, b: Bits) -> Bits:
        driver, d = self._driver, np.zeros((made.m, made.n), np.uint32)
        function = driver.load(kernel)
        with memory(driver) as allocate:
            places = [allocate(each.nbytes) for each in (a, b)]
            for place, array in zip(places, (a, b), strict=True):
                driver.copy_in(place, array)
            result, done = allocate(d.nbytes + MARGIN), allocate(8)
            operands, before = struct.pack("<3Q", *places, result), _nothing
            if isinstance(made, WarpSpecialised):
                cut = made.most_parts > 1
                came = allocate(made.order.steps * CONSUMERS * 4)
                parts = allocate(made.most_parts * d.nbytes if cut else 1)
                shapes = (a.shape, b.shape)
                maps = map(driver.tensor_map, places, shapes, made.boxes())
                operands = b"".join(maps) + struct.pack("<3Q", result, parts, came)
                operands = operands.ljust(-(-len(operands) // ALIGNMENT) * ALIGNMENT, b"\0")

                def before() -> None:
                    driver.fill(came, 0, made.order.steps * CONSUMERS * 4)

            items = d.reshape(-1, 1)
            run_checked(driver, function, kernel, made.groups, operands, (result, done), items, made.corners,
                        self.seconds, before)  # fmt: skip
        return d


def _nothing() -> None:
    """What is to be done before the launch of a kernel that leaves nothing behind."""


def open_product(argument: str, machine: Machine | None = None, build: Compile = kernel_of) -> CudaProduct:
    """The product ``cuda-gemm:argument``.

    UsageError for a wrong name or option; NotHereError in one line that says what is missing: driver, bindings, a GPU,
    this GPU.
    """
    index, shape, seconds, options = _asked(argument)
    driver = open_driver(index, machine or Machine())
    made = CudaProduct(f"cuda-gemm:{argument}", shape, options, seconds, driver, build)
    made.of(*shape)
    return made


def read_kernel(argument: str, architecture: str) -> KernelReading:
    """What ``cuda-gemm:argument`` runs on a GPU of an architecture, compiled and read without one."""
    _, shape, _, options = _asked(argument)
    return reading(product(options, *shape, architecture))


def _asked(argument: str) -> tuple[int, tuple[int, int, int], float, dict[str, str]]:
    """Number of the GPU, shape, time limit and the kernel's own options; UsageError for a wrong one."""
    target, options = split_options(argument, (*OPTIONS, "m", "n", "k", "timeout"))
    if not (target or "0").isdecimal():
        raise UsageError(f"cuda-gemm:{argument}: GPUs are named by number, such as cuda-gemm:0; see: mmaprobe devices")
    m, n, k = (whole(options, axis, MEANT, 1) for axis in "mnk")
    seconds = number(options, "timeout", 60, 0.001, 1e6)
    return int(target or 0), (m, n, k), seconds, {key: value for key, value in options.items() if key in OPTIONS}
