"""Fused campaigns on the stand-in GPU: their own phases, loads and stores around the matrix unit."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from emulator.campaign import HostCampaign
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu.campaign import MEASURE, LaunchOrder
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source
from mmaprobe.validation.fused import source_of

SIZE = len(LaunchOrder(0, 0, 0, 0, 0).pack(0))
TILES, STAGE = 16, 56
"""Where the struct of an order has these."""


def is_campaign(image: bytes) -> bool:
    """Whether a binary is one of a campaign."""
    return b"struct Campaign {" in image


@cache
def host_campaign(source: Source, made: Instruction) -> HostCampaign:
    staged = "enum Stage" in source.text
    return HostCampaign(replace(source, campaign="staged" if staged else "fused"), made)


def run_launch(
    source: Source,
    made: Instruction,
    operands: int,
    done: int,
    unit: Callable[[Batch, int], Bits],
    multiprocessors: int,
) -> None:
    """One launch of a campaign's kernel."""
    order = ctypes.string_at(operands, SIZE)
    tiles, stage = struct.unpack_from("<Q", order, TILES)[0], struct.unpack_from("<i", order, STAGE)[0]
    there, counter = host_campaign(source, made), ctypes.c_uint64.from_address(done)
    if "enum Stage" not in source.text:
        there.launch(order, tiles, unit, multiprocessors)
        counter.value += tiles
        return
    there.stage(order, stage, done)
    if stage == MEASURE:
        counter.value = tiles


def built_campaign(name: str, architecture: str, kernel: Callable[[Source], Kernel]) -> Built:
    """The campaign of an instruction with the shipped datapath, for a pack."""
    made = instruction(name, architecture)
    source = source_of(made, architecture, datapath_for(architecture, made))
    assert source is not None
    return Built(made.id, architecture, "compiled", kernel=kernel(source), campaign=source.hash)
