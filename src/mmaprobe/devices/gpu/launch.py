"""One launch of a kernel on a batch that fits the device, and what shows that it ran.

D and a margin after it are filled with a canary; the kernel must count every
item in ``done`` (bit 63: a wait inside ran out), leave no item of D as the
canary, and leave the margin alone.  An item that equals the canary is run once
more under another one, since D may happen to have its bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.driver import Driver, HungError, OutOfMemoryError
from mmaprobe.errors import DeviceError
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.resident import Resident
from mmaprobe.showing import counted
from mmaprobe.toolchain.kernel import Kernel

OPERANDS = ("a", "b", "c", "scale_a", "scale_b", "metadata")
"""The pointers of ``Operands`` in csrc/gpu/fragments.hpp, in order; D and the number of items come after them."""
CANARIES = (0xA5, 0x5B)
"""What D is filled with before each of two launches: no byte of one is that of the other."""
MARGIN = 256
"""Bytes behind D that no kernel may touch."""
WAIT_RAN_OUT = 1 << 63
"""The bit of the count of items that says that a wait inside of a kernel ran out."""
CTAS_EACH = 8
"""CTAs a multiprocessor: enough to keep it busy; a kernel's groups go on from item to item."""


def item_bytes(instruction: Instruction) -> int:
    """Device memory of one item of a batch."""
    dtypes = {name: fmt.dtype.itemsize for name, fmt in instruction.formats().items()}
    size = instruction.m * instruction.n * instruction.blocks * dtypes["d"]
    return size + sum(int(np.prod(shape)) * dtypes.get(name, 1) for name, shape in instruction.shapes(1).items())


def launch(
    driver: Driver, function: Any, kernel: Kernel, given: Mapping[str, Bits | Resident], d: Bits, seconds: float
) -> None:
    """Fill D (batch, M, N) of checked operands; DeviceError where anything shows that it was not computed."""
    size = d.shape[0]
    with memory(driver) as allocate:
        places: dict[str, int] = {}
        for name, value in given.items():
            if isinstance(value, Resident):
                driver.settle(value)
                places[name] = value.address
                continue
            places[name] = allocate(value.nbytes)
            driver.copy_in(places[name], value)
        result = allocate(d.nbytes + MARGIN)
        operands = struct.pack("<8Q", *(places.get(name, 0) for name in OPERANDS), result, size)
        groups = batch_groups(driver, kernel, size)
        run_checked(
            driver, function, kernel, groups, operands, (result, allocate(8)), d.reshape(size, -1), size, seconds
        )


def run_checked(
    driver: Driver, function: Any, kernel: Kernel, groups: int, operands: bytes, places: tuple[int, int], d: Bits,
    stored: int, seconds: float, before: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Launch once, or twice under two canaries, and fill D (items, elements), which lies with a margin at the first of
    ``places``; the kernel must count ``stored`` at the second.  ``before`` is called before each launch."""
    result, done = places
    untouched = np.arange(0)
    for canary in CANARIES:
        before()
        driver.fill(result, canary, d.nbytes + MARGIN)
        driver.fill(done, 0, 8)
        driver.launch(function, kernel, groups, operands, done)
        driver.wait(seconds)
        _check_done(driver, done, stored)
        _check_margin(driver, result + d.nbytes, canary)
        driver.copy_out(d, result)
        untouched = np.flatnonzero((d.view(np.uint8) == canary).all(1))
        if not untouched.size:
            return
    raise DeviceError(f"{driver.name}: canary intact: D of item {untouched[0]} was never written")


@contextmanager
def memory(driver: Driver) -> Iterator[Any]:
    """Allocations that are freed at the end, and where one more does not fit; else the context goes with them."""
    held: list[int] = []

    def allocate(size: int) -> int:
        held.append(driver.allocate(size))
        return held[-1]

    def release() -> None:
        for address in held:
            driver.release(address)

    try:
        yield allocate
    except OutOfMemoryError:
        release()
        raise
    release()


def batch_groups(driver: Driver, kernel: Kernel, items: int) -> int:
    """CTAs for so many items: no more than keep the device busy, in whole clusters."""
    wanted = -(-items // (kernel.items * kernel.groups)) * kernel.cluster
    clusters = max(min(wanted, driver.multiprocessors * CTAS_EACH) // kernel.cluster, 1)
    return clusters * kernel.cluster


def _check_done(driver: Driver, address: int, items: int) -> None:
    done = np.zeros(1, np.uint64)
    driver.copy_out(done, address)
    count = int(done[0])
    if count & WAIT_RAN_OUT:
        raise HungError(f"{driver.name}: hung: a wait inside the kernel ran out")
    if count != items:
        raise DeviceError(f"{driver.name}: the kernel counts {counted(count, 'item')} stored, of {items} given")


def _check_margin(driver: Driver, address: int, canary: int) -> None:
    margin = np.zeros(MARGIN, np.uint8)
    driver.copy_out(margin, address)
    if (margin != canary).any():
        raise DeviceError(f"{driver.name}: the kernel wrote beyond the end of D")
