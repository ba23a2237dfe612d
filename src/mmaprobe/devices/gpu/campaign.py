"""One launch of a fused campaign on a GPU: what goes in, what comes out, and that it can be believed.

The structs are those of csrc/gpu/campaign.hpp.  A launch is void unless the
kernel judged every tile; that it can see a fault and makes the vectors of the
CPU is proven by whoever asks (``validation.fused``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.devices.gpu.driver import Driver, HungError
from mmaprobe.devices.gpu.launch import OPERANDS, WAIT_RAN_OUT, batch_groups, memory
from mmaprobe.errors import DeviceError
from mmaprobe.toolchain.kernel import Kernel

EXAMPLES = 64
"""Mismatches that a launch keeps; ``csrc/gpu/campaign.hpp`` states the same."""
MULTIPROCESSORS = 1024
"""Multiprocessors that are counted apart; ``csrc/gpu/campaign.hpp`` states the same."""
MEASURE, MAKE, SPOIL, JUDGE = range(4)
"""What the kernel of a staged campaign does: tell where arrays lie, make vectors, spoil one output, judge."""
NOWHERE = (1 << 64) - 1
"""The tile that is spoilt where none is."""
STAGED_BYTES = 4 << 30
"""Bytes of memory of a staged campaign at most."""
CTAS_EACH = 64
"""CTAs a multiprocessor: many more than run at once, so that all of them end together."""
EXAMPLE = np.dtype(
    [("tile", "<u8"), ("place", "<u4"), ("multiprocessor", "<u4"), ("d", "<u8"), ("expected", "<u8")]
)  # fmt: skip
FOUND = np.dtype(
    [
        ("mismatches", "<u8"), ("checksum", "<u8"), ("vectors", "<u8", MULTIPROCESSORS),
        ("wrong", "<u8", MULTIPROCESSORS), ("examples", EXAMPLE, EXAMPLES),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class LaunchOrder:
    """``tiles`` tiles of a family from vector ``start`` on; ``stream`` is counter word 3 of its random words.

    The first output of tile ``sabotaged`` is taken for wrong.
    """

    family: int
    stream: int
    seed: int
    start: int
    tiles: int
    sabotaged: int = NOWHERE

    def pack(self, found: int, memory: int = 0, stage: int = 0) -> bytes:
        """The struct ``Campaign``; ``found`` is the address of the results, ``memory`` that of arrays in stages."""
        numbers = (self.seed, self.start, self.tiles, self.sabotaged, self.stream, self.family, found, memory, stage)
        return struct.pack("<QQQQIiQQi4x", *numbers)


@dataclass(frozen=True)
class MismatchPlace:
    """A mismatch: tile of the launch, row and column, the multiprocessor that computed it, both codes."""

    tile: int
    row: int
    column: int
    multiprocessor: int
    d: int
    expected: int


@dataclass(frozen=True)
class LaunchResult:
    """What a launch found; ``vectors`` and ``wrong`` by multiprocessor, the first ``places`` of the mismatches."""

    mismatches: int
    checksum: int
    vectors: NDArray[np.uint64]
    wrong: NDArray[np.uint64]
    places: tuple[MismatchPlace, ...]


Loaded = tuple[Any, Kernel]
"""A function in the present context, and the kernel that it is of."""


@dataclass
class Launches:
    """The launches of one order; ``found`` and ``done`` are addresses of results and of the count of tiles."""

    driver: Driver
    order: LaunchOrder
    seconds: float
    found: int
    done: int

    def run(self, loaded: Loaded, operands: bytes, groups: int) -> None:
        """One launch to its end; DeviceError where it did not count every tile."""
        driver, tiles = self.driver, self.order.tiles
        driver.fill(self.found, 0, FOUND.itemsize)
        driver.fill(self.done, 0, 8)
        driver.launch(*loaded, groups, operands, self.done)
        driver.wait(self.seconds)
        done = np.zeros(1, np.uint64)
        driver.copy_out(done, self.done)
        if int(done[0]) & WAIT_RAN_OUT:
            raise HungError(f"{driver.name}: hung: a wait inside the kernel ran out")
        if int(done[0]) != tiles:
            raise DeviceError(f"{driver.name}: the kernel counts {int(done[0])} tiles, of {tiles} ordered")

    def campaign(self, loaded: Loaded, memory: int = 0, stage: int = 0) -> None:
        """A launch of the campaign's own kernel."""
        self.run(loaded, self.order.pack(self.found, memory, stage), _groups(self.driver, loaded[1], self.order.tiles))

    def results(self) -> np.void:
        """What the last launch left."""
        found = np.zeros(FOUND.itemsize, np.uint8)
        self.driver.copy_out(found, self.found)
        made: np.void = found.view(FOUND)[0]
        return made


