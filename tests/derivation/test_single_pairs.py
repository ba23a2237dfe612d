"""One pair of operands wrong in one lane: never exact; and what a certificate says that it covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.certificate import Coverage
from mmaprobe.derivation.vectors.pairs import every_pair
from mmaprobe.devices.base import Device, Support, open_device
from mmaprobe.generators.tiles import vector_at
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.report.tables.certificates import coverage_line

E4M3 = instruction("mma.m16n8k32.f32.e4m3.e4m3.f32", "sm_89")
F16 = instruction("mma.m16n8k16.f32.f16.f16.f32", "sm_80")
HALF = instruction("mma.m16n8k16.f16.f16.f16.f16", "sm_80")
BF16 = instruction("mma.m16n8k16.f32.bf16.bf16.f32", "sm_80")
S8 = instruction("mma.m16n8k32.s32.s8.s8.s32", "sm_80")
MXF8 = instruction("mma.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", "sm_120a")
NVF4 = instruction("mma.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "sm_120a")
BLOCKS = instruction("v_mfma_f32_4x4x4_16b_f16", "gfx942")


@dataclass(frozen=True)
class OnePairWrong:
    """A device that multiplies one pair of codes (or of fractions) of one lane as if a's last bit were the other."""

    inner: Device
    lane: int
    pair: tuple[int, int]
    fractions: bool = False
    name: str = "one pair wrong"

    def info(self) -> dict[str, str]:
        return self.inner.info()

    def instructions(self) -> Sequence[Instruction]:
        return self.inner.instructions()

    def supports(self, made: Instruction) -> Support:
        return self.inner.supports(made)

    def run(self, made: Instruction, batch: Batch) -> Bits:
        codes = [batch.a[..., self.lane, None], batch.b[..., None, self.lane, :]]
        if self.fractions:
            codes = [x & ((1 << f.fraction_bits) - 1) for x, f in zip(codes, made.formats().values(), strict=False)]
        hit = (codes[0] == self.pair[0]) & (codes[1] == self.pair[1])
        other = batch.a.copy()
        other[..., self.lane] ^= 1
        true = self.inner.run(made, batch)
        return np.where(hit, self.inner.run(made, replace(batch, a=other)), true) if hit.any() else true


@pytest.mark.parametrize(
    ("made", "architecture", "pair", "lane"),
    [(E4M3, "sm_89", (0x3B, 0xC5), 31), (S8, "sm_80", (0x81, 0x7F), 0), (F16, "sm_80", (0x123, 0x2A7), 5),
     (HALF, "sm_80", (0x3FF, 0x001), 15)],
    ids=["e4m3", "s8", "f16", "f16 to f16"],
)  # fmt: skip
def test_one_wrong_pair_in_one_lane_is_never_derived(
    made: Instruction, architecture: str, pair: tuple[int, int], lane: int
) -> None:
    never_derived(made, architecture, pair, lane)


@pytest.mark.long
def test_one_wrong_pair_that_the_search_met_is_never_derived() -> None:
    """bf16 has 2**14 pairs of significands: vectors of the search hold some of them."""
    never_derived(BF16, "sm_80", (0x11, 0x55), 2)


def never_derived(made: Instruction, architecture: str, pair: tuple[int, int], lane: int) -> None:
    """The derivation ends without an answer, says what is wrong and shows it."""
    fractions = formats.get(made.a).bits > 8
    found = derive(OnePairWrong(open_device(f"model:{architecture}"), lane, pair, fractions), made, seed=3)
    assert (found.status, found.datapath) == ("inconclusive", None)
    assert "in which every pair of " in found.reason
    assert found.closest is not None
    shown = found.counterexample
    assert shown is not None
    mask = (1 << formats.get(made.a).fraction_bits) - 1 if fractions else 0xFF
    assert (shown.a[lane] & mask, shown.b[lane] & mask) == pair


@dataclass(frozen=True)
class OneScalePairWrong(OnePairWrong):
    """A device that scales one block of lanes, for one pair of its scales, by the neighbour of one of them."""

    def run(self, made: Instruction, batch: Batch) -> Bits:
        assert batch.scale_a is not None
        assert batch.scale_b is not None
        hit = batch.scale_a[..., self.lane, None] == self.pair[0]
        hit = hit & (batch.scale_b[..., None, self.lane, :] == self.pair[1])
        other = batch.scale_a.copy()
        other[..., self.lane] ^= 1
        true = self.inner.run(made, batch)
        return np.where(hit, self.inner.run(made, replace(batch, scale_a=other)), true) if hit.any() else true


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("made", "pair", "block"),
    [(MXF8, (0x21, 0xC4), 0), (NVF4, (0x4B, 0x07), 3)],
    ids=["ue8m0", "ue4m3"],
)  # fmt: skip
def test_one_wrong_pair_of_scales_of_one_block_is_never_derived(
    made: Instruction, pair: tuple[int, int], block: int
) -> None:
    found = derive(OneScalePairWrong(open_device("model:sm_120a"), block, pair), made, seed=3)
    assert (found.status, found.datapath) == ("inconclusive", None)
    assert "in which every pair of codes, and of scales, meets in every lane" in found.reason
    shown = found.counterexample
    assert shown is not None
    assert shown.scale_a is not None
    assert shown.scale_b is not None
    assert (shown.scale_a[block], shown.scale_b[block]) == pair


