"""The device replay: answers what was recorded, bit for bit, and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import has, open_device, pad_lanes, run_vectors
from mmaprobe.devices.function import open_function
from mmaprobe.devices.replay import Replay, open_replay, record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import Corpus, Set, write_corpus
from mmaprobe.operands.batch import Batch

DOT = open_function("numpy:dot?k=4")
MATRIX = Instruction("matrix", "matrix", "test", 2, 2, 4, "f32", "f32", "f32", "f32")


def some_vectors(count: int, k: int = 4, seed: int = 1) -> Batch:
    values = np.random.default_rng(seed).normal(size=(2, count, k)).astype(np.float32).view(np.uint32)
    return Batch(values[0], values[1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording of NumPy's dot product on 10 vectors."""
    write_corpus(tmp_path / "c", record(DOT, [(DOT.instruction, some_vectors(10))], "some licence\n"), "a test")
    return tmp_path / "c"


def test_a_recording_answers_as_its_device_did(folder: Path) -> None:
    replay = open_device(f"replay:{folder}")
    assert has(replay, "run_vectors")
    (instruction,) = replay.instructions()
    assert instruction.id == DOT.instruction.id == "function.numpy:dot{format=f32,k=4}"
    assert replay.supports(instruction)
    assert not replay.supports(MATRIX)
    assert "not recorded" in replay.supports(MATRIX).reason
    vectors = some_vectors(10)
    backwards = Batch(vectors.a[::-1], vectors.b[::-1].astype(">u4"))
    expected = run_vectors(DOT, DOT.instruction, vectors)
    assert run_vectors(replay, instruction, backwards).tolist() == expected[::-1].tolist()
    assert replay.info()["licence"] == "some licence"
    tiles = Batch(vectors.a[:, None], vectors.b[:, :, None])
    assert replay.run(instruction, tiles).tolist() == expected[:, None, None].tolist()


def test_a_vector_that_was_not_recorded_is_named(folder: Path) -> None:
    replay = open_replay(str(folder))
    (instruction,) = replay.instructions()
    strange = Batch(np.array([[1, 2, 3, 4]], np.uint32), np.array([[5, 6, 7, 0x80000000]], np.uint32))
    with pytest.raises(UsageError, match="no recording of a=0x1,0x2,0x3,0x4 b=0x5,0x6,0x7,0x80000000"):
        run_vectors(replay, instruction, strange)
    with pytest.raises(UsageError, match="must be uint32"):
        run_vectors(replay, instruction, Batch(strange.a.astype(np.uint64), strange.b))
    with pytest.raises(UsageError, match="is not recorded"):
        run_vectors(replay, replace(instruction, id="other"), strange)
    assert run_vectors(replay, instruction, strange.slice(0, 0)).size == 0


def recording(**change: Any) -> Corpus:
    """Two vectors of two lanes through a k = 4 instruction with an accumulator."""
    record_ = Set("g/s", "g", "sm_80", "by hand", "tf32", "tf32", "f32 bits", "f32", 2, 2,
                  "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32")  # fmt: skip
    one, two = 0x3F800000, 0x40000000
    arrays = {
        "a": np.array([[one, two], [two, two]], np.uint32),
        "b": np.array([[one, one], [two, one]], np.uint32),
        "c": np.array([0, one], np.uint32),
        "d": np.array([0x40400000, 0x40E00000], np.uint32),
    }
    return Corpus([replace(record_, **change)], {f"g/s/{name}": value for name, value in arrays.items()})


def test_fewer_recorded_lanes_than_k_are_filled_up_with_zero_on_both_sides() -> None:
    replay = Replay("replay:x", recording(), "g")
    (instruction,) = replay.instructions()
    assert (instruction.m, instruction.n, instruction.k) == (16, 8, 4)
    vectors, d = replay.recorded(instruction)
    assert vectors.a.shape == vectors.b.shape == (2, 4)
    assert not vectors.a[:, 2:].any()
    assert run_vectors(replay, instruction, vectors).tolist() == d.tolist()
    narrow = Batch(vectors.a[:, :2], vectors.b[:, :2], vectors.c)
    assert run_vectors(replay, instruction, narrow).tolist() == d.tolist()
    with pytest.raises(UsageError, match="takes vectors of 4 lanes, got 5"):
        pad_lanes(instruction, Batch(np.zeros((2, 5), np.uint32), np.zeros((2, 5), np.uint32), vectors.c))


def test_a_set_that_contradicts_its_instruction_or_itself_is_refused() -> None:
    for change, message in (
        ({"a": "f32"}, "its formats are not those of"),
        ({"c": "none"}, "C is none, but"),
        ({"d": "f16"}, "its formats are not those of"),
    ):
        with pytest.raises(UsageError, match=message):
            Replay("replay:x", recording(**change), "g")
    twice = recording()
    for name in "abc":
        twice._arrays[f"g/s/{name}"][1] = twice._arrays[f"g/s/{name}"][0]
    with pytest.raises(UsageError, match="two answers to the same vector"):
        Replay("replay:x", twice, "g")


def test_an_instruction_unknown_to_the_catalog_is_taken_from_the_record() -> None:
    replay = Replay("replay:x", recording(instruction="unheard.of{x=1}"), "g")
    (instruction,) = replay.instructions()
    assert (instruction.id, instruction.m, instruction.k, instruction.c) == ("unheard.of{x=1}", 1, 2, "f32")
    vectors, d = replay.recorded(instruction)
    assert run_vectors(replay, instruction, vectors).tolist() == d.tolist()


def test_one_unit_of_several_must_be_chosen(tmp_path: Path) -> None:
    one, two = recording(), recording(key="h/s", gpu="h")
    arrays = one._arrays | {key.replace("g/", "h/"): value for key, value in two._arrays.items()}
    write_corpus(tmp_path / "c", Corpus([*one.sets(), *two.sets()], arrays), "a test")
    with pytest.raises(UsageError, match=r"recordings of g, h; choose one: replay:.*\?gpu=g"):
        open_replay(str(tmp_path / "c"))
    with pytest.raises(UsageError, match="no recordings of 'i'; known: g, h"):
        open_replay(f"{tmp_path / 'c'}?gpu=i")
    with pytest.raises(UsageError, match="unknown option 'cpu'"):
        open_replay(f"{tmp_path / 'c'}?cpu=g")
    with pytest.raises(UsageError, match="needs the folder"):
        open_replay("")
    assert open_replay(f"{tmp_path / 'c'}?gpu=h").info()["gpu"] == "h"


@pytest.mark.needs("corpus")
def test_every_recorded_set_replays() -> None:
    corpus = Corpus.open(os.environ["MMAPROBE_CORPUS"])
    answered = 0
    for gpu in dict.fromkeys(kept.gpu for kept in corpus.sets()):
        replay = Replay("replay", corpus, gpu)
        for instruction in replay.instructions():
            vectors, d = replay.recorded(instruction)
            assert (run_vectors(replay, instruction, vectors) == d).all()
            answered += len(d)
    assert answered == sum(kept.count for kept in corpus.sets())
