"""A stand-in for an NVIDIA GPU that runs kernels' sources: what of ``kernel_source`` is NVIDIA's, and the machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.warp import run_warp
from emulator.warpgroup import Statement, run_warpgroup
from emulator.wmma import run_wmma
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.pack import Pack
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from stand_ins.campaign import built_campaign
from stand_ins.fake_cuda import HEADER, FakeCuda, cubin
from stand_ins.fake_machine import FakeNvml, machine
from stand_ins.kernel_source import RunsSources, Seed, core, pack_of, seeded

TOOLCHAIN = "NVRTC 13.0"
RUN = {"mma": run_warp, "wgmma": run_warpgroup, "wmma": run_wmma}


class StandIn(RunsSources, FakeCuda):
    """``cuda.bindings.driver`` of a GPU that runs sources."""

    count = 132

    def loaded(self, image: bytes) -> tuple[Instruction, Source]:
        return loaded(image)

    def moved(self, made: Instruction, source: Source, batch: Batch) -> Bits:
        d: Bits = RUN[made.opcode.partition(".")[0]](source, made, batch, core(stated(source, made), self.unit))
        return d


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


# Kernels


def kernel(made: Instruction, architecture: str, *seeds: Seed) -> Kernel:
    """The kernel of an instruction as the stand-in runs it; ``seeds`` are wrong texts in its source."""
    source = render(made, architecture)
    head = cubin(made, int(re.sub(r"\D", "", architecture)))[: HEADER.size]
    return Kernel.of(source, head + seeded(source, seeds).encode(), TOOLCHAIN)


def campaign_kernel(source: Source) -> Kernel:
    """The kernel of a campaign's source as the stand-in runs it."""
    number = int("".join(filter(str.isdigit, source.architecture)))
    head = cubin(instruction(source.instruction, source.architecture), number)[: HEADER.size]
    return Kernel.of(source, head + source.text.encode(), TOOLCHAIN)


def pack(
    folder: Path,
    names: tuple[str, ...],
    seeds: Mapping[str, tuple[Seed, ...]] | None = None,
    architecture: str = "sm_90a",
    campaigns: tuple[str, ...] = (),
    toolchain: str = TOOLCHAIN,
) -> Pack:
    """A pack of stand-ins for binaries; ``seeds`` by id; of ``campaigns`` the fused kernel as well."""
    made = [built_campaign(name, architecture, campaign_kernel) for name in campaigns]
    return pack_of(kernel, folder, names, seeds, architecture, made, toolchain)


# The machine


@contextmanager
def plugged(cuda: FakeCuda, nvml: FakeNvml | None = None, child: str = "") -> Iterator[None]:
    """This process's ``cuda:N`` are the stand-ins; a child's, for first runs, one with the fault ``child``."""

    def command(device: str) -> tuple[str, ...]:
        return (sys.executable, str(Path(__file__).with_name("gpu_trial.py")), child, device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmaprobe.devices.nvidia.device.Machine", lambda: machine(cuda, nvml=nvml))
        patch.setattr("mmaprobe.devices.nvidia.device.kernel", kernel)
        patch.setattr("mmaprobe.devices.nvidia.device.kernel_of", campaign_kernel)
        patch.setattr("mmaprobe.devices.nvidia.device.command", command)
        yield


def name(**options: Any) -> str:
    """``cuda:0`` with options; the first run in a child process only where asked for."""
    return "cuda:0?" + "&".join(f"{key}={value}" for key, value in {"trial": "no", **options}.items())
