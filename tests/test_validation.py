"""Validation: what differs is found, retested, shrunk and named; what lies is never called equal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.batch import Batch, Bits, Witness
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device, run_vectors
from mmaprobe.devices.replay import record
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.generators import families_for, generate, generate_tiles, regenerate
from mmaprobe.generators.families import VERSIONS
from mmaprobe.generators.tiles import vector_at, with_vectors
from mmaprobe.report.listing import vector_rows
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.shrink import _simpler, concatenate

DOT = lookup.instruction("x86.vdpbf16ps")
FMA = lookup.instruction("x86.vfmadd.f32")
TILE = lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
AMX = lookup.instruction("x86.tdpbf16ps")
MODEL = open_device("model:x86-64+intel")
GPU = open_device("model:sm_90a")
HMMA = "HMMA.16816.F32[f16,f16->f32]"


@dataclass
class Changed:
    """A device whose whole tiles go through ``change``; it notes how it was called."""

    change: Callable[[Instruction, Batch, Bits], Bits]
    inner: Device = MODEL
    name: str = "changed"
    concurrent: bool = False
    entered: int = 0
    most: int = 0
    threads: set[int] = field(default_factory=set)

    def info(self) -> dict[str, str]:
        return {"architecture": "x86-64+intel"}

    def instructions(self) -> Sequence[Instruction]:
        return self.inner.instructions()

    def supports(self, instruction: Instruction) -> Support:
        return self.inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        self.entered += 1
        self.most = max(self.most, self.entered)
        self.threads.add(threading.get_ident())
        try:
            return self.change(instruction, batch, self.inner.run(instruction, batch))
        finally:
            self.entered -= 1


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
        simpler = concatenate([candidate for _, candidate in _simpler(instruction, small)])
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


def test_a_device_with_a_history_is_unstable_or_wrong_in_its_place() -> None:
    assert wrong("history", DOT, threads=1).exit_code == 5
    found = wrong("history", TILE, threads=1)
    assert found.exit_code == 1
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
    flipped = Changed(lambda known, batch, d: (d ^ (np.arange(d.size) == 7).reshape(d.shape)).astype(d.dtype))
    bad = validate(flipped, replay, DOT, 1000)
    assert bad.mismatches == 1
    assert "recorded vector 7" in bad.examples[0].recipe


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
    calls = iter(range(100))

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
