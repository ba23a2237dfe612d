"""The misbehaving devices show the fault that they promise, and only that."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.function import open_function
from mmaprobe.devices.misbehaving import EXIT_STATUS, KINDS, Misbehaving, open_misbehaving
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.generators import generate_tiles
from mmaprobe.operands.batch import Batch

OF = "of=function:numpy:multiply%3Fk=1"
HONEST = open_function("numpy:multiply?k=1")
COUNT = 4000


def vectors(seed: int, nans: bool = False) -> Batch:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(COUNT, 1)).astype(np.float32).view(np.uint32)
    if nans:
        a[::2] = 0x7FC00001
    return Batch(a, rng.normal(size=(COUNT, 1)).astype(np.float32).view(np.uint32))


def answer(device: Any, batch: Batch) -> Any:
    return run_vectors(device, HONEST.instruction, batch)


def test_before_the_fault_begins_every_kind_is_honest() -> None:
    for kind in KINDS:
        device = open_misbehaving(f"{kind}?{OF}&after=1")
        assert (answer(device, vectors(1)) == answer(HONEST, vectors(1))).all(), kind
        assert device.supports(HONEST.instruction)
        assert device.info()["device"] == device.name
        assert [known.id for known in device.instructions()] == [HONEST.instruction.id]


def test_previous_returns_the_answer_before() -> None:
    device = open_misbehaving(f"previous?{OF}")
    answer(device, vectors(1))
    assert (answer(device, vectors(2)) == answer(HONEST, vectors(1))).all()
    assert (answer(device, vectors(3).slice(0, 7)) == answer(HONEST, vectors(2))[:7]).all()


def test_zeros_are_zeros() -> None:
    assert not answer(open_misbehaving(f"zeros?{OF}"), vectors(1)).any()


def test_c_comes_back_where_there_is_one() -> None:
    function = "of=function:numpy:multiply%3Fk=1%26c=f32"
    device = open_misbehaving(f"c?{function}")
    (instruction,) = device.instructions()
    c = np.arange(COUNT, dtype=np.uint32)
    inner = Misbehaving("m", "c", _FirstOperand(instruction))
    batch = vectors(1)
    assert (run_vectors(inner, instruction, Batch(batch.a, batch.b, c)) == c).all()
    with pytest.raises(UsageError, match="no accumulator"):
        answer(open_misbehaving(f"c?{OF}"), vectors(1))


class _FirstOperand:
    """D is operand a's first lane."""

    name = "first"

    def __init__(self, instruction: Any) -> None:
        self._instruction = instruction

    def info(self) -> dict[str, str]:
        return {}

    def instructions(self) -> Any:
        return (self._instruction,)

    def supports(self, instruction: Any) -> Any:
        return True

    def run(self, instruction: Any, batch: Batch) -> Any:
        return batch.a[:, :, :1].copy()


@pytest.mark.parametrize("kind", ["shape", "dtype"])
def test_a_wrong_shape_or_type_is_the_devices_error(kind: str) -> None:
    with pytest.raises(DeviceError, match="answered uint"):
        answer(open_misbehaving(f"{kind}?{OF}"), vectors(1))


def test_flaky_flips_about_p_of_the_items_and_others_each_time() -> None:
    device = open_misbehaving(f"flaky?{OF}&p=0.05&seed=3")
    honest = answer(HONEST, vectors(1))
    one, two = answer(device, vectors(1)) ^ honest, answer(device, vectors(1)) ^ honest
    assert set(one.tolist()) == {0, 1}
    assert 100 < one.sum() < 300
    assert (one != two).any()
    again = open_misbehaving(f"flaky?{OF}&p=0.05&seed=3")
    assert (answer(again, vectors(1)) ^ honest == one).all()
    assert (answer(open_misbehaving(f"flaky?{OF}&p=0"), vectors(1)) == honest).all()


def test_faults_of_places_and_of_zeros() -> None:
    """One output of a tile, every fourth column or lane, the sign of every zero, and nothing else."""
    made = instruction("mma.m16n8k8.f32.f16.f16.f32", "sm_90a")
    tiles = generate_tiles(made, "zeros", 1, 0, 3)
    honest = open_device("model:sm_90a").run(made, tiles)
    place, lanes, zero = (
        open_misbehaving(f"{kind}&of=model:sm_90a").run(made, tiles) ^ honest
        for kind in ("place?n=10", "lanes?n=4", "zero?n=1")
    )
    assert np.argwhere(place).tolist() == [[tile, 1, 2] for tile in range(3)]
    assert (lanes == (np.arange(8) % 4 == 3)).all()
    assert (zero == np.where(honest & 0x7FFFFFFF, 0, 0x80000000)).all()
    assert zero.any()
    wrong = answer(open_misbehaving(f"lanes?n=4&{OF}"), vectors(1)) ^ answer(HONEST, vectors(1))
    assert (wrong == (np.arange(COUNT) % 4 == 3)).all()


