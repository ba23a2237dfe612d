"""A stand-in for a GPU whose launches run the kernels' own data movement around a model as tensor core.

A binary is an ELF header and the kernel's source.  A launch compiles the source for the host, moves every item through
the kernel's loads into emulated registers and shared memory, has ``unit`` compute what the instruction in the source
makes of them, and moves D back by the kernel's stores.  So a wrong layout, address, selector or modifier in a source is
a wrong answer, as on a GPU.  What no source can say is a fault of ``FakeCuda``, of NVML or one of those below.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.registers import Array
from emulator.warp import run_warp
from emulator.warpgroup import Statement, run_warpgroup
from emulator.wmma import run_wmma
from fake_cuda import HEADER, FakeCuda, Unit, cubin
from fake_machine import FakeNvml, machine
from mmaprobe.catalog.batch import Batch, Bits
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.sparsity import legal_items
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.pack import Pack, write_pack
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from standin_campaign import built_campaign, campaign_kernel, is_campaign, run_launch

TOOLCHAIN = "NVRTC 13.0"
MULTIPROCESSORS = 132
RUN = {"mma": run_warp, "wgmma": run_warpgroup, "wmma": run_wmma}
Seed = tuple[str, str]
"""A text of a source, and what stands there instead."""


@dataclass(frozen=True)
class Lies:
    """One multiprocessor flips ``bit`` of the first element of D, in every ``every``-th item that it computes."""

    multiprocessor: int
    bit: int = 0
    every: int = 1


class StandIn(FakeCuda):
    """``cuda.bindings.driver`` of a GPU that runs sources.

    ``lies``: a faulty multiprocessor.  ``dead``: ids whose kernels do nothing.  ``events``: what happens before the
    launch of a number (another process comes, an error is counted, ``fault`` is set).
    """

    def __init__(self, **facts: Any) -> None:
        self.lies: Lies | None = facts.pop("lies", None)
        self.dead: tuple[str, ...] = facts.pop("dead", ())
        self.events: Mapping[int, Callable[[], Any]] = facts.pop("events", {})
        self.lied = 0
        super().__init__(**facts)

    def cuLaunchKernelEx(self, config: Any, f: Any, kernelParams: int, extra: int) -> tuple[Any]:
        if self.launches in self.events:
            self.events[self.launches]()
        return super().cuLaunchKernelEx(config, f, kernelParams, extra)

    def named(self, image: bytes) -> Instruction:
        return loaded(image)[0]

    def answer(self, image: bytes, config: Any, batch: Batch) -> Bits:
        made, source = loaded(image)
        unit = core(stated(source, made), self.unit)
        d: Bits = RUN[made.opcode.partition(".")[0]](source, made, batch, unit)
        if self.lies is not None:
            groups = config.blockDimX // source.threads
            self._lie(self.lies, d, multiprocessors(batch.size, source.items, groups, config.gridDimX))
        return d

    def _lie(self, lies: Lies, d: Bits, where: Array) -> None:
        there = np.flatnonzero(where == lies.multiprocessor)
        chosen = there[(self.lied + np.arange(len(there))) % lies.every == lies.every - 1]
        self.lied += len(there)
        d[chosen, 0, 0] ^= d.dtype.type(1 << lies.bit)

    def _campaign(self, image: bytes, operands: int, done: int) -> None:
        """A launch of a fused campaign; its groups go to the multiprocessors in turn."""
        made, source = loaded(image)

        def compute(batch: Batch, number: int) -> Bits:
            unit = core(stated(source, made), self.unit)
            d: Bits = RUN[made.opcode.partition(".")[0]](source, made, batch, unit)
            if self.lies is not None and self.lies.multiprocessor == number:
                self._lie(self.lies, d, np.full(batch.size, number))
            return d

        run_launch(source, made, operands, done, compute, MULTIPROCESSORS)

    def _compute(self, image: bytes, config: Any, operands: int, done: int, fault: str) -> None:
        fault = "never" if self.named(image).id in self.dead else fault
        if not is_campaign(image):
            super()._compute(image, config, operands, done, fault)
        elif not fault:
            self._campaign(image, operands, done)


def multiprocessors(size: int, items: int, groups: int, ctas: int) -> Array:
    """The multiprocessor of each item of a batch: groups take items in turn, multiprocessors CTAs in turn."""
    cta = np.arange(size) // items % (groups * ctas) // groups
    return cta % MULTIPROCESSORS


def loaded(image: bytes) -> tuple[Instruction, Source]:
    """The instruction and the source of a binary."""
    text = image[HEADER.size :].decode()
    name, architecture = text.partition("\n")[0].removeprefix("// ").split(" on ")
    made = instruction(name, architecture)
    items = re.search(r"constexpr Word64 ITEMS = (\d+);", text)
    threads = 128 if made.opcode.startswith("wgmma.") else 32
    return made, Source(name, architecture, text, items=int(items[1]) if items else 1, threads=threads)


def stated(source: Source, made: Instruction) -> Instruction:
    """The instruction that the source's statement gives the tensor core, whatever its heading says."""
    found = re.search(r'"((?:mma|wgmma\.mma_async|wmma\.mma)\.[^ "]+) ', source.text)
    assert found, "no matrix instruction is in the source"
    modifiers = []
    if made.opcode.startswith("wgmma."):
        statement = Statement.of(source.text, replace(made, opcode=found[1]))
        modifiers += ["a=regs"] * statement.a_in_registers
        modifiers += [f"neg_{name}" for name, sign in zip("ab", statement.signs, strict=False) if sign == -1]
        modifiers += ["scale_d=0"] * (not statement.scale_d)
        names = "b" if statement.a_in_registers else "ab"
        modifiers += [f"trans_{name}" for name, turned in zip(names, statement.transposed, strict=False) if turned]
    return instruction(f"{found[1]}{{{','.join(modifiers)}}}" if modifiers else found[1], source.architecture)