def run_order(
    driver: Driver, loaded: Loaded, batches: Loaded | None, order: LaunchOrder, side: int, seconds: float
) -> LaunchResult:
    """Run an order by its fused kernel, or in stages around the kernel of ``batches``; DeviceError where one fails.

    ``side``: vectors of a tile.  In stages an order of many tiles is run in pieces that fit memory; their
    checksums are added.
    """
    with memory(driver) as allocate:
        found, done = allocate(FOUND.itemsize), allocate(8)
        if batches is None:
            launches = Launches(driver, order, seconds, found, done)
            launches.campaign(loaded)
            return read_found(driver.name, launches.results())
        least = replace(order, tiles=1)
        _, each = _places(Launches(driver, least, seconds, found, done), loaded)
        most = max(min(driver.room() // 2, STAGED_BYTES) // each, 1)
        base = allocate(each * min(most, order.tiles))
        results = []
        for first in range(0, order.tiles, most):
            piece = _piece(order, side, first, min(most, order.tiles - first))
            results.append(_in_stages(Launches(driver, piece, seconds, found, done), loaded, batches, base))
        return _together(results, most)


def _places(launches: Launches, loaded: Loaded) -> tuple[list[int], int]:
    """Where the arrays of an order's tiles lie in the memory of a staged campaign, and how large it is."""
    launches.campaign(loaded, stage=MEASURE)
    *places, size = (int(place) for place in launches.results()["vectors"][: len(OPERANDS) + 2])
    return places, size


def _piece(order: LaunchOrder, side: int, first: int, tiles: int) -> LaunchOrder:
    """Some of an order's tiles."""
    sabotaged = order.sabotaged - first if first <= order.sabotaged < first + tiles else NOWHERE
    return replace(order, start=order.start + first * side, tiles=tiles, sabotaged=sabotaged)


def _in_stages(launches: Launches, loaded: Loaded, batches: Loaded, base: int) -> LaunchResult:
    driver, tiles = launches.driver, launches.order.tiles
    places, _ = _places(launches, loaded)
    launches.campaign(loaded, base, MAKE)
    batch = struct.pack("<8Q", *(base + place for place in places), tiles)
    launches.run(batches, batch, batch_groups(driver, batches[1], tiles))
    if launches.order.sabotaged != NOWHERE:
        launches.campaign(loaded, base, SPOIL)
    launches.campaign(loaded, base, JUDGE)
    return read_found(driver.name, launches.results())


def _together(results: list[LaunchResult], most: int) -> LaunchResult:
    """The results of pieces of ``most`` tiles."""
    places = [replace(p, tile=p.tile + n * most) for n, found in enumerate(results) for p in found.places]
    return LaunchResult(
        sum(found.mismatches for found in results),
        sum(found.checksum for found in results) % (1 << 64),
        np.sum([found.vectors for found in results], axis=0, dtype=np.uint64),
        np.sum([found.wrong for found in results], axis=0, dtype=np.uint64),
        tuple(places[:EXAMPLES]),
    )


def _groups(driver: Driver, kernel: Kernel, tiles: int) -> int:
    wanted = -(-tiles // (kernel.items * kernel.groups))
    return max(min(wanted, driver.multiprocessors * CTAS_EACH), 1)


def read_found(name: str, found: np.void) -> LaunchResult:
    """The results as a record; DeviceError where the kernel's own counts contradict each other."""
    mismatches, wrong = int(found["mismatches"]), int(found["wrong"].sum())
    if mismatches != wrong:
        raise DeviceError(f"{name}: the kernel counts {mismatches} mismatches, and {wrong} by multiprocessor")
    places = tuple(
        MismatchPlace(int(e["tile"]), int(e["place"]) >> 16, int(e["place"]) & 0xFFFF, int(e["multiprocessor"]),
                      int(e["d"]), int(e["expected"]))
        for e in found["examples"][: min(mismatches, EXAMPLES)]
    )  # fmt: skip
    return LaunchResult(mismatches, int(found["checksum"]), found["vectors"].copy(), found["wrong"].copy(), places)