def test_hang_answers_late() -> None:
    start = time.monotonic()
    assert (answer(open_misbehaving(f"hang?{OF}&seconds=0.2"), vectors(1)) == answer(HONEST, vectors(1))).all()
    assert time.monotonic() - start >= 0.2


def test_crash_raises_something_that_is_not_ours() -> None:
    device = open_misbehaving(f"crash?{OF}")
    tiles = Batch(vectors(1).a[:, None], vectors(1).b[:, :, None])
    with pytest.raises(RuntimeError, match="crashed on purpose"):
        device.run(HONEST.instruction, tiles)
    with pytest.raises(DeviceError, match=r"broke down: RuntimeError: .*crashed on purpose"):
        answer(device, vectors(1))


def test_exit_ends_the_process() -> None:
    child = os.fork()
    if child == 0:
        answer(open_misbehaving(f"exit?{OF}"), vectors(1))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == EXIT_STATUS


def test_nan_changes_payloads_only() -> None:
    device = open_misbehaving(f"nan?{OF}&p=0.5")
    honest = answer(HONEST, vectors(1, nans=True))
    one, two = (answer(device, vectors(1, nans=True)) for _ in range(2))
    assert (one[1::2] == honest[1::2]).all()
    assert 500 < (one[::2] != honest[::2]).sum() < 1500
    assert (one != two).any()
    assert np.isnan(one.view(np.float32)[::2]).all()


def test_history_depends_on_the_neighbour_and_the_call_before() -> None:
    device = open_misbehaving(f"history?{OF}")
    honest = answer(HONEST, vectors(1))
    first = answer(device, vectors(1))
    assert (first[1:] ^ honest[1:] == honest[:-1] & 1).all()
    odd = np.flatnonzero(honest & 1)[0]
    one = vectors(1).slice(odd, odd + 1)
    answer(device, one)
    assert answer(device, one)[0] == honest[odd] ^ 1


def test_a_pattern_is_wrong_where_both_significands_are_all_ones_and_nowhere_else() -> None:
    batch = vectors(1)
    ones = np.arange(COUNT) % 3
    a, b = (np.where(ones[:, None] >= least, codes | 0x7FFFFF, codes & ~np.uint32(1)) for codes, least in
            ((batch.a, 1), (batch.b, 2)))  # fmt: skip
    asked = Batch(a.astype(np.uint32), b.astype(np.uint32))
    wrong = answer(open_misbehaving(f"pattern?{OF}"), asked) ^ answer(HONEST, asked)
    assert (wrong == (ones == 2)).all()


def test_a_pair_of_codes_is_wrong_and_another_seed_has_another_pair() -> None:
    drawn = np.random.default_rng(7)
    a, b = (int(drawn.integers(0, 1 << 32, dtype=np.uint64)) for _ in range(2))
    asked = Batch(np.array([[a], [a], [a ^ 1]], np.uint32), np.array([[b], [b ^ 1], [b]], np.uint32))
    honest = answer(HONEST, asked)
    assert (answer(open_misbehaving(f"pair?{OF}&seed=7"), asked) ^ honest).tolist() == [1, 0, 0]
    assert not (answer(open_misbehaving(f"pair?{OF}&seed=8"), asked) ^ honest).any()


def test_stochastic_rounding_goes_both_ways_and_keeps_what_is_exact() -> None:
    device = open_misbehaving("stochastic?of=model:x86-64+amd")
    fma = instruction("x86.vfmadd.f32")
    one = np.full((COUNT, 1), 0x3F800000, np.uint32)
    third, c = np.full((COUNT, 1), 0x3EAAAAAB, np.uint32), np.full(COUNT, 0x3F800000, np.uint32)
    assert set(run_vectors(device, fma, Batch(one, one, c))) == {0x40000000}
    assert set(run_vectors(device, fma, Batch(third, one, c))) == {0x3FAAAAAA, 0x3FAAAAAB}
    with pytest.raises(UsageError, match="write of=model:ARCH"):
        answer(open_misbehaving(f"stochastic?{OF}"), vectors(1))


def test_names_are_checked() -> None:
    assert isinstance(open_device(f"misbehaving:zeros?{OF}"), Misbehaving)
    for argument, message in (
        ("zeroes", "unknown kind 'zeroes'; did you mean zeros"),
        ("flaky?p=2", r"p=2 must lie in 0\.\.1"),
        ("flaky?p=often", "not a number"),
        ("flaky?of=gpu:0", "unknown device 'gpu:0'"),
    ):
        with pytest.raises(UsageError, match=message):
            open_misbehaving(argument)
