"""What is said where nothing fits: the smallest counterexample, the closest datapath and what would repair it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.catalog import lookup
from mmaprobe.derivation import outside
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.disagreements import Disagreement, kinds
from mmaprobe.derivation.outside import disagreements, explain, mended, repairs
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.devices.replay import Replay, record
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import take
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import neighbours

HMMA = lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
HOPPER = open_device("model:sm_90a")
TRUE = datapath_for("sm_90a", HMMA)
SEEN = hard_vectors(HMMA, families_for(HMMA), 5, 3000)
A, B = int(SEEN.a[17, 2]), int(SEEN.b[17, 2])
SEEN.a[1000:1040, 2], SEEN.b[1020:1060, 2] = A, B
ANSWERS = run_vectors(HOPPER, HMMA, SEEN)


def test_a_wrong_number_is_what_repairs_everything() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    best, *others = repairs(closest, SEEN, ANSWERS)
    assert str(best) == f"tree.fraction_bits 24 -> 25 repairs {best.wrong} of {best.wrong}"
    assert best.wrong == int((DatapathDevice(HMMA, closest).run_vectors(HMMA, SEEN) != ANSWERS).sum()) > 100
    assert best.broken == 0
    assert others
    assert all(repair.repaired - repair.broken < best.repaired for repair in others)


def test_two_wrong_numbers_each_repair_their_share() -> None:
    closest = mutate(mutate(TRUE, "tree.fraction_bits", "24"), "tree.zero_exponent", "-132")
    found = {repair.field: repair for repair in reversed(repairs(closest, SEEN, ANSWERS))}
    bits, zero = found["tree.fraction_bits"], found["tree.zero_exponent"]
    assert (bits.value, zero.value) == ("25", "-133")
    assert bits.repaired > zero.repaired > 0
    assert bits.repaired < bits.wrong


def test_a_number_some_way_off_is_mended_at_once() -> None:
    """No change of another kind leads to the exponent of a zero that is eight away; eight at once leave none wrong."""
    true, start = (mutate(TRUE, "tree.zero_exponent", value) for value in ("-118", "-126"))
    assert mended(start, SEEN, evaluate(true, SEEN), Allowance(None)) == true


@pytest.fixture
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is mended."""
    monkeypatch.setattr(outside, "MENDING", 0)


@pytest.mark.usefixtures("as_it_is")
def test_the_counterexample_is_the_smallest() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    found = explain(HOPPER, HMMA, closest, (SEEN, ANSWERS), 1)
    proof = found.counterexample
    assert proof is not None
    assert sum(code != 0 for code in proof.a) <= 2
    assert found.repairs[0].repaired == found.repairs[0].wrong


@pytest.mark.usefixtures("as_it_is")
def test_a_recording_is_not_asked_for_more() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    device = Replay("replay:here", record(HOPPER, [(HMMA, SEEN)]), "model:sm_90a")
    found = explain(device, HMMA, closest, (SEEN, ANSWERS), 1)
    wrong = DatapathDevice(HMMA, closest).run_vectors(HMMA, SEEN) != ANSWERS
    assert found.counterexample is not None
    assert found.counterexample.a == tuple(take(SEEN, wrong.nonzero()[0][:1]).a[0].tolist())
    assert found.repairs[0].wrong == int(wrong.sum())


def said(wrong: NDArray[np.bool_]) -> list[tuple[tuple[str, ...], int]]:
    """The kinds of these vectors, with how many of each are wrong."""
    return [
        (tuple(fact.name for fact in kind.facts), int((kind.mask & wrong).sum()))
        for kind in kinds(HMMA, SEEN, ANSWERS, wrong)
    ]


SUBNORMAL_C = (SEEN.c & 0x7F80_0000 == 0) & (SEEN.c & 0x7F_FFFF != 0)
NEGATIVE = ANSWERS >> 31 == 1
NANS = ANSWERS & 0x7FFF_FFFF > 0x7F80_0000
ONE_PAIR = (SEEN.a[:, 2] == A) & (SEEN.b[:, 2] == B)


@pytest.mark.parametrize(("wrong", "facts"), [
    (SUBNORMAL_C, ("c is a subnormal",)),
    (SUBNORMAL_C & NEGATIVE, ("c is a subnormal", "the result is negative")),
    (NANS, ("the result is a NaN",)),
    (ONE_PAIR, (f"a in lane 2 is {A:#x}", f"b in lane 2 is {B:#x}")),
], ids=["subnormal c", "both", "NaN", "one pair"])  # fmt: skip
def test_what_all_wrong_vectors_have_in_common_is_said(wrong: NDArray[np.bool_], facts: tuple[str, ...]) -> None:
    [(names, count)] = said(wrong)
    assert set(names) == set(facts)
    assert count == wrong.sum() > 0


def test_kinds_that_have_nothing_to_do_with_each_other_are_told_apart() -> None:
    found = dict(said(SUBNORMAL_C | NANS))
    assert set(found) == {("c is a subnormal",), ("the result is a NaN",)}
    assert sum(found.values()) >= (SUBNORMAL_C | NANS).sum()


def test_wrong_vectors_without_anything_in_common_are_of_no_kind() -> None:
    every = np.random.default_rng(3).random(SEEN.size) < 0.1
    assert said(every)[-1][0] == ()
    assert said(every)[-1][1] > every.sum() / 2


def test_the_closest_is_mended_until_nothing_more_helps() -> None:
    closest = mutate(mutate(TRUE, "tree.fraction_bits", "24"), "tree.zero_exponent", "-132")
    assert mended(closest, SEEN, ANSWERS, Allowance()) == TRUE
    odd = ANSWERS ^ NEGATIVE  # the last bit of negative results
    path = mended(closest, SEEN, odd, Allowance())
    wrong = evaluate(path, SEEN) != odd
    assert all((evaluate(near.datapath, SEEN) != odd).sum() >= wrong.sum() for near in neighbours(path))


def test_what_is_left_after_mending_is_the_oddity() -> None:
    """A unit of which only negative NaNs of C are answered with another code."""
    closest, odd = mutate(TRUE, "tree.fraction_bits", "24"), np.where(NANS, np.uint32(0x7FC1_2345), ANSWERS)
    found = disagreements(HMMA, mended(closest, SEEN, odd, Allowance()), SEEN, odd, lambda number, _: witness(number))
    assert found.closest.tree == TRUE.tree
    assert [str(kind).partition(":")[0] for kind in found.kinds] == ["only where the result is a NaN"] * len(
        found.kinds
    )


def witness(number: int) -> Witness:
    return Witness.of(take(SEEN, [number]), int(ANSWERS[number]), "")


def test_a_kind_is_the_only_one_where_all_wrong_vectors_are_of_it() -> None:
    first = Disagreement(("c is a zero",), 3, 4, 3, witness(0))
    assert str(first) == "only where c is a zero: 3 of 4 such vectors are wrong, of 3 wrong in all"
    assert str(replace(first, among=5)).startswith("where c is a zero: 3 of 4")
    assert str(Disagreement((), 3, 3, 9, witness(0))).startswith("in 3 of 9 wrong vectors without a word")
