"""The families that aim at one fault of a circuit, judged by such faults: which kill, and in how many vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.generators import ALL, F16, by_id, make
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators import MIX, families_for, generate, generate_tiles
from mmaprobe.generators.families import CIRCUIT_FAMILIES
from mmaprobe.generators.tiles import vector_at
from stand_ins.circuit import Fault, kills, loses_carry

E4M3 = make("e4m3", "e4m3", "f32", "f32", 8)
BF16 = make("bf16", "bf16", "f32", "f32", 4)


def family_of(made: Instruction, family: str, count: int, start: int = 0, seed: int = 3):
    return generate(made, family, seed, start, count)


@pytest.mark.parametrize("instruction", ALL, **by_id)
def test_every_instruction_has_the_families_that_fit(instruction):
    found = set(families_for(instruction)) & set(CIRCUIT_FAMILIES)
    bits = sum(formats.get(name).bits for name in (instruction.a, instruction.b))
    floats, terms = formats.get(instruction.a).is_float, instruction.selected + (instruction.c is not None)
    assert ("codes" in found) == (bits <= 16)
    assert ("multiplier" in found) == (floats and bits > 16)
    assert ("carries" in found) == (terms > 1 if floats else instruction.c is not None)
    assert set(CIRCUIT_FAMILIES) < MIX.keys()


@pytest.mark.parametrize("instruction", [E4M3, make("e5m2", "e4m3", None, "f32", 4), make("u8", "s8", "s32", "s32", 4),
                                         make("e2m1", "e2m1", "f32", "f32", 32), make("s4", "u4", "s32", "s32", 8)],
                         **by_id)  # fmt: skip
def test_codes_have_every_pair_in_every_lane(instruction):
    """Of numbers in the first round already; of all codes in as many more as there are lanes."""
    a, b = (formats.get(name) for name in (instruction.a, instruction.b))
    every = a.code_limit * b.code_limit
    batch = family_of(instruction, "codes", every)
    numbers = [formats.decode(f, np.arange(f.code_limit).astype(f.dtype)).kind < formats.INFINITE for f in (a, b)]
    finite = int(numbers[0].sum()) * int(numbers[1].sum())
    for lane in range(instruction.k):
        pairs = np.unique(batch.a[:, lane].astype(int) * b.code_limit + batch.b[:, lane])
        x, y = pairs // b.code_limit, pairs % b.code_limit
        assert (numbers[0][x] & numbers[1][y]).sum() == finite
    alone = (batch.a != 0).sum(axis=1) <= 1
    assert alone.sum() >= every - finite
    if every <= 256:
        whole = family_of(instruction, "codes", every * 2 * instruction.k)
        whole = [(whole.a[:, lane], whole.b[:, lane]) for lane in range(instruction.k)]
        assert all(len(set(zip(x.tolist(), y.tolist(), strict=True))) == every for x, y in whole)


def test_any_pair_of_codes_is_killed_in_one_round():
    """65,536 vectors: one pair of numbers, in one lane, whichever."""
    batch = family_of(E4M3, "codes", 1 << 16)
    random = np.random.default_rng(9)
    codes = np.array([x for x in range(256) if x & 127 not in (0, 127)])
    for _ in range(12):
        x, y = random.choice(codes, 2)
        fault = Fault(int(random.integers(8)), (int(x), int(y)))
        assert kills(E4M3, batch, fault).size


def test_the_other_families_meet_a_pair_of_codes_rarely():
    """What the first round of codes kills, the others' 65,536 vectors show of one pair in ten at most."""
    batches = [family_of(E4M3, name, 5461) for name in families_for(E4M3) if name not in CIRCUIT_FAMILIES]
    faults = [Fault(lane, pair) for lane, pair in ((0, (0x3B, 0x45)), (5, (0x92, 0x31)), (7, (0x54, 0xC9)))]
    assert sum(any(kills(E4M3, batch, fault).size for batch in batches) for fault in faults) < 3


@pytest.mark.parametrize("made", [F16, BF16], **by_id)
def test_a_missing_partial_product_is_killed_in_any_lane(made):
    """4,096 vectors of the multiplier's."""
    fraction = formats.get(made.b).fraction_bits
    batch = family_of(made, "multiplier", 4096)
    for lane in range(made.k):
        for bit in (0, fraction // 2, fraction):
            assert kills(made, batch, Fault(lane, partial=bit)).size


@pytest.mark.parametrize("lane", [0, 2, 3])
def test_any_pair_of_significands_is_killed_when_all_were_counted(lane):
    """bf16: 2**14 pairs, in 65,536 vectors of the multiplier's; f16: 2**20 in 4,194,304."""
    batch = family_of(BF16, "multiplier", 1 << 16)
    for pair in ((165, 219), (255, 129), (192, 131), (201, 139), (178, 229), (137, 246)):
        assert kills(BF16, batch, Fault(lane, pair, significands=True)).size


def test_a_lost_carry_is_killed_wherever_it_is():
    """16,384 vectors: into any bit of any lane's adder."""
    batch = family_of(F16, "carries", 1 << 14)
    for lane in (0, 7, 15):
        for bit in range(6, 30):
            assert kills(F16, batch, Fault(lane, carry=bit)).size, (lane, bit)


@pytest.mark.parametrize("made", [make("s8", "s8", "s32", "s32", 32), make("u4", "s4", "s32", "s32", 16)], **by_id)
@pytest.mark.parametrize("negative", [False, True])
def test_a_long_carry_or_borrow_of_integers_is_killed_in_any_lane(made, negative):
    """16,384 vectors: a chain through any 12 bits of the accumulator that ends there; the other families' as many
    hardly have one that ends below the top."""
    carries = family_of(made, "carries", 1 << 14)
    names = [name for name in families_for(made) if name not in CIRCUIT_FAMILIES]
    others = [family_of(made, name, (1 << 14) // len(names)) for name in names]
    chains = [(low, low + 12) for low in range(13, 19)]
    for lane in (0, 1, made.k - 1):
        killed = [loses_carry(made, carries, lane, chain, negative).size for chain in chains]
        by_others = [sum(loses_carry(made, b, lane, chain, negative).size for b in others) for chain in chains]
        assert min(killed) > 0
        assert sum(killed) > 6 * sum(by_others)


def test_pairs_of_a_tile_are_pairs_too():
    """Off the diagonal of a tile a vector's row meets another's column: the same lane, or all."""
    made = replace(make("f16", "f16", "f32", "f32", 4), m=16, n=8)
    tiles = generate_tiles(made, "multiplier", 1, 0, 32)
    for tile in range(tiles.size):
        live = [((v := vector_at(tiles, tile, i, j)).a[0] != 0) & (v.b[0] != 0) for i, j in ((0, 0), (3, 5), (15, 2))]
        assert all(mask.sum() in (1, 3, 4) for mask in live)
