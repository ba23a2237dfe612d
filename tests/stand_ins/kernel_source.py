"""A stand-in for a GPU whose launches run the kernels' own data movement around a model as matrix unit; any vendor's.

A binary is a header and the kernel's source.  A launch compiles the source for the host, moves every item through the
kernel's loads into emulated registers (and shared memory), has ``unit`` compute what the instruction in the source
makes of them, and moves D back by the kernel's stores.  So a wrong layout, address, selector or modifier in a source is
a wrong answer, as on a GPU.  What no source can say is a fault of ``FakeLaunch``, of the machine or one of those below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emulator.registers import Array
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.pack import Pack, write_pack
from mmaprobe.toolchain.source import Source
from stand_ins.campaign import is_campaign, run_launch
from stand_ins.fake_launch import FakeLaunch, Grid, Unit

Seed = tuple[str, str]
"""A text of a source, and what stands there instead."""


@dataclass(frozen=True)
class Lies:
    """One multiprocessor flips ``bit`` of the first element of D, in every ``every``-th item that it computes."""

    multiprocessor: int
    bit: int = 0
    every: int = 1


class RunsSources(FakeLaunch):
    """A GPU that runs sources, of ``count`` multiprocessors.

    ``lies``: a faulty multiprocessor.  ``dead``: ids whose kernels do nothing.  ``events``: what happens before the
    launch of a number (another process comes, an error is counted, ``fault`` is set).
    """

    count: int

    def __init__(self, **facts: Any) -> None:
        self.lies: Lies | None = facts.pop("lies", None)
        self.dead: tuple[str, ...] = facts.pop("dead", ())
        self.events: Mapping[int, Callable[[], Any]] = facts.pop("events", {})
        self.lied = 0
        super().__init__(**facts)

    def loaded(self, image: bytes) -> tuple[Instruction, Source]:
        """The instruction and the source of a binary."""
        raise NotImplementedError

    def moved(self, made: Instruction, source: Source, batch: Batch) -> Bits:
        """D by the source's own loads and stores around the unit."""
        raise NotImplementedError

    def moved_tiles(self, made: Instruction, source: Source, tiles: Batch) -> Bits:
        """D of the tiles of one step of a campaign."""
        return self.moved(made, source, tiles)

    def launched(self, image: bytes, grid: Grid, parameters: int) -> str:
        if self.launches in self.events:
            self.events[self.launches]()
        return super().launched(image, grid, parameters)

    def concerns(self, of: str, image: bytes) -> bool:
        """``campaigns``: those of the fused campaigns alone."""
        return super().concerns(of, image) or (of == "campaigns" and is_campaign(image))

    def named(self, image: bytes) -> Instruction:
        return self.loaded(image)[0]

    def answer(self, image: bytes, grid: Grid, batch: Batch) -> Bits:
        made, source = self.loaded(image)
        d = self.moved(made, source, batch)
        if self.lies is not None:
            groups = grid.threads // source.threads
            self._lie(self.lies, d, multiprocessors(batch.size, source.items, groups, grid.groups, self.count))
        return d

    def _lie(self, lies: Lies, d: Bits, where: Array) -> None:
        there = np.flatnonzero(where == lies.multiprocessor)
        chosen = there[(self.lied + np.arange(len(there))) % lies.every == lies.every - 1]
        self.lied += len(there)
        d.reshape(len(d), -1)[chosen, 0] ^= d.dtype.type(1 << lies.bit)

    def _campaign(self, image: bytes, operands: int, done: int) -> None:
        """A launch of a fused campaign; its groups go to the multiprocessors in turn."""
        made, source = self.loaded(image)

        def compute(batch: Batch, number: int) -> Bits:
            d = self.moved_tiles(made, source, batch)
            if self.lies is not None and self.lies.multiprocessor == number:
                self._lie(self.lies, d, np.full(batch.size, number))
            return d

        run_launch(source, made, operands, done, compute, self.count)

    def compute(self, image: bytes, grid: Grid, operands: int, done: int, fault: str) -> None:
        fault = "never" if self.named(image).id in self.dead else fault
        if not is_campaign(image):
            super().compute(image, grid, operands, done, fault)
        elif not fault:
            self._campaign(image, operands, done)


def multiprocessors(size: int, items: int, groups: int, ctas: int, count: int) -> Array:
    """The multiprocessor of each item of a batch: groups take items in turn, multiprocessors CTAs in turn."""
    cta = np.arange(size) // items % (groups * ctas) // groups
    return cta % count


def core(made: Instruction, unit: Unit) -> Callable[[dict[str, Array]], Array]:
    """The matrix unit of an instruction: what it sees as a batch, whose D the unit computes.

    Metadata that selects nothing, which only a wrong kernel brings, selects as the lowest item; what came to no place
    of an operand is cut to the operand's bits.
    """

    def compute(seen: dict[str, Array]) -> Array:
        types = {name: fmt.dtype for name, fmt in made.formats().items()} | {"metadata": np.dtype(np.uint8)}
        codes = {name: value.astype(types[name]) for name, value in seen.items()}
        if made.chunk:
            legal = np.array(legal_items(made.chunk), np.uint8)
            codes["metadata"] = np.where(np.isin(codes["metadata"], legal), codes["metadata"], legal[0])
        return unit(made, Batch(**codes)).astype(np.uint64)

    return compute


def seeded(source: Source, seeds: tuple[Seed, ...]) -> str:
    """A source's text with wrong texts in it."""
    text = source.text
    for right, wrong in seeds:
        assert right in text, text
        text = text.replace(right, wrong)
    return text


Make = Callable[..., Kernel]
"""A kernel of an instruction for an architecture, with seeds in its source."""


def pack_of(
    make: Make, folder: Path, names: tuple[str, ...], seeds: Mapping[str, tuple[Seed, ...]] | None, architecture: str,
    campaigns: Iterable[Built] = (), toolchain: str = "",
) -> Pack:  # fmt: skip
    """A pack of stand-ins for binaries; ``seeds`` by id; ``campaigns`` beside them."""
    built = list(campaigns)
    for name in names:
        made = make(instruction(name, architecture), architecture, *(seeds or {}).get(name, ()))
        built.append(Built(name, architecture, "compiled", kernel=made))
    return write_pack(folder, architecture, toolchain, built)
