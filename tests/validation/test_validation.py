"""Validation: what differs is found, retested, shrunk and named; what lies is never called equal."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from cases.validated import AMX, DOT, FMA, GPU, HMMA, MODEL, TILE, Changed
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.generators import families_for, regenerate
from mmaprobe.generators.families import VERSIONS
from mmaprobe.operands.batch import Batch, Bits, Witness, join
from mmaprobe.report.tables.listing import vector_rows
from mmaprobe.validation import Summary, stream, validate
from mmaprobe.validation.shrink import _simpler, shrink


def wrong(name: str, instruction: Instruction = DOT, vectors: int = 20_000, **options: Any) -> Summary:
    inner = GPU if instruction is TILE else MODEL
    device = open_device(f"misbehaving:{name}{'&' if '?' in name else '?'}of={inner.name}")
    return validate(device, inner, instruction, vectors, **options)


@pytest.mark.parametrize("instruction", [DOT, FMA, AMX, TILE], ids=lambda known: known.id)
def test_equal_devices(instruction: Instruction) -> None:
    seen: list[int] = []
    model = GPU if instruction is TILE else MODEL
    summary = validate(model, model, instruction, 50_001, progress=seen.append)
    assert summary.mismatches == 0
    assert summary.vectors == sum(seen) == sum(count.vectors for _, count in summary.families) == 50_001
    assert {name for name, _ in summary.families} == set(families_for(instruction))
    assert (summary.exit_code, summary.verdict, summary.examples) == (0, "equal", ())
    assert {name: kept["version"] for name, kept in summary.form()["families"].items()} == {
        name: VERSIONS[name] for name, _ in summary.families
    }


def test_nothing_compared() -> None:
    summary = validate(MODEL, MODEL, DOT, 0)
    assert (summary.vectors, summary.exit_code, summary.verdict) == (0, 4, "nothing compared")
    assert not summary, "nothing compared is not true"


@pytest.mark.parametrize(("name", "true"), [("hang?seconds=0", True), ("zeros", False), ("flaky?p=0.01", False)])
def test_a_summary_is_true_where_it_is_equal(name: str, true: bool) -> None:
    assert bool(wrong(name, vectors=2000)) is true


@pytest.mark.parametrize(("options", "message"), [
    ({"vectors": -1}, "must not be negative"),
    ({"generators": ["unifrom"]}, "did you mean uniform"),
    ({"nan": "some"}, "it must be bits or any"),
])  # fmt: skip
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        validate(MODEL, MODEL, DOT, **options)


def test_only_the_named_generators() -> None:
    summary = validate(MODEL, MODEL, DOT, 1000, generators=["tie", "cancel"])
    assert {name for name, _ in summary.families} == {"tie", "cancel"}
    assert summary.vectors == 1000


MUTANTS = [
    ("mutant:sm_90a", f"{HMMA}/tree.fraction_bits=24"),
    ("mutant:sm_90a", f"{HMMA}/tree.to.rounding=RNE"),
    ("mutant:sm_90a", f"{HMMA}/special.code=0x7fc00000"),
    ("mutant:sm_90a", f"{HMMA}/operand_a.subnormals=signed_zero"),
    ("mutant:x86-64+intel", "VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ"),
]


@pytest.mark.parametrize(("scheme", "change"), MUTANTS, ids=[change for _, change in MUTANTS])
def test_mutants_are_found_and_shrunk(scheme: str, change: str) -> None:
    mutant = open_device(f"{scheme}/{change}")
    instruction, model = (TILE, GPU) if "sm_90a" in scheme else (DOT, MODEL)
    summary = validate(mutant, model, instruction, 100_000)
    assert (summary.exit_code, summary.verdict) == (1, "mismatch")
    assert summary.mismatches == sum(count.mismatches for _, count in summary.families) > 0
    assert 1 <= len(summary.examples) <= 4
    for example in summary.examples:
        assert example.stable
        assert example.vector.note == ""
        vector = regenerate(example.recipe)
        assert Witness.of(vector, example.vector.d) == example.vector
        answers = [int(run_vectors(device, instruction, vector)[0]) for device in (mutant, model)]
        assert answers == [example.vector.d, example.expected]
        assert len(vector_rows(example.recipe)) == 2 * instruction.k + 1
        assert example.shrunk is not None
        small = batch_of(instruction, example.shrunk)
        answers = [int(run_vectors(device, instruction, small)[0]) for device in (mutant, model)]
        assert answers == [example.shrunk.d, example.shrunk_expected]
        assert answers[0] != answers[1]
        simpler = join([candidate for _, candidate in _simpler(instruction, small)])
        same = run_vectors(mutant, instruction, simpler) == run_vectors(model, instruction, simpler)
        assert same.all(), "a simpler vector still differs"


def batch_of(instruction: Instruction, witness: Witness) -> Batch:
    named = instruction.formats()
    a, b = (np.array([getattr(witness, name)], named[name].dtype) for name in ("a", "b"))
    return Batch(a, b, None if witness.c is None else np.array([witness.c], named["c"].dtype))


def test_same_seed_same_outcome_whatever_the_threads() -> None:
    mutant = open_device(f"mutant:sm_90a/{HMMA}/tree.fraction_bits=24")
    first, again = (validate(mutant, GPU, TILE, 200_000, 5, threads=count) for count in (1, 4))
    assert first.form() == again.form()
    assert [example.recipe for example in first.examples] == [example.recipe for example in again.examples]
    assert validate(mutant, GPU, TILE, 200_000, 6).form() != first.form()


@pytest.mark.parametrize(("name", "code"), [
    ("zeros", 1), ("c", 1), ("flaky?p=0.01", 5), ("flaky?p=0.5", 5), ("flaky?p=1", 1), ("nan?p=0.5", 5),
    ("nan?p=1", 1), ("previous", 5), ("zeros?after=3", 1), ("previous?after=2", 5),
])  # fmt: skip
@pytest.mark.parametrize("instruction", [DOT, TILE], ids=["lanes", "tiles"])
def test_faults_are_never_equal(name: str, code: int, instruction: Instruction) -> None:
    summary = wrong(name, instruction, threads=1)
    assert summary.mismatches > 0
    assert summary.exit_code == code
    assert all(example.stable for example in summary.examples) == (code == 1)


@pytest.mark.parametrize("instruction", [DOT, TILE], ids=["lanes", "tiles"])
def test_a_device_with_a_history_is_unstable(instruction: Instruction) -> None:
    """A vector on its own has another one before it when it is asked again."""
    found = wrong("history", instruction, threads=1)
    assert found.exit_code == 5
    assert not all(example.stable for example in found.examples)


def test_a_history_inside_of_a_tile_is_wrong_in_its_place() -> None:
    """An output off the diagonal hangs on its left neighbour, which is the same whenever the tile is asked again."""

    def change(made: Instruction, batch: Batch, d: Bits) -> Bits:
        row, column = np.indices((made.m, made.n))
        left = np.roll(d, 1, axis=2)
        return np.where((left & 1 == 1) & (column > 0) & (row != column), d ^ 1, d).astype(d.dtype)

    found = validate(Changed(change, GPU), GPU, TILE, 20_000, threads=1)
    assert (found.exit_code, len(found.examples)) == (1, stream.EXAMPLES)
    assert all(example.vector.note.startswith("only in row") for example in found.examples)


@pytest.mark.parametrize(("name", "message"), [
    ("shape", "answered uint32 of shape"),
    ("dtype", "answered uint64 of shape"),
    ("crash", "broke down: RuntimeError"),
    ("crash?after=3", "broke down: RuntimeError"),
])  # fmt: skip
@pytest.mark.parametrize("instruction", [DOT, TILE], ids=["lanes", "tiles"])
def test_a_device_that_breaks_down_ends_the_comparison(name: str, message: str, instruction: Instruction) -> None:
    with pytest.raises(DeviceError, match=message) as caught:
        wrong(name, instruction)
    assert caught.value.exit_code == 5
    assert instruction.id in str(caught.value)


def test_a_slow_answer_is_an_answer() -> None:
    assert wrong("hang?seconds=0.01", vectors=2000).exit_code == 0


def test_a_hanging_process_ends_with_an_error() -> None:
    hello = "mmaprobe 1 x86-64 sleeper text x86.vdpbf16ps"
    begin = time.monotonic()
    with pytest.raises(DeviceError, match="no complete answer within"):
        validate(open_device(f"process:timeout=0.3 sh -c 'echo {hello}; sleep 60'"), MODEL, DOT, 1000)
    assert time.monotonic() - begin < 10


def test_nan_any_lets_payloads_differ_and_nothing_else() -> None:
    def payload(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where(formats.decode(formats.get("f32"), d).kind == formats.NAN, d ^ 1, d).astype(d.dtype)

    strict = validate(Changed(payload), MODEL, DOT, 30_000)
    assert strict.exit_code == 1
    loose = validate(Changed(payload), MODEL, DOT, 30_000, nan="any")
    assert (loose.exit_code, loose.mismatches, loose.nan) == (0, 0, "any")

    def worse(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where(d == 0, np.uint32(0x80000000), payload(instruction, batch, d)).astype(d.dtype)

    found = validate(Changed(worse), MODEL, DOT, 30_000, nan="any")
    assert found.exit_code == 1
    assert all(example.shrunk and example.shrunk.d == 0x80000000 for example in found.examples)


def test_nan_any_is_of_two_nans() -> None:
    """A number in place of a NaN, or a NaN in place of a number, is a mismatch that stays one."""

    def number(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where(formats.decode(formats.get("f32"), d).kind == formats.NAN, 0x3F800000, d).astype(d.dtype)

    def nan(instruction: Instruction, batch: Batch, d: Bits) -> Bits:
        return np.where(d == 0, 0x7FC00000, d).astype(d.dtype)

    for change in (number, nan):
        found = validate(Changed(change), MODEL, DOT, 5_000, nan="any")
        assert found.exit_code == 1
        assert all(example.stable for example in found.examples)


def test_shrinking_drops_signs_that_do_not_matter() -> None:
    """What differs wherever a's first code is 3.14 or -3.14 shrinks to 3.14 and zeros."""
    vector = Batch(np.array([[0xC049, 0xBF80]], np.uint16), np.array([[0xBF80, 0x3F80]], np.uint16),
                   np.array([0x80000000], np.uint32))  # fmt: skip
    small = shrink(DOT, vector, lambda found: (found.a[:, 0] & 0x7FFF) == 0x4049)
    assert small.c is not None
    assert (small.a.tolist(), small.b.tolist(), small.c.tolist()) == ([[0x4049, 0]], [[0, 0]], [0])
