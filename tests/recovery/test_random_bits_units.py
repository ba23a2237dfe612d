"""Units with random bits in plain integers, derived blind and judged by 48,000 vectors of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_bits_units import INSIDE, OUTSIDE, UnitWithRandomBits
from test_plain_units import judged

from mmaprobe.derivation import Derivation, derive
from mmaprobe.devices.base import run_vectors
from mmaprobe.models.engine import evaluate, evaluate_many
from mmaprobe.operands.batch import Batch, Witness, join
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.mutate import mutate
from mmaprobe.report.datapath.meaning import meaning

FRESH = 4000
"""Fresh vectors of a derivation: a unit in plain integers answers 40,000 a second."""
SAID = {
    "last_thirteen": "to f16 stochastically by the 13 lowest bits of r, else truncated",
    "every_step": "to f32 stochastically by the 6 highest bits of r, else truncated",
    "deaf": "r, a u8 of random bits, is not read",
}


def hostile(of: tuple[str, str, int, str], count: int = 48_000) -> Batch:
    """The judge's vectors of ``plain_units``, with any random bits, and none, all or one of them."""
    bits = int(of[3][1:])
    rng = np.random.default_rng(5)
    vectors = join([judged(of[:3], seed) for seed in range(4)]).slice(0, count)
    r = rng.integers(0, 1 << bits, vectors.size)
    corner = rng.integers(0, 5, vectors.size)
    r = np.choose(np.minimum(corner, 3), [np.zeros_like(r), np.full_like(r, (1 << bits) - 1), 1 << r % bits, r])
    return replace(vectors, random=r.astype(f"u{bits // 8}"))


def derived(name: str) -> tuple[UnitWithRandomBits, tuple[str, str, int, str], Derivation]:
    unit, of = (INSIDE | OUTSIDE)[name]
    device = UnitWithRandomBits(unit, of)
    return device, of, derive(device, device.instruction, fresh=FRESH)


@pytest.mark.parametrize("name", INSIDE)
def test_a_unit_is_recovered_with_a_witness_against_every_neighbour(name: str) -> None:
    device, of, found = derived(name)
    assert found.status == "exact", found.reason
    assert found.datapath is not None
    vectors = hostile(of)
    assert vectors.size == 48_000
    wrong = evaluate(found.datapath, vectors) != device.run_vectors(device.instruction, vectors)
    assert not wrong.any(), (wrong.sum(), found.datapath)
    assert SAID[name] in meaning(found.datapath)
    fields = set()
    for entry in found.certificate.entries:
        if entry.witness is not None:
            fields.add(entry.field.rpartition(".")[2])
            assert_refutes(device, found.datapath, entry.field, entry.value, entry.witness)
    assert fields >= ({"random_bits"} if name == "deaf" else {"random_bits", "random_from", "rounding"})


def assert_refutes(device: UnitWithRandomBits, path: Datapath, field: str, value: str, witness: Witness) -> None:
    """The device answers the witness as it says, the datapath does, and the neighbour does not."""
    vector = as_vectors(device.instruction, [witness])
    d = run_vectors(device, device.instruction, vector)
    assert d.tolist() == [witness.d]
    ours, theirs = evaluate_many([path, mutate(path, field, value)], vector)
    assert ours == d != theirs


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_no_rounding_by_random_bits_does_is_refused(name: str) -> None:
    *_, found = derived(name)
    assert found.status == "inconclusive"
    assert found.reason == "no rounding by some of its random bits does what the unit does with them"
    assert found.datapath is None
    assert found.closest is not None
    assert found.counterexample is not None
    assert found.counterexample.random
    assert name != "flipping" or "the lowest random bit is set" in str(found.kinds[0])
