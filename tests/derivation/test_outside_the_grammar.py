"""What is said where nothing fits: the smallest counterexample, the closest datapath and what would repair it."""

from __future__ import annotations

from mmaprobe.catalog import lookup
from mmaprobe.derivation.outside import explain, repairs
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.devices.replay import Replay, record
from mmaprobe.generators import families_for
from mmaprobe.operands.batch import take
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate

HMMA = lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
HOPPER = open_device("model:sm_90a")
TRUE = datapath_for("sm_90a", HMMA)
SEEN = hard_vectors(HMMA, families_for(HMMA), 5, 3000)
ANSWERS = run_vectors(HOPPER, HMMA, SEEN)


def test_a_wrong_number_is_what_repairs_everything() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    best, *others = repairs(HMMA, closest, SEEN, ANSWERS)
    assert str(best) == f"tree.fraction_bits 24 -> 25 repairs {best.wrong} of {best.wrong}"
    assert best.wrong == int((DatapathDevice(HMMA, closest).run_vectors(HMMA, SEEN) != ANSWERS).sum()) > 100
    assert best.broken == 0
    assert others
    assert all(repair.repaired - repair.broken < best.repaired for repair in others)


def test_two_wrong_numbers_each_repair_their_share() -> None:
    closest = mutate(mutate(TRUE, "tree.fraction_bits", "24"), "tree.zero_exponent", "-132")
    found = {repair.field: repair for repair in reversed(repairs(HMMA, closest, SEEN, ANSWERS))}
    bits, zero = found["tree.fraction_bits"], found["tree.zero_exponent"]
    assert (bits.value, zero.value) == ("25", "-133")
    assert bits.repaired > zero.repaired > 0
    assert bits.repaired < bits.wrong


def test_the_counterexample_is_the_smallest() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    found = explain(HOPPER, HMMA, closest, (SEEN, ANSWERS), 1)
    proof = found.counterexample
    assert proof is not None
    assert sum(code != 0 for code in proof.a) <= 2
    assert found.repairs[0].repaired == found.repairs[0].wrong


def test_a_recording_is_not_asked_for_more() -> None:
    closest = mutate(TRUE, "tree.fraction_bits", "24")
    device = Replay("replay:here", record(HOPPER, [(HMMA, SEEN)]), "model:sm_90a")
    found = explain(device, HMMA, closest, (SEEN, ANSWERS), 1)
    wrong = DatapathDevice(HMMA, closest).run_vectors(HMMA, SEEN) != ANSWERS
    assert found.counterexample is not None
    assert found.counterexample.a == tuple(take(SEEN, wrong.nonzero()[0][:1]).a[0].tolist())
    assert found.repairs[0].wrong == int(wrong.sum())
