"""Enumerations: every vector once, none missing, and each as it says."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_lanes, kept_positions, legal_items
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.errors import UsageError
from mmaprobe.generators import Recipe, families_for, generate, regenerate
from mmaprobe.generators.domain import domain
from mmaprobe.generators.enumerations import ADDENDS, enumerated, enumeration, enumerations_of, left_out
from mmaprobe.operands.batch import Batch, check_vectors

BYTES = "x86.pmaddubsw"
DOT = "x86.vpdpbusd"
NIBBLES = "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32"
FP8 = "v_dot4_f32_fp8_bf8"
SPARSE = "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
SPARSE_F16 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE_TF32 = "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
SCALED = "v_mfma_scale_f32_32x32x64_f8f6f4"


def made(name: str) -> Instruction:
    return lookup.instruction(name)


def whole(name: str, of: str) -> Batch:
    """Every vector of an enumeration, held against the instruction's shapes and formats."""
    return check_vectors(made(name), enumerated(made(name), of, 0, enumeration(made(name), of).size))


def alone(vectors: Batch, stored: int, lane: int) -> np.ndarray:
    """Which vectors are zero everywhere but in one stored element of A and one lane of B."""
    others_a = np.delete(vectors.a, stored, axis=1).any(axis=1)
    return ~(others_a | np.delete(vectors.b, lane, axis=1).any(axis=1))


@pytest.mark.parametrize("name", [BYTES, NIBBLES])
def test_every_pair_is_in_every_lane_once(name: str) -> None:
    vectors, t = whole(name, "pairs"), domain(made(name))
    pairs, addends = 1 << (t.a.bits + t.b.bits), len(ADDENDS) if t.c.present else 1
    assert vectors.size == pairs * t.space.k * addends
    c = np.zeros(vectors.size, np.int64) if vectors.c is None else vectors.c.astype(np.int64)
    for lane in range(t.space.k):
        here = alone(vectors, lane, lane)
        for addend in np.unique(c):
            of_addend = here & (c == addend)
            codes = vectors.a[of_addend, lane].astype(int) << t.b.bits | vectors.b[of_addend, lane]
            found, count = np.unique(codes, return_counts=True)
            assert len(found) == pairs
            assert (count[found != 0] == 1).all()  # a pair of zeros is the same in every lane


def test_pairs_of_floats_have_an_addend_that_is_the_opposite() -> None:
    """Zero; the least positive number; minus the product, so that the exact sum of most is a zero."""
    vectors = generate(made(FP8), "pairs", 0, 0, 1 << 16)
    assert not vectors.c.any()  # type: ignore[union-attr]
    size = 1 << 18
    least = generate(made(FP8), "pairs", 0, size, 5)
    assert (least.c == 1).all()
    opposite = generate(made(FP8), "pairs", 9, 2 * size, 1 << 16)
    results = run_vectors(open_device("model:gfx1200"), made(FP8), opposite)
    zeros = (results & 0x7FFFFFFF) == 0
    assert 0.9 < zeros.mean() < 1
    assert (opposite.c != 0).mean() > 0.9


