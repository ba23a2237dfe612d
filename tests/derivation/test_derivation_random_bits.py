"""Roundings by random bits, derived: every place of a rounding, sparse and negating units, and what ends without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation import derive
from mmaprobe.derivation.random_bits import hypotheses
from mmaprobe.derivation.recording import read
from mmaprobe.derivation.vectors.mixtures import (
    cancelled_vectors,
    edge_vectors,
    hard_vectors,
    mixed_vectors,
    special_vectors,
)
from mmaprobe.derivation.vectors.near_carries import near_carries
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch, Bits, check_vectors
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fused,
    Node,
    Product,
    Products,
    Special,
)
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.rewrite import encodes, map_encodes
from mmaprobe.probing.suite import probe

MADE = Instruction("drawn.dot4", "drawn.dot4", "drawn", 4, 4, 4, "bf16", "bf16", "f32", "f32", random="u16")
RZ = Encode(rounding="RZ")
LANES = Products((0, 1, 2, 3))


def unit(tree: Node, product: Product = Product(), made: Instruction = MADE, **fields: Any) -> DatapathDevice:  # noqa: B008
    path = Datapath(
        made.a, made.b, made.c, made.d, made.k, tree, product=product, special=Special(code=0x7FC00000),
        random=made.random, **fields,
    )  # fmt: skip
    return DatapathDevice(made, path)


UNITS = {
    "the result": unit(Fused.alike((LANES, Accumulator()), 25, "RZ", -133, replace(RZ, random_bits=5))),
    "all sixteen": unit(Exact((LANES, Accumulator()), replace(RZ, random_bits=16))),
    "the inner sum": unit(
        Add(
            Exact((LANES,), replace(RZ, random_bits=7, random_from="highest")),
            Accumulator(),
            replace(RZ, rounding="RNE"),
        )
    ),
    "the outer sum": unit(Add(Exact((LANES,), RZ), Accumulator(), replace(RZ, random_bits=9))),
    "both": unit(Add(Exact((LANES,), replace(RZ, random_bits=9)), Accumulator(), replace(RZ, random_bits=9))),
    "a rounding to nearest": unit(Exact((LANES, Accumulator()), Encode(random_bits=3))),
    "nothing": unit(Exact((LANES, Accumulator()), RZ)),
}


@pytest.mark.parametrize("name", UNITS)
def test_whatever_rounds_by_random_bits_is_found(name: str) -> None:
    device = UNITS[name]
    found = derive(device, MADE, fresh=20_000)
    assert found.datapath is not None, found.reason
    assert found.status in ("exact", "bounded")
    for vectors in (hard_vectors(MADE, families_for(MADE), 99, 20_000), near_carries(MADE, [23], 17, 99, 5000)):
        assert (evaluate(found.datapath, vectors) == evaluate(device.datapath, vectors)).all()
    taken = [(to.random_bits, to.random_from) for to in encodes(found.datapath)]
    assert taken == [(to.random_bits, to.random_from) for to in encodes(device.datapath)]
    answers = run_vectors(device, MADE, as_vectors(MADE, found.witnesses))
    assert answers.tolist() == [each.d for each in found.witnesses]


def test_it_goes_on_from_what_is_known() -> None:
    device = UNITS["both"]
    findings = probe(device, MADE, ["summation_tree"])
    first = derive(device, MADE, fresh=2000, findings=findings)
    again = derive(device, MADE, fresh=2000, findings=first.findings, start=first.datapath)
    assert again.datapath == first.datapath is not None
    assert all(witness.random == 0 for finding in again.findings.values() for witness in finding.witnesses)


def test_the_hypotheses_are_every_number_of_bits_from_either_end_at_some_roundings() -> None:
    path = UNITS["both"].datapath
    every = list(hypotheses(map_encodes(path, lambda to: replace(to, random_bits=0)), "u8"))
    assert len(every) == len(set(every)) == 1 + 3 * 15  # of one, the other, or both roundings: 8 bits and 7 twice
    assert every[0].most_random_bits == 0
    assert {each.random for each in every} == {"u8"}


def test_a_sparse_unit_is_asked_as_a_dense_one() -> None:
    made = instruction("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90a")
    drawing = replace(made, random="u8")
    path = replace(datapath_for("sm_90a", made), random="u8")
    path = map_encodes(path, lambda to: replace(to, rounding="RZ", random_bits=6))
    device = DatapathDevice(drawing, path)
    found = derive(device, drawing, fresh=2000)
    assert found.datapath is not None, found.reason
    assert [to.random_bits for to in encodes(found.datapath)] == [6]
    shown = as_vectors(drawing, found.witnesses)
    assert shown.metadata is not None
    assert shown.random is not None
    assert run_vectors(device, drawing, shown).tolist() == [each.d for each in found.witnesses]


class Unsteady:
    """A unit of which the lowest random bit is answered by chance."""

    name, concurrent = "unsteady", False

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)

    def info(self) -> dict[str, str]:
        return {}

    def run_vectors(self, made: Instruction, vectors: Batch) -> Bits:
        d = UNITS["the result"].run_vectors(MADE, vectors)
        assert vectors.random is not None
        noise = (vectors.random & 1).astype(bool) & (self.rng.random(vectors.size) < 0.5)
        found: Bits = d ^ noise.astype(d.dtype)
        return found


def test_answers_that_change_with_random_bits_end_it() -> None:
    found = derive(Unsteady(), MADE, fresh=2000)  # type: ignore[arg-type]
    assert found.status == "inconclusive"
    assert "do not repeat" in found.reason
    assert found.counterexample is not None
    assert (found.counterexample.random or 0) & 1


def test_an_allowance_covers_both_parts() -> None:
    found = derive(UNITS["both"], MADE, fresh=2000)
    plain = dict(found.spent.stages)
    assert plain.pop("random bits") > 0
    short = derive(
        UNITS["both"], MADE, fresh=2000, allowance=found.spent.total - plain["neighbours and fresh vectors"] // 4
    )
    assert short.status == "inconclusive"
    assert short.datapath is None
    assert "(--allowance)" in short.reason


@pytest.mark.long
def test_what_is_wrong_without_random_bits_is_said_first() -> None:
    class Odd:
        name, concurrent = "odd", False

        def info(self) -> dict[str, str]:
            return {}

        def run_vectors(self, made: Instruction, vectors: Batch) -> Bits:
            d = UNITS["the result"].run_vectors(MADE, vectors)
            found: Bits = d ^ ((vectors.a[:, 1] & 0x7F) > 0x70).astype(d.dtype)
            return found

    found = derive(Odd(), MADE, fresh=2000, allowance=60_000_000)  # type: ignore[arg-type]
    assert found.status == "inconclusive"
    assert found.reason.startswith("without random bits: ")
    assert found.closest is None or found.closest.random == "u16"
    assert found.counterexample is None or found.counterexample.random == 0


def test_vectors_of_every_maker_have_random_bits() -> None:
    assert can_attack(MADE)
    path = UNITS["both"].datapath
    for vectors in (
        mixed_vectors(MADE, 1, 400), special_vectors(MADE, 1, 50), edge_vectors(MADE, 1, 50),
        cancelled_vectors(MADE, 1, 50), attack_vectors(MADE, path, [path], 1, 200),
        near_carries(MADE, [7, 23], 17, 1, 50),
    ):  # fmt: skip
        check_vectors(MADE, vectors)
        assert vectors.random is not None
        assert len(set(vectors.random.tolist())) > 10


def test_near_carries_meet_ties_and_what_is_a_bit_away_from_a_carry() -> None:
    vectors = near_carries(MADE, [23], 17, 3, 4000)
    exact = DatapathDevice(
        replace(MADE, d="f64", random=None),
        Datapath("bf16", "bf16", "f32", "f64", 4, Exact((LANES, Accumulator()), Encode("f64", "RO")),
                 special=Special(code=0x7FF8 << 48)),
    )  # fmt: skip
    d = exact.run_vectors(exact.instruction, replace(vectors, random=None))
    below = (d >> np.uint64(29 - 17)) & np.uint64(0x1FFFF)  # 17 bits below the last place of f32
    assert formats.get("f64").fraction_bits - formats.get("f32").fraction_bits == 29
    for bits in (0x1FFFF, 1, 0x10000, 0x1FFFE):
        assert (below == bits).sum() > 3, hex(bits)


def test_a_recording_of_them_is_not_read() -> None:
    device = UNITS["the result"]
    vectors = hard_vectors(MADE, families_for(MADE), 1, 100)
    with pytest.raises(UsageError, match="takes random bits; a recording does not say what it does without"):
        read("none", MADE, vectors, device.run_vectors(MADE, vectors))
