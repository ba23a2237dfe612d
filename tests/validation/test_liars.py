"""Devices that lie where nobody looks twice: each is caught by what ``validate`` and ``run`` ask by default."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from cases.validated import Changed
from mmaprobe.api import OpenDevice
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction as instruction_of
from mmaprobe.devices.base import open_device, run_tiles, run_vectors
from mmaprobe.errors import DeviceError
from mmaprobe.evidence.store import Store
from mmaprobe.generators import generate, generate_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.validation import validate
from mmaprobe.validation.batches import CHUNK, LARGEST, Chunk, small_batches, varied

FORMS = {
    "dot": ("x86-64+amd", "x86.vdpbf16ps"),
    "integers": ("x86-64+amd", "x86.vpdpbusd"),
    "tiles": ("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    "sparse": ("sm_80", "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
}
LIARS = {
    "zeroes its operands": "operands?", "same again": "again?", "from item 1000": "index?n=1000&",
    "alone": "small?n=2&", "every second call": "call?n=2&", "every 300th call": "call?n=300&",
    "one buffer": "kept?p=0.0001&",
}  # fmt: skip
FAR = "index?n=100000&"


def liar(words: str, architecture: str) -> str:
    return f"misbehaving:{words}of=model:{architecture}"


def caught(words: str, form: str) -> None:
    architecture, made = FORMS[form]
    summary = mmaprobe.validate(liar(words, architecture), f"model:{architecture}", made)
    assert summary.vectors == 1_000_000
    assert summary.mismatches
    assert summary.exit_code in (1, 5)


@pytest.mark.parametrize("name", [*LIARS, "from item 100,000"])
def test_validate_catches_it_at_its_default_count(name: str) -> None:
    caught(LIARS.get(name, FAR), "dot")


@pytest.mark.long
@pytest.mark.parametrize("form", ["integers", "tiles", "sparse"])
@pytest.mark.parametrize("name", LIARS)
def test_validate_catches_it_on_every_kind_of_form(name: str, form: str) -> None:
    caught(LIARS[name], form)


@pytest.mark.long
@pytest.mark.parametrize("name", [*LIARS, "from item 100,000"])
def test_a_run_catches_it_at_its_default_count(name: str, tmp_path: Path) -> None:
    architecture, made = FORMS["integers"]
    report = mmaprobe.run(liar(LIARS.get(name, FAR), architecture), instruction=made, out=tmp_path / "run")
    assert report.exit_code in (1, 5)


@pytest.mark.parametrize("form", FORMS)
def test_batches_are_of_all_sizes_and_hold_every_vector_once(form: str) -> None:
    made = instruction_of(FORMS[form][1], FORMS[form][0])
    chunks = list(varied(made, "tie", 0, 200_000, 16, seed=3))
    once = list(dict.fromkeys(chunks))
    places = sorted((chunk.start, chunk.start + (chunk.tiles * max(made.m, made.n) or chunk.count)) for chunk in once)
    assert all(end == start for (_, end), (start, _) in pairwise(places))
    assert sum(chunk.count for chunk in once) == 200_000
    sizes = [chunk.tiles or chunk.count for chunk in once]
    assert min(sizes) == 1 or form != "dot"
    assert min(sizes) < 4
    assert CHUNK < max(chunk.count for chunk in once) <= LARGEST
    again = [chunk for chunk in set(chunks) if chunks.count(chunk) == 2]
    assert all(chunk.twice for chunk in again)
    assert len(again) >= len(once) // 3
    apart = [index - chunks.index(chunk) for index, chunk in enumerate(chunks) if chunk in chunks[:index]]
    assert 1 in apart
    assert max(apart) > 4
    assert chunks == list(varied(made, "tie", 0, 200_000, 16, seed=3)) != list(varied(made, "tie", 0, 200_000, 16, 4))


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_few_vectors_are_cut_too(count: int) -> None:
    made = instruction_of(FORMS["dot"][1])
    chunks = set(varied(made, "tie", 5, count, small_batches(count, 12), 0))
    assert sum(chunk.count for chunk in chunks) == count
    assert all(isinstance(chunk, Chunk) and chunk.count for chunk in chunks)


def test_what_is_asked_twice_counts_once_and_is_said() -> None:
    architecture, made = FORMS["dot"]
    model = open_device(f"model:{architecture}")
    wrong = Changed(lambda known, batch, d: d ^ d.dtype.type(1), model)
    summary = validate(wrong, model, instruction_of(made), 100_000)
    assert (summary.vectors, summary.mismatches) == (100_000, 100_000)
    batches = summary.form()["batches"]
    assert batches["asked"] > 2 * batches["again"] > 20
    assert 10_000 < batches["largest"] < 20_000


@pytest.mark.parametrize("form", FORMS)
def test_a_device_has_operands_of_its_own_and_keeps_no_answer(form: str) -> None:
    architecture, made = FORMS[form]
    known, honest = instruction_of(made, architecture), open_device(f"model:{architecture}")
    given: list[Bits] = []

    def spoil(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        for value in (*(value for _, value in batch.items()), *given):
            value[...] = 0
        given.append(d)
        return d

    device = Changed(spoil, honest)
    for batch, ask in (
        (generate(known, "uniform", 1, 0, 50), run_vectors),
        (generate_tiles(known, "uniform", 1, 0, 50), run_tiles),
        (generate_tiles(known, "uniform", 1, 0, 50), lambda _, made, tiles: OpenDevice(device).run(made, tiles)),
    ):
        kept = batch.copy()
        answers = [ask(device, known, batch) for _ in range(2)]
        for name, value in batch.items():
            assert (value == getattr(kept, name)).all(), name
        expected = run_vectors(honest, known, kept) if ask is run_vectors else run_tiles(honest, known, kept)
        assert all((answer == expected).all() for answer in answers)


def test_an_array_that_says_it_equals_everything_is_taken_for_its_bits() -> None:
    device = open_device(liar("kept?p=1&", "x86-64+amd"))
    made = instruction_of("x86.vpdpbusd")
    assert type(run_vectors(device, made, generate(made, "uniform", 1, 0, 5))) is np.ndarray


def test_only_a_recording_chooses_the_vectors() -> None:
    architecture, made = FORMS["dot"]
    model, known = open_device(f"model:{architecture}"), instruction_of(made)
    device = Changed(lambda instruction, batch, d: d ^ d.dtype.type(1), model)
    device.recorded = lambda instruction: (generate(known, "zeros", 0, 0, 1), None)  # type: ignore[attr-defined]
    for pair in ((device, model), (model, device)):
        summary = validate(*pair, known, 2000)
        assert (summary.vectors, summary.exit_code) == (2000, 1)
        assert "recorded" not in dict(summary.families)


def reversed_rows(identifier: str) -> Changed:
    """A model that gives back the rows of one instruction in opposite order."""

    def change(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.ascontiguousarray(d[..., ::-1, :]) if instruction.id == identifier else d

    return Changed(change, open_device("model:sm_80"))


TWO = "mma.sync.aligned.m16n8k8.row.col.f??.f16.f16.*"
BROKEN, SOUND = (f"mma.sync.aligned.m16n8k8.row.col.{d}.f16.f16.{d}" for d in ("f16", "f32"))


@pytest.mark.long
def test_a_broken_layout_is_the_result_of_its_instruction_and_the_run_goes_on(tmp_path: Path) -> None:
    report = mmaprobe.run(reversed_rows(BROKEN), instruction=TWO, vectors=20_000, out=tmp_path / "run")
    found = {result.instruction.id: result for result in report.results}
    assert {name: result.exit_code for name, result in found.items()} == {BROKEN: 5, SOUND: 0}
    assert found[BROKEN].error == "layout: elements of a, c reach other outputs"
    assert report.exit_code == 5
    part = Store.open(tmp_path / "run").parts[BROKEN]
    assert {each.question: each.status for each in part.findings}["layout"] == "contradictory"


def test_a_broken_layout_step_by_step(tmp_path: Path) -> None:
    report = mmaprobe.bring_up(reversed_rows(BROKEN), instruction=TWO, vectors=20_000, out=tmp_path / "steps")
    assert {result.instruction.id: result.exit_code for result in report.results} == {BROKEN: 5, SOUND: 0}
    assert not report.ended


@pytest.mark.long
def test_nothing_is_derived_from_a_broken_layout() -> None:
    device = liar("rows?", "sm_80")
    with pytest.raises(DeviceError, match="summation_tree: a sum that every unit gets right, 1, came out as 0"):
        mmaprobe.derive(device, BROKEN)
    assert mmaprobe.probe(device, BROKEN, questions=["layout"])["layout"].status == "contradictory"
    assert mmaprobe.validate(device, "model:sm_80", BROKEN, 2000).exit_code == 1