@pytest.mark.parametrize("made", [MXF8, NVF4], ids=["ue8m0", "ue4m3"])
def test_every_pair_of_scales_meets_in_every_lane(made: Instruction) -> None:
    pairs, size = every_pair(made), made.scale_size
    assert pairs is not None
    met = np.zeros((made.k, 1 << 16), bool)
    for tiles in pairs.tiles():
        live = (tiles.a != 0).all(axis=1)
        for tile in np.flatnonzero(live.sum(axis=1) == size):
            for lane in np.flatnonzero(live[tile]):
                x, y = tiles.scale_a[tile, :, lane // size].astype(int), tiles.scale_b[tile, lane // size].astype(int)
                met[lane, (x[:, None] << 8 | y).ravel()] = True
    assert met.all()


def test_a_special_pair_is_asked_alone() -> None:
    """A NaN that one lane makes a number of hides behind the NaNs of the others."""
    found = derive(OnePairWrong(open_device("model:sm_89"), 9, (0x7F, 0x21)), E4M3, seed=1)
    assert found.status == "inconclusive"
    assert found.counterexample is not None
    assert np.count_nonzero(found.counterexample.a) == 1


@pytest.mark.parametrize("made", [E4M3, S8, BF16, HALF, BLOCKS, instruction("x86.vpdpbusd"),
                                  instruction("mma.m16n8k32.f16.e5m2.e4m3.f16", "sm_120a")],
                         ids=lambda made: made.id)  # fmt: skip
def test_every_pair_meets_in_every_lane(made: Instruction) -> None:
    pairs = every_pair(made)
    assert pairs is not None
    met = [np.zeros(1 << 20, bool) for _ in range(made.k)]
    a, b = formats.get(made.a), formats.get(made.b)
    shift = b.bits if pairs.what == "codes" else b.fraction_bits
    masks = [(1 << (f.bits if pairs.what == "codes" else f.fraction_bits)) - 1 for f in (a, b)]
    for tiles in pairs.tiles():
        assert tiles.size % made.blocks == 0
        for lane in {0, 1, made.k // 2, made.k - 1}:
            x, y = tiles.a[:, :, lane].astype(int) & masks[0], tiles.b[:, lane, :].astype(int) & masks[1]
            if not (x.any() and y.any()):
                continue
            met[lane][(x[:, :, None] << shift | y[:, None, :]).ravel()] = True
    every = 1 << (masks[0].bit_length() + masks[1].bit_length())
    for lane in {0, 1, made.k // 2, made.k - 1}:
        assert met[lane][:every].sum() >= every - (masks[0] + masks[1] + 2)  # products with a zero are among the rest


def test_wide_pairs_are_not_counted_through() -> None:
    assert every_pair(instruction("x86.vfmadd.f32")) is None
    assert every_pair(instruction("mma.m16n8k8.f32.tf32.tf32.f32", "sm_80")) is not None
    tiles = next(every_pair(HALF).tiles())  # type: ignore[union-attr]
    one = vector_at(tiles, 3, 2, 1)
    assert one.a[0, -1] == 0 != one.a[0, 0]
    assert one.c is not None
    assert one.c[0] >> 15 == 1


def test_exact_says_what_it_covers() -> None:
    found = derive(open_device("model:sm_80"), BF16)
    covered = found.certificate.coverage
    assert (covered.of, covered.pairs, covered.fresh, covered.excluded) == ("significands", 1 << 14, 480_000, 160_000)
    assert covered.answers > 480_000 + (1 << 14)
    line = coverage_line(covered)
    assert "every pair of significands right in every lane (16,384 vectors)" in line
    assert "480,000 vectors exclude (at 95 %) those that 1 in 160,000 of them or more would show" in line
    assert found.form()["certificate"]["coverage"]["excluded_one_in"] == 160_000


def test_fewer_fresh_vectors_cover_less_and_say_so() -> None:
    found = derive(open_device("model:sm_80"), BF16, fresh=500)
    assert found.certificate.coverage.of == ""
    assert "such as one pair of significands in one lane" in coverage_line(found.certificate.coverage)


def test_the_chance_to_see_a_rare_flip() -> None:
    seen = Coverage(120_000, "codes", 65_536, 200_000)
    assert round(seen.seen(1e-5), 2) == 0.86
    assert round(seen.seen(1e-6), 2) == 0.18