def test_a_stored_element_meets_every_lane_that_metadata_can_name() -> None:
    form = made(SPARSE)
    vectors = whole(SPARSE, "pairs")
    kept = kept_positions(form, vectors.metadata)  # type: ignore[arg-type]
    live = (vectors.a != 0).any(axis=1) & (vectors.b != 0).any(axis=1)
    stored, lane = vectors.a[live].argmax(axis=1), vectors.b[live].argmax(axis=1)
    assert (kept[live, stored] == lane).all()
    nameable = {
        (chunk * 4 + at, chunk * 8 + int(lane))
        for chunk in range(form.k // 8) for item in legal_items(8) for at, lane in enumerate(kept_lanes(8)[item])
    }  # fmt: skip
    assert {*zip(stored.tolist(), lane.tolist(), strict=True)} == nameable
    assert vectors.size == len(nameable) * 256 * len(ADDENDS)


@pytest.mark.parametrize("name", [SPARSE, SPARSE_F16, SPARSE_TF32])
def test_every_selection_of_every_chunk_shows_which_lane_it_keeps(name: str) -> None:
    form = made(name)
    vectors = whole(name, "selections")
    assert len(np.unique(np.concatenate([vectors.metadata, vectors.a], axis=1), axis=0)) == vectors.size  # type: ignore[list-item]
    kept = kept_positions(form, vectors.metadata)  # type: ignore[arg-type]
    assert ((vectors.a != 0).sum(axis=1) == 1).all()
    seen = set()
    for i, (row, stored) in enumerate(zip(vectors.b, vectors.a.argmax(axis=1).tolist(), strict=True)):
        chunk = stored // (form.chunk // 2)
        beside = row[chunk * form.chunk : (chunk + 1) * form.chunk]
        assert len(np.unique(beside)) == form.chunk
        seen.add((stored, int(vectors.metadata[i, chunk]), int(kept[i, stored])))  # type: ignore[index]
    assert len(seen) == vectors.size == form.k // 2 * len(legal_items(form.chunk))


def test_every_pair_of_scales_is_seen_by_every_lane() -> None:
    form, space = made(SCALED), enumeration(made(SCALED), "scales")
    assert space.size == (1 << 16) * 64 * 3
    for lane in (0, 31, 32, 63):
        vectors = enumerated(form, "scales", lane << 16, 1 << 16)
        assert (vectors.a.argmax(axis=1) == lane).all()
        assert (vectors.b.argmax(axis=1) == lane).all()
        assert not np.delete(vectors.a, lane, axis=1).any()
        group = lane // 32
        scale_a, scale_b = vectors.scale_a, vectors.scale_b
        assert scale_a is not None
        assert scale_b is not None
        assert len(np.unique(scale_a[:, group].astype(int) << 8 | scale_b[:, group])) == 1 << 16
        assert (scale_a[:, 1 - group] == 127).all()
        assert (formats.decode(formats.get(form.a), vectors.a[:, lane]).significand == 15).all()


@pytest.mark.parametrize("name", [DOT, NIBBLES, FP8, SPARSE, SPARSE_F16, SCALED])
def test_a_piece_is_what_lies_there_in_the_whole(name: str) -> None:
    for space in enumerations_of(made(name)):
        for start, count in ((0, 3), (space.size // 2 - 1, 7), (space.size - 5, 5), (7, 0)):
            piece = check_vectors(made(name), enumerated(made(name), space.name, start, count))
            assert piece.size == count
            for i in range(count):
                one = regenerate(Recipe.of(made(name), space.name, 5, start + i))
                assert all((value[0] == getattr(piece, part)[i]).all() for part, value in one.items())


def test_there_is_an_end() -> None:
    size = enumeration(made(DOT), "pairs").size
    with pytest.raises(UsageError, match=r"pairs has 786,432 vectors, not 786,432 to 786,432"):
        generate(made(DOT), "pairs", 0, size, 1)
    with pytest.raises(UsageError, match="no scales of it are counted through; it has pairs"):
        generate(made(DOT), "scales", 0, 0, 1)
    with pytest.raises(UsageError, match=r"this package makes pairs\.1, not version 2"):
        Recipe.parse(f"{DOT}/pairs.2/0/0")
    assert not {"pairs", "scales", "selections"} & {*families_for(made(DOT))}


def test_what_is_left_out_is_said() -> None:
    assert left_out(made(DOT)) == ()
    assert left_out(made(SPARSE_F16)) == (
        "2^32 pairs of f16 and f16 in each of 8 lanes", "selections of several chunks together",
        "kept lanes named in the other order",
    )  # fmt: skip
    assert enumerations_of(made("x86.dpps")) == ()
    assert left_out(made("x86.dpps")) == ("2^64 pairs of f32 and f32 in each of 4 lanes",)
