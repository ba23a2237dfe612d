"""The fused campaign of one instruction on one GPU: made, run, evaluated and compared there; only mismatches come back.

Before a family counts, a small launch of it must prove itself: the checksum of
its expected codes is that of the CPU's generator and model, and an output that
the kernel is told to take for wrong is one mismatch more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as instruction_of
from mmaprobe.catalog.modifiers import changes_batch
from mmaprobe.devices.base import Device, has
from mmaprobe.devices.gpu.campaign import MULTIPROCESSORS, LaunchOrder, LaunchResult, MismatchPlace
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.generators import Recipe, generate_tiles
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import FAMILIES, stream_number
from mmaprobe.models.model import run_tiles
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.showing import counted
from mmaprobe.toolchain.campaign import campaign_source, takes
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.source import Source
from mmaprobe.validation.native import datapath_of
from mmaprobe.validation.summary import MOST_PLACES, Screening

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LEAST = 1 << 21
"""Vectors of a validation from which on a fused kernel is worth compiling and proving."""
ALONE = 1 << 12
"""Vectors of each family that take the ordinary way all the same: outputs alone on diagonals, and another kernel."""
SECONDS = 0.5
"""Seconds that a launch should take."""
PROOF = 48
"""Tiles of a proof."""
PROOF_OUTPUTS = 16
"""Outputs of a tile on which a proof counts: more tiles where one has fewer."""
SABOTAGED = 29
"""The tile of a proof whose first output is taken for wrong."""
FIRST = 1 << 24
"""Vectors of the first launch."""
MOST = 1 << 37
"""Vectors of any launch at most."""
PRIME = 0x9E3779B1
"""Makes odd numbers of places for the checksum: a prime near 2**32 by the golden ratio (Knuth), as in
``csrc/gpu/campaign.hpp``."""


class UnsteadyLaunchError(DeviceError):
    """Launches of one order differ: no other way of comparing would fare better."""


class CampaignDevice(Device, Protocol):
    """A GPU that runs fused campaigns; ``multiprocessor`` is what its vendor calls one."""

    architecture: str
    multiprocessor: str

    @property
    def multiprocessors(self) -> int:
        """How many multiprocessors there are."""
        ...

    def settled(self, instruction: Instruction) -> Instruction:
        """The instruction as it runs there."""
        ...

    def prepare_campaign(self, source: Source) -> None:
        """NotHereError where there is no kernel of this source."""
        ...

    def run_campaign(self, source: Source, order: LaunchOrder) -> LaunchResult:
        """What one launch found."""
        ...


def runs_campaigns(device: Device) -> TypeIs[CampaignDevice]:
    """Whether it runs fused campaigns."""
    return has(
        device, "architecture", "multiprocessor", "multiprocessors", "settled", "prepare_campaign", "run_campaign"
    )


def instead(why: str) -> str:
    """What is said where a fused kernel fails."""
    return f"compared the ordinary way, not by the fused kernel: {why}"


def source_of(instruction: Instruction, architecture: str, datapath: Datapath) -> Source | None:
    """The campaign of an instruction with a datapath compiled in; None where there is no such way."""
    if not takes(instruction) or changes_batch(instruction):
        return None
    words = program(datapath)
    if words is None:
        return None
    return campaign_source(instruction, architecture, domain(instruction).packed().tolist(), words.tolist())


def shipped_campaigns(names: Iterable[str], architecture: str) -> Iterator[Source]:
    """The campaigns of instructions with the datapaths of the shipped parameters, where there are both."""
    for name in names:
        made = instruction_of(name, architecture)
        try:
            source = source_of(made, architecture, datapath_for(architecture, made))
        except UsageError:
            continue
        if source is not None:
            yield source


def fused(
    dut: Device, ref: Device, instruction: Instruction, refused: Callable[[str], None] | None = None
) -> FusedComparison | None:
    """The fused way between a GPU and a model; None where there is none here: no kernel, or none that compiles.

    ``refused`` is told what the compiler says against it.
    """
    path = datapath_of(ref, instruction)
    if not runs_campaigns(dut) or path is None:
        return None
    source = source_of(dut.settled(instruction), dut.architecture, path)
    if source is None:
        return None
    try:
        dut.prepare_campaign(source)
    except NotHereError:
        return None
    except RefusedError as error:
        if refused is not None:
            refused(str(error))
        return None
    return FusedComparison(dut, instruction, path, source)


@dataclass
class FusedComparison:
    """Launches one after another, of a size that takes about ``SECONDS``."""

    device: CampaignDevice
    instruction: Instruction
    datapath: Datapath
    source: Source
    proven: set[tuple[str, int]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    rate: float = FIRST / SECONDS
    vectors: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(MULTIPROCESSORS, np.uint64))
    wrong: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(MULTIPROCESSORS, np.uint64))
    first: list[tuple[str, int, int, int]] = field(default_factory=list)

    @property
    def outputs(self) -> int:
        """Vectors of a tile."""
        return self.instruction.m * self.instruction.n

    @property
    def proof(self) -> int:
        """Tiles of a proof."""
        return PROOF * max(PROOF_OUTPUTS // self.outputs, 1)

    def tiles(self) -> int:
        """Tiles of a launch as fast as the last one."""
        return max(int(min(self.rate * SECONDS, MOST)) // self.outputs, 1)

    def compare(self, family: str, seed: int, start: int, tiles: int) -> tuple[int, list[tuple[int, MismatchPlace]]]:
        """How many of the tiles' results differ, and those that were reported, by their index (tile, row, column).

        DeviceError where the device broke down, or the family does not prove itself.
        """
        with self.lock:
            if (family, seed) not in self.proven:
                self._prove(family, seed)
                self.proven.add((family, seed))
            begin = time.monotonic()
            found = self._run(family, seed, start, tiles)
            self.rate = tiles * self.outputs / max(time.monotonic() - begin, 1e-6)
            self.vectors += found.vectors
            self.wrong += found.wrong
            self.first += [self._named(family, seed, start, place) for place in found.places][
                : MOST_PLACES - len(self.first)
            ]
        n = self.instruction.n
        where = ((place.tile * self.outputs + place.row * n + place.column, place) for place in found.places)
        return found.mismatches, sorted(where, key=lambda found: found[0])

    def prove(self, family: str, seed: int) -> int:
        """How many vectors of a family's proof differ; the errors of ``compare``."""
        return self.compare(family, seed, 0, self.proof)[0]

    def screening(self) -> Screening:
        """What every multiprocessor computed so far."""
        wrong = {str(number): int(count) for number, count in enumerate(self.wrong) if count}
        covered = int(np.count_nonzero(self.vectors))
        return Screening(self.device.multiprocessors, covered, wrong, tuple(self.first), self.device.multiprocessor)

    def _named(self, family: str, seed: int, start: int, place: MismatchPlace) -> tuple[str, int, int, int]:
        """A mismatch by its recipe: where it was computed, both codes."""
        index = start + place.tile * max(self.instruction.m, self.instruction.n)
        recipe = Recipe.of(self.instruction, family, seed, index, (place.row, place.column))
        return str(recipe), place.multiprocessor, place.d, place.expected

    def _run(self, family: str, seed: int, start: int, tiles: int, **changes: int) -> LaunchResult:
        order = LaunchOrder(FAMILIES.index(family), stream_number(family), seed, start, tiles, **changes)
        return self.device.run_campaign(self.source, order)

    def _prove(self, family: str, seed: int) -> None:
        tiles = generate_tiles(self.instruction, family, seed, 0, self.proof)
        expected = run_tiles(self.instruction, self.datapath, tiles)
        plain = self._run(family, seed, 0, self.proof)
        if plain.checksum != checksum(expected):
            raise DeviceError(
                f"{self.instruction.id}: the fused kernel's vectors or model of family {family} are not those of the "
                "CPU: nothing it says counts"
            )
        spoilt = self._run(family, seed, 0, self.proof, sabotaged=SABOTAGED)
        if abs(spoilt.mismatches - plain.mismatches) == 1 and spoilt.checksum == plain.checksum:
            return
        said = (
            f"{self.instruction.id}: the fused kernel was told to take one output for wrong and finds "
            f"{counted(spoilt.mismatches, 'mismatch')}, {plain.mismatches} without"
        )
        again = self._run(family, seed, 0, self.proof), self._run(family, seed, 0, self.proof, sabotaged=SABOTAGED)
        if [_outcome(found) for found in again] != [_outcome(plain), _outcome(spoilt)]:
            raise UnsteadyLaunchError(f"{said}, and then otherwise: the GPU's answers do not repeat")
        raise DeviceError(f"{said}: it does not compare")


def _outcome(found: LaunchResult) -> tuple[int, int]:
    """What is the same of two launches of one order."""
    return found.mismatches, found.checksum


def checksum(expected: Bits) -> int:
    """The checksum of ``LaunchResult``: every code times an odd number made of the output's place, modulo 2**64."""
    flat = expected.reshape(-1).astype(np.uint64)
    places = np.arange(flat.size, dtype=np.uint32) * np.uint32(PRIME) | np.uint32(1)
    return int((flat * places.astype(np.uint64)).sum(dtype=np.uint64))
