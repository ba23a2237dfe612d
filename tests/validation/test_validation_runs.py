"""Validation as it runs: faults in their place, recordings, interrupts, threads, this processor."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from cases.validated import AMX, DOT, FMA, GPU, MODEL, TILE, Changed
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.generators import generate, generate_tiles, regenerate
from mmaprobe.generators.tiles import vector_at, with_vectors
from mmaprobe.operands.batch import Batch, Bits, Witness
from mmaprobe.validation import FamilyCount, stream, validate
from mmaprobe.validation.batches import FIRST


@pytest.mark.parametrize("instruction", [AMX, lookup.instruction("x86.tdpbssd"), TILE], ids=lambda known: known.id)
def test_a_fault_off_the_diagonal_is_caught_in_its_place(instruction: Instruction) -> None:
    def fault(known: Instruction, batch: Batch, d: Bits) -> Bits:
        d = d.copy()
        d[:, 3, 5] ^= 1
        return d

    model = GPU if instruction is TILE else MODEL
    device = Changed(fault, model)
    summary = validate(device, model, instruction, 50_000)
    assert summary.exit_code == 1
    example = summary.examples[0]
    assert example.stable
    assert example.recipe.endswith("@3,5")
    assert example.vector.note == "only in row 3, column 5 of its tile"
    assert Witness.of(regenerate(example.recipe), example.vector.d, example.vector.note) == example.vector
    assert example.shrunk is not None
    assert example.shrunk_expected is not None
    assert not any(example.shrunk.a + example.shrunk.b)
    assert example.shrunk.d == example.shrunk_expected ^ 1


def test_chunks_of_a_family_are_counted_together() -> None:
    assert FamilyCount(100, 3) + FamilyCount(28, 0) == FamilyCount(128, 3)
    assert FamilyCount() + FamilyCount(28, 1) == FamilyCount(28, 1)


def test_vectors_of_a_tile() -> None:
    for instruction in (TILE, AMX):
        tiles = generate_tiles(instruction, "uniform", 4, 100, 3)
        assert tiles.a.shape == (3, instruction.m, instruction.k)
        d = (GPU if instruction is TILE else MODEL).run(instruction, tiles)
        one = vector_at(tiles, 2, 7, 1)
        assert int(run_vectors(GPU if instruction is TILE else MODEL, instruction, one)[0]) == int(d[2, 7, 1])
        side = max(instruction.m, instruction.n)
        source = generate(instruction, "uniform", 4, 100 + 2 * side, side)
        assert (one.a[0] == source.a[7]).all()
        assert (one.b[0] == source.b[1]).all()
        assert one.c is not None
        assert source.c is not None
        assert int(one.c[0]) == int(source.c[7])
        back = with_vectors(tiles, 2, 3, one)
        assert dict(vector_at(back, 0, 2, 3).items()).keys() == dict(one.items()).keys()
        assert (vector_at(back, 0, 2, 3).a == one.a).all()


@pytest.mark.parametrize("instruction", [TILE, AMX], ids=lambda known: known.id)
def test_the_recipe_of_a_late_tile_names_the_vector_that_differs(instruction: Instruction) -> None:
    """One output of the seventh tile of one family is wrong: the recipe of the mismatch leads to that vector."""
    side, outputs = max(instruction.m, instruction.n), instruction.m * instruction.n
    alone = FIRST + (40_000 - FIRST) % outputs
    tile = generate_tiles(instruction, "clustered", 0, alone + 6 * side, 1)
    row, column = tile.a[0, 3], tile.b[0, :, 5]

    def fault(known: Instruction, batch: Batch, d: Bits) -> Bits:
        rows, columns = (batch.a == row).all(-1), (batch.b == column[:, None]).all(1)
        return np.where(rows[:, :, None] & columns[:, None, :], d ^ 1, d).astype(d.dtype)

    model = GPU if instruction is TILE else MODEL
    summary = validate(Changed(fault, model), model, instruction, 40_000, generators=["clustered"])
    assert (summary.exit_code, len(summary.examples)) == (1, 1)
    vector = regenerate(summary.examples[0].recipe)
    assert (vector.a[0] == row).all()
    assert (vector.b[0] == column).all()
    assert f"/{alone + 6 * side}@3,5" in summary.examples[0].recipe


def test_a_place_outside_the_tile_is_refused() -> None:
    with pytest.raises(UsageError, match="16 rows, 8 columns"):
        regenerate(f"{TILE.id}/tie.1/0/17@3,8")
    with pytest.raises(UsageError, match="not a recipe"):
        regenerate(f"{TILE.id}/tie.1/0/17@3")


def test_a_recording_is_compared_as_it_is(tmp_path: Path) -> None:
    vectors = generate(DOT, "uniform", 3, 0, 300)
    write_corpus(tmp_path / "c", record(MODEL, [(DOT, vectors)]), "a test")
    replay = open_device(f"replay:{tmp_path / 'c'}")
    for dut, ref in ((replay, MODEL), (MODEL, replay)):
        summary = validate(dut, ref, DOT, 1_000_000)
        assert (summary.vectors, summary.exit_code) == (300, 0)
        assert dict(summary.families).keys() == {"recorded"}
    assert validate(replay, MODEL, DOT, 120).vectors == 120
    seventh = vectors.a[7]
    flipped = Changed(lambda known, batch, d: (d ^ (batch.a == seventh).all(axis=-1, keepdims=True)).astype(d.dtype))
    bad = validate(flipped, replay, DOT, 1000)
    assert bad.mismatches == 1
    assert "recorded vector 7" in bad.examples[0].recipe


def test_a_recording_is_compared_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it has more vectors than a chunk: the last one is wrong."""
    monkeypatch.setattr(stream, "CHUNK", 64)
    write_corpus(tmp_path / "c", record(MODEL, [(DOT, generate(DOT, "uniform", 3, 0, 200))]), "a test")
    last = generate(DOT, "uniform", 3, 199, 1)

    def fault(known: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where((batch.a == last.a[:, None]).all(-1)[..., None], d ^ 1, d).astype(d.dtype)

    bad = validate(Changed(fault), open_device(f"replay:{tmp_path / 'c'}"), DOT, 1000)
    assert (bad.vectors, bad.mismatches) == (200, 1)
    assert "recorded vector 199" in bad.examples[0].recipe


def test_ctrl_c_keeps_what_was_compared() -> None:
    seen: list[int] = []
    calls = iter(range(100))

    def interrupt(known: Instruction, batch: Batch, d: Bits) -> Bits:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return d

    summary = validate(Changed(interrupt), MODEL, DOT, 2_000_000, threads=1, progress=seen.append)
    assert summary.interrupted
    assert (summary.exit_code, summary.verdict) == (130, "interrupted")
    assert 0 < summary.vectors < 2_000_000
    assert summary.vectors == sum(count.vectors for _, count in summary.families)
    assert sum(seen) <= summary.vectors


def test_a_mismatch_before_the_interrupt_counts() -> None:
    calls = count()

    def interrupt(known: Instruction, batch: Batch, d: Bits) -> Bits:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return d ^ 1

    assert validate(Changed(interrupt), MODEL, DOT, 2_000_000, threads=1).exit_code == 1


def test_stop_is_asked_between_chunks() -> None:
    asked = iter(range(100))
    seen: list[int] = []
    summary = validate(MODEL, MODEL, DOT, 3_000_000, stop=lambda: next(asked) == 5, progress=seen.append)
    assert summary.interrupted
    assert summary.vectors == sum(seen)
    assert 0 < summary.vectors < 3_000_000
    assert validate(MODEL, MODEL, DOT, 1000, stop=lambda: True).exit_code == 4


def test_a_device_that_is_not_concurrent_is_called_by_one_thread_at_a_time() -> None:
    def slow(known: Instruction, batch: Batch, d: Bits) -> Bits:
        time.sleep(0.002)
        return d

    alone = Changed(slow)
    assert validate(alone, MODEL, DOT, 500_000, threads=4).exit_code == 0
    assert alone.most == 1
    together = Changed(slow, concurrent=True)
    assert validate(together, MODEL, DOT, 500_000, threads=4).exit_code == 0
    assert together.most > 1
    assert len(together.threads) > 1


@pytest.mark.parametrize("instruction", [DOT, FMA, AMX], ids=lambda known: known.id)
def test_this_cpu_agrees_with_its_model(instruction: Instruction) -> None:
    cpu = open_device("cpu")
    if not (support := cpu.supports(instruction)):
        pytest.skip(support.reason)
    summary = validate(cpu, open_device(f"model:{cpu.info()['architecture']}"), instruction, 200_000)
    assert (summary.mismatches, summary.exit_code) == (0, 0), summary.examples
