"""The fused campaign's own source on the host: its tiles are the CPU's, its verdict is that of the model."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest

from emulator.campaign import HostCampaign
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.gpu.campaign import FOUND, JUDGE, MAKE, LaunchOrder
from mmaprobe.devices.gpu.launch import OPERANDS
from mmaprobe.generators import families_for, generate_tiles
from mmaprobe.generators.families import FAMILIES, stream_number
from mmaprobe.models.model import run_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.build import build_campaign
from mmaprobe.validation.fused import checksum, source_of

FORMS = [
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "sm_90a"),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", "sm_90a"),
    ("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", "sm_90a"),
    ("wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e5m2{a=regs}", "sm_90a"),
    ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", "sm_120a"),
]
STAGED = [
    ("tcgen05.mma.cta_group::1.kind::f16.m64n16k16.f32.f16.f16", "sm_100a"),
    ("tcgen05.mma.cta_group::1.kind::i8.m64n16k32.s32.u8.s8", "sm_100a"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "sm_90a"),
    ("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "sm_90a"),
]
TILES, SEED, START = 5, 7, 1 << 33


@cache
def campaign(name: str, architecture: str) -> tuple[HostCampaign, Instruction, Datapath]:
    made = instruction(name, architecture)
    path = datapath_for(architecture, made)
    source = source_of(made, architecture, path)
    assert source is not None
    return HostCampaign(source, made), made, path


def order(family: str, **changes: int) -> LaunchOrder:
    return LaunchOrder(FAMILIES.index(family), stream_number(family), SEED, START, TILES, **changes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "architecture"), FORMS)
def test_tiles_and_verdict(name: str, architecture: str) -> None:
    """Every family: the operands are those of ``generate_tiles``, no output differs, the checksum is the model's."""
    made, instruction_, path = campaign(name, architecture)
    for family in families_for(instruction_):
        expected = generate_tiles(instruction_, family, SEED, START, TILES)
        seen: list[Batch] = []

        def unit(batch: Batch, _: int, seen: list[Batch] = seen) -> Bits:
            seen.append(Batch(**{key: value.copy() for key, value in batch.items()}))
            return run_tiles(instruction_, path, batch)

        found = made.run(order(family), unit)
        for operand, value in expected.items():
            assert (np.concatenate([getattr(batch, operand) for batch in seen])[:TILES] == value).all(), (
                family,
                operand,
            )
        assert (int(found["mismatches"]), int(found["wrong"].sum())) == (0, 0), family
        assert int(found["checksum"]) == checksum(run_tiles(instruction_, path, expected)), family
        assert int(found["vectors"].sum()) == TILES * instruction_.m * instruction_.n


@pytest.mark.parametrize(("name", "architecture"), FORMS[:1] + FORMS[7:10])
def test_every_wrong_bit_is_found(name: str, architecture: str) -> None:
    """One bit of any one output, and the output that the kernel is told to take for wrong."""
    made, instruction_, path = campaign(name, architecture)
    rng = np.random.default_rng(3)
    for _ in range(8):
        tile, row, column = (int(rng.integers(0, size)) for size in (TILES, instruction_.m, instruction_.n))
        bit = int(rng.integers(0, instruction_.formats()["d"].bits))
        steps = iter(range(0, TILES + made.step, made.step))

        def unit(batch: Batch, _: int, steps=steps, tile=tile, at=(row, column), bit=bit) -> Bits:  # type: ignore[no-untyped-def]
            d = run_tiles(instruction_, path, batch)
            here = tile - next(steps)
            if 0 <= here < made.step:
                d[here, *at] ^= d.dtype.type(1 << bit)
            return d

        found = made.run(order("cancel"), unit)
        example = found["examples"][0]
        assert int(found["mismatches"]) == 1
        assert (int(example["tile"]), int(example["place"])) == (tile, row << 16 | column)
        assert int(example["d"]) ^ int(example["expected"]) == 1 << bit
        assert int(found["wrong"][tile // made.step % 4]) == 1


def test_the_sabotaged_output_is_a_mismatch() -> None:
    made, instruction_, path = campaign(*FORMS[0])
    found = made.run(order("tie", sabotaged=3), lambda batch, _: run_tiles(instruction_, path, batch))
    assert int(found["mismatches"]) == 1
    assert (int(found["examples"][0]["tile"]), int(found["examples"][0]["place"])) == (3, 0)


@pytest.mark.parametrize(("name", "architecture"), STAGED)
def test_stages(name: str, architecture: str) -> None:
    """Made in one launch, judged in another, in arrays that lie apart in the memory that the kernel asks for."""
    made, instruction_, path = campaign(name, architecture)
    found = np.zeros(1, FOUND)
    for family in families_for(instruction_)[:4]:
        expected = generate_tiles(instruction_, family, SEED, START, TILES)
        done = ctypes.c_ulonglong(0)
        made.library.campaign_measure(order(family).pack(found.ctypes.data))
        *places, size = (int(place) for place in found[0]["vectors"][: len(OPERANDS) + 2])
        memory = np.zeros(size + 64, np.uint8)
        base = memory.ctypes.data + -memory.ctypes.data % 64
        found[:] = 0
        made.library.campaign_stage(order(family).pack(found.ctypes.data, base, MAKE), 1, ctypes.byref(done))
        arrays = dict(zip((*OPERANDS, "d"), places, strict=True))
        for operand, value in expected.items():
            there = (ctypes.c_char * value.nbytes).from_address(base + arrays[operand])
            assert bytes(there) == value.tobytes(), (family, operand)
        d = run_tiles(instruction_, path, expected)
        assert arrays["d"] + d.nbytes <= size
        d[2, 3, 5] ^= d.dtype.type(1)
        ctypes.memmove(base + arrays["d"], d.ctypes.data, d.nbytes)
        made.library.campaign_stage(order(family).pack(found.ctypes.data, base, JUDGE), 1, ctypes.byref(done))
        assert (int(found[0]["mismatches"]), int(found[0]["examples"][0]["place"])) == (1, 3 << 16 | 5), family
        assert done.value == 2 * TILES


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(("name", "architecture"), [FORMS[0], FORMS[7], STAGED[0]])
def test_nvrtc_compiles_it(name: str, architecture: str) -> None:
    """The matrix instructions are those of the lowering; in stages there are none."""
    made = instruction(name, architecture)
    source = source_of(made, architecture, datapath_for(architecture, made))
    assert source is not None
    built = build_campaign(source)
    assert (built.status, built.campaign) == ("compiled", source.hash)
    assert sum(built.opcodes.values()) == (source.campaign == "fused")
