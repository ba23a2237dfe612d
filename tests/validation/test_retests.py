"""What is found of a mismatch when it is asked again: how often, in which place, on which core or GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cases.validated import DOT, GPU, MODEL, TILE, Changed
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, open_device
from mmaprobe.evidence.records import Mismatch, Retest
from mmaprobe.generators import generate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.validation import Summary, elsewhere, stream, validate
from mmaprobe.validation.batches import Chunk
from mmaprobe.validation.core_by_core import validate_cores
from mmaprobe.validation.cores import pinned
from mmaprobe.validation.examine import COPIES, Example, examine
from mmaprobe.validation.pair import Pair

CORES = sorted(os.sched_getaffinity(0))
VECTOR = generate(DOT, "conly", 3, 0, 1)


def found(fault: str, instruction: Instruction = DOT, vectors: int = 20_000) -> Summary:
    """What a device with a fault is found to do."""
    model = GPU if instruction is TILE else MODEL
    return validate(open_device(f"misbehaving:{fault}&of={model.name}"), model, instruction, vectors, threads=1)


def asked(change: Any, first: int | None = None, ref: Device = MODEL) -> Mismatch:
    """One vector asked of a device whose answers go through a change."""
    return examine(Example("recipe", VECTOR, first=first), Pair(Changed(change), ref, DOT))


@pytest.mark.parametrize(("retest", "outcome"), [
    (Retest(64, 64), "stable"), (Retest(64, 0), "gone"), (Retest(64, 3), "intermittent 3/64"),
    (Retest(64, 3, 2), "intermittent 5/64"), (Retest(64, 0, 64), "intermittent 64/64"),
    (Retest(64, 63, 1), "intermittent 64/64"),
])  # fmt: skip
def test_the_word_for_a_retest(retest: Retest, outcome: str) -> None:
    assert retest.outcome == outcome


def test_every_eighth_call_is_wrong_in_four_of_64() -> None:
    summary = found("call?n=8")
    assert (summary.exit_code, summary.verdict) == (5, "unstable")
    assert {example.retests[0] for example in summary.examples} == {Retest(2 * COPIES, 4)}
    assert not any(example.vector.note or example.shrunk for example in summary.examples)


def test_a_fault_of_one_in_sixteen_is_usually_seen_again() -> None:
    """By the batch alone in 7 of 8 cases, by both in 61 of 62."""
    device = open_device(f"misbehaving:flaky?p=0.0625&seed=5&of={MODEL.name}")
    wrong = int(MODEL.run_vectors(DOT, VECTOR)[0]) ^ 1  # type: ignore[attr-defined]
    retests = [examine(Example("r", VECTOR, first=wrong), Pair(device, MODEL, DOT)).retests[0] for _ in range(30)]
    assert sum(retest.outcome != "gone" for retest in retests) >= 28
    assert all(retest.other == 0 for retest in retests)


def test_what_is_right_again_keeps_its_first_answer() -> None:
    right = int(MODEL.run_vectors(DOT, VECTOR)[0])  # type: ignore[attr-defined]
    gone = asked(lambda made, batch, d: d, first=right ^ 0x100)
    assert (gone.vector.d, gone.expected, gone.stable) == (right ^ 0x100, right, False)
    assert gone.retests == (Retest(64, 0),)
    assert gone.kinds == ("256 ulps", "one bit (bit 8)")


def test_other_wrong_answers_are_counted_apart() -> None:
    right = int(MODEL.run_vectors(DOT, VECTOR)[0])  # type: ignore[attr-defined]
    calls = iter(range(1000))
    mixed = asked(lambda made, batch, d: d ^ d.dtype.type((0, 1, 2)[next(calls) % 3]), first=right ^ 1)
    assert (mixed.retests[0], mixed.stable) == (Retest(64, 11, 11), False)
    always = asked(lambda made, batch, d: d ^ d.dtype.type(2), first=right ^ 1)
    assert (always.retests[0], always.stable) == (Retest(64, 0, 64), False)
    assert always.vector.d == right ^ 1


def test_a_reference_that_changes_its_mind_is_no_stable_mismatch() -> None:
    calls = iter(range(1000))
    flips = Changed(lambda made, batch, d: d ^ d.dtype.type(next(calls) % 2))
    unsteady = examine(Example("r", VECTOR), Pair(MODEL, flips, DOT))
    assert not unsteady.stable
    assert unsteady.expected == unsteady.vector.d ^ 1
    assert unsteady.retests[0].right in (16, 48)


def test_a_fault_of_one_output_is_wrong_in_its_place() -> None:
    summary = found("place?n=10", TILE)
    assert summary.exit_code == 1
    for example in summary.examples:
        assert example.recipe.endswith("@1,2")
        assert example.vector.note == "only in row 1, column 2 of its tile"
        assert example.kinds[-2:] == ("only row 1", "only column 2")
        assert example.retests == (Retest(64, 64),)
        assert example.shrunk is not None


@pytest.mark.parametrize(("instruction", "words"), [
    (TILE, "only every 4th column, from 3"), (DOT, "only every 4th lane, from 3"),
])  # fmt: skip
def test_a_fault_of_every_fourth_column_or_lane_is_said(instruction: Instruction, words: str) -> None:
    summary = found("lanes?n=4", instruction)
    assert summary.exit_code == 1
    for example in summary.examples:
        assert example.kinds == ("1 ulp", "one bit (bit 0)", words)
        assert (example.stable, example.vector.note.startswith("only ")) == (True, True)
        assert example.slot % 4 == 3


def test_a_fault_of_columns_that_tiles_alone_show_is_said_of_tiles() -> None:
    """Off the diagonal, where no separate vector is."""

    def fault(made: Instruction, batch: Batch, d: Bits) -> Bits:
        row, column = np.indices((made.m, made.n))
        return np.where((column % 4 == 3) & (row != column), d ^ 1, d).astype(d.dtype)

    summary = validate(Changed(fault, GPU), GPU, TILE, 20_000, threads=1)
    assert (summary.exit_code, len(summary.examples)) == (1, stream.EXAMPLES)
    for example in summary.examples:
        assert "@" in example.recipe
        assert example.kinds[-1] == "only every 4th column, from 3"
        assert (example.stable, example.slot) == (True, 0)


def test_separate_vectors_are_asked_in_their_place_on_the_diagonal() -> None:
    """Number 5 of the vectors that a tile carries: alone it is right, beside copies of itself wrong."""

    def fault(made: Instruction, batch: Batch, d: Bits) -> Bits:
        d = d.copy()
        d[:, 5, 5] ^= 1
        return d

    vector = generate(TILE, "uniform", 3, 0, 1)
    pair = Pair(Changed(fault, GPU), GPU, TILE)
    assert examine(Example("r", vector, slot=4), pair).retests[0].outcome == "intermittent 4/64"
    seen = examine(Example("r", vector, slot=5), pair)
    assert (seen.stable, seen.vector.note) == (True, "only as number 5 on the diagonal of a tile")


@pytest.mark.parametrize(("fault", "kind"), [
    ("zero?n=1", ("sign of zero", "one bit (bit 31)")), ("nan?p=1", ("NaN code", "one bit (bit 0)")),
])  # fmt: skip
def test_faults_of_zeros_and_of_nans_are_called_so(fault: str, kind: tuple[str, ...]) -> None:
    summary = found(fault, vectors=50_000)
    assert summary.exit_code == 1
    assert {example.kinds for example in summary.examples} == {kind}


@pytest.mark.skipif(len(CORES) < 2, reason="one core only: nowhere else to ask")
def test_a_mismatch_is_asked_on_every_core() -> None:
    device = open_device(f"misbehaving:cpu?n={CORES[-1]}&of={MODEL.name}")
    right = int(MODEL.run_vectors(DOT, VECTOR)[0])  # type: ignore[attr-defined]
    seen = examine(Example("r", VECTOR, first=right ^ 1), Pair(device, MODEL, DOT))
    there = {retest.where: retest.outcome for retest in seen.retests[1:]}
    assert there == {f"core {core}": "stable" if core == CORES[-1] else "gone" for core in CORES}
    assert sorted(os.sched_getaffinity(0)) == CORES
    with pinned(CORES[0]):
        alone = examine(Example("r", VECTOR, first=right ^ 1), Pair(device, MODEL, DOT))
    assert [retest.where for retest in alone.retests] == [""]


def test_models_and_programs_are_asked_in_one_place_only() -> None:
    assert list(elsewhere.others(MODEL)) == []
    assert elsewhere.here(MODEL) == ""


def test_a_core_is_named_where_no_other_is_allowed() -> None:
    device = open_device(f"misbehaving:cpu?n={CORES[-1]}&of={MODEL.name}")
    summary = validate_cores(device, MODEL, DOT, 2000)
    assert {example.seen for example in summary.examples} == {f"core {CORES[-1]}"}


@dataclass
class Gpu:
    """A GPU that is wrong in one of four tiles, and one beside it that is sound."""

    name: str = "gpu:0"
    architecture: str = "sm_90a"
    multiprocessor: str = "multiprocessor"
    multiprocessors: int = 5
    wrong: bool = True
    there: Sequence[str] = ("gpu:0", "gpu:1")
    asked: list[int] = field(default_factory=list)

    def siblings(self) -> list[str]:
        return list(self.there)

    def info(self) -> dict[str, str]:
        return {"architecture": self.architecture}

    def instructions(self) -> Sequence[Instruction]:
        return (TILE,)

    def supports(self, instruction: Instruction) -> Any:
        return True

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        self.asked.append(batch.size)
        d = GPU.run(instruction, batch)
        d[3::4] ^= d.dtype.type(self.wrong)
        return d


@pytest.mark.parametrize("other", ["sm_90a", "sm_100a"])
def test_a_gpu_is_asked_on_all_multiprocessors_and_its_neighbour_too(
    other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def opens(name: str) -> Gpu:
        opened.append(name)
        return Gpu(name, other, wrong=False)

    monkeypatch.setattr(elsewhere, "open_device", opens)
    vector = generate(TILE, "uniform", 3, 0, 1)
    first = int(GPU.run_vectors(TILE, vector)[0]) ^ 1  # type: ignore[attr-defined]
    gpu = Gpu()
    seen = examine(Example("r", vector, first=first), Pair(gpu, GPU, TILE))
    assert opened == ["gpu:1"]
    assert seen.retests[:2] == (Retest(64, 8), Retest(160, 40, 0, "all 5 multiprocessors"))
    assert seen.retests[2:] == ((Retest(64, 0, 0, "gpu:1"),) if other == "sm_90a" else ())
    assert max(gpu.asked) == 4 * gpu.multiprocessors


def test_a_neighbour_that_fails_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Changed(lambda made, batch, d: d[:-1], GPU)
    monkeypatch.setattr(elsewhere, "_twin", lambda device: broken)
    seen = examine(Example("r", generate(TILE, "uniform", 3, 0, 1)), Pair(Gpu(), GPU, TILE))
    assert [retest.where for retest in seen.retests] == ["", "all 5 multiprocessors"]


def test_many_mismatches_keep_few_and_count_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one of 200,000 is wrong: each counts, and what is kept does not grow with them."""
    kept: list[int] = []
    keep = stream._keep

    def watched(job: Any, chunk: Any, found: Any) -> None:
        keep(job, chunk, found)
        kept.append(sum(each.where.size for _, each in job.found))

    monkeypatch.setattr(stream, "_keep", watched)
    summary = validate(Changed(lambda made, batch, d: d ^ d.dtype.type(1)), MODEL, DOT, 200_000)
    assert summary.mismatches == 200_000
    assert len(kept) > 20
    assert max(kept) <= stream.PLACES * stream.KEPT_CHUNKS
    assert len(summary.examples) == stream.EXAMPLES


def test_nothing_is_examined_where_only_counts_are_wanted() -> None:
    calls: list[int] = []

    def wrong(made: Instruction, batch: Batch, d: Bits) -> Bits:
        calls.append(batch.size)
        return d ^ d.dtype.type(1)

    counted = validate(Changed(wrong), MODEL, DOT, 2000, examined=False)
    assert (counted.mismatches, counted.examples, counted.exit_code) == (2000, (), 1)
    assert len(calls) == counted.batches.asked


def test_the_first_chunks_are_kept_whatever_thread_was_first() -> None:
    chunks = [Chunk("b", start, 10) for start in range(0, 300, 10)] + [Chunk("a", 50, 10)]
    found = stream._Found(1, np.array([0]))
    kept = []
    for order in (chunks, chunks[::-1], chunks[1::2] + chunks[::2]):
        job = stream._Job(MODEL, MODEL, DOT)
        for chunk in order:
            stream._keep(job, chunk, found)
        kept.append([chunk for chunk, _ in job.found])
    assert kept[0] == kept[1] == kept[2]
    assert kept[0] == sorted(chunks, key=lambda chunk: (chunk.family, chunk.start))[: stream.KEPT_CHUNKS]