def core(made: Instruction, unit: Unit) -> Callable[[dict[str, Array]], Array]:
    """The tensor core of an instruction: what it sees as a batch, whose D the unit computes.

    Metadata that selects nothing, which only a wrong kernel brings, selects as the lowest item.
    """

    def compute(seen: dict[str, Array]) -> Array:
        types = {name: fmt.dtype for name, fmt in made.formats().items()} | {"metadata": np.dtype(np.uint8)}
        codes = {name: value.astype(types[name]) for name, value in seen.items()}
        if made.chunk:
            legal = np.array(legal_items(made.chunk), np.uint8)
            codes["metadata"] = np.where(np.isin(codes["metadata"], legal), codes["metadata"], legal[0])
        return unit(made, Batch(**codes)).astype(np.uint64)

    return compute


# Kernels


def kernel(made: Instruction, architecture: str, *seeds: Seed) -> Kernel:
    """The kernel of an instruction as the stand-in runs it; ``seeds`` are wrong texts in its source."""
    source = render(made, architecture)
    text = source.text
    for right, wrong in seeds:
        assert right in text, text
        text = text.replace(right, wrong)
    head = cubin(made, int(re.sub(r"\D", "", architecture)))[: HEADER.size]
    return Kernel.of(source, head + text.encode(), TOOLCHAIN)


def pack(
    folder: Path,
    names: tuple[str, ...],
    seeds: Mapping[str, tuple[Seed, ...]] | None = None,
    architecture: str = "sm_90a",
    campaigns: tuple[str, ...] = (),
    toolchain: str = TOOLCHAIN,
) -> Pack:
    """A pack of stand-ins for binaries; ``seeds`` by id; of ``campaigns`` the fused kernel as well."""
    built = []
    for name in names:
        made = kernel(instruction(name, architecture), architecture, *(seeds or {}).get(name, ()))
        built.append(Built(name, architecture, "compiled", kernel=made))
    built += [built_campaign(name, architecture) for name in campaigns]
    return write_pack(folder, architecture, toolchain, built)


# The machine


@contextmanager
def plugged(cuda: FakeCuda, nvml: FakeNvml | None = None, child: str = "") -> Iterator[None]:
    """This process's ``cuda:N`` are the stand-ins; a child's, for first runs, one with the fault ``child``."""

    def command(device: str) -> tuple[str, ...]:
        return (sys.executable, str(Path(__file__).with_name("standin_trial.py")), child, device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmaprobe.devices.cuda.Machine", lambda: machine(cuda, nvml=nvml))
        patch.setattr("mmaprobe.devices.cuda.kernel", kernel)
        patch.setattr("mmaprobe.devices.cuda.kernel_of", campaign_kernel)
        patch.setattr("mmaprobe.devices.cuda.command", command)
        yield


def name(**options: Any) -> str:
    """``cuda:0`` with options; the first run in a child process only where asked for."""
    return "cuda:0?" + "&".join(f"{key}={value}" for key, value in {"trial": "no", **options}.items())
