"""Vectors aimed at pairs: what they are made of, and what they tell apart that plain families do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.rivals import SHAPES, attack_vectors, places_of
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Fused
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.moves import MOVES
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import from_table

FORMS = {
    "hopper": ("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    "half": ("sm_70", "mma.m8n8k4.row.row.f16.f16.f16.f16"),
    "bf16": ("sm_80", "mma.m16n8k8.f32.bf16.bf16.f32"),
    "tree": ("gfx90a", "v_mfma_f32_32x32x4f16"),
    "cut once more": ("gfx942", "v_mfma_f32_32x32x4_2b_f16"),
    "fp8": ("sm_120a", "mma.m16n8k16.row.col.f16.e4m3.e4m3.f16"),
}


def test_places_are_the_numbers_of_both() -> None:
    arch, name = FORMS["hopper"]
    path = datapath_for(arch, instruction(name))
    found = places_of([path, mutate(path, "tree.fraction_bits", "27"), mutate(path, "tree.zero_exponent", "-140")])
    assert {23, 24, 25, 27} <= set(found.reach)
    assert set(found.zeros) == {-133, -140}
    assert {-126, -149} <= set(found.lows)
    assert 127 in found.highs


@pytest.mark.parametrize("form", FORMS)
def test_vectors_are_codes_and_repeat(form: str) -> None:
    arch, name = FORMS[form]
    made = instruction(name, arch)
    path = datapath_for(arch, made)
    first, again = (attack_vectors(made, path, [], 3, 1000) for _ in range(2))
    usual = len(SHAPES) - 1  # nothing reaches deep here
    assert first.size == -(-1000 // usual) * usual
    for role, fmt in made.formats().items():
        value = getattr(first, role, None)
        if value is not None:
            assert value.dtype == fmt.dtype
            assert int(value.max()) < fmt.code_limit
            np.testing.assert_array_equal(value, getattr(again, role))


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [
        ("hopper", "tree.fraction_bits", "26"),
        ("hopper", "tree.fraction_bits", "none"),
        ("hopper", "tree.rounding", "RNE"),
        ("half", "tree.zero_exponent", "-18"),
        ("bf16", "tree.zero_exponent", "-131"),
        ("bf16", "tree.zero_exponent", "-133"),
        ("fp8", "product.label", "normalised"),
        ("tree", "tree.y.to.rounding", "RNO"),
        ("tree", "tree.to.rounding", "RZ"),
        ("cut once more", "tree.to.first", "none"),
    ],
)
def test_a_pair_is_told_apart(form: str, field: str, value: str) -> None:
    arch, name = FORMS[form]
    made = instruction(name, arch)
    path = datapath_for(arch, made)
    rival = mutate(path, field, value)
    answers = evaluate_many([path, rival], attack_vectors(made, path, [rival], 1, 16_000))
    assert (answers[0] != answers[1]).any()


SMALL = {
    "a": "e5m2fnuz", "b": "e5m2fnuz", "c": "f32", "d": "f16", "k": 2,
    "tree": {
        "node": "fused", "terms": ["c", "0"], "fraction_bits": 23, "rounding": "RNZ", "zero_exponent": -47,
        "to": {"format": "bf16", "rounding": "RZ"},
    },
    "step": 1,
    "operand_b": {"subnormals": "zero"},
    "result": {"format": "f16", "rounding": "RU", "overflow": "largest", "subnormals": "zero"},
}  # fmt: skip
"""Where every small result is a zero: its sign alone says where the last kept bit of a zero is."""


def test_a_sign_alone_tells_a_zero_exponent() -> None:
    path = from_table(SMALL, "small")
    rival = mutate(path, "tree.zero_exponent", "-48")
    made = replace(instruction(FORMS["hopper"][1]), a=path.a, b=path.b, c=path.c, d=path.d, k=2)
    for seed in range(4):
        true, other = evaluate_many([path, rival], attack_vectors(made, path, [rival], seed, 16_000))
        assert (true != other).any()


@pytest.mark.parametrize("name", ["v_mfma_f32_32x32x4f16", "v_mfma_f32_32x32x2bf16"])
def test_a_sum_that_keeps_every_bit_is_told_from_any_that_is_cut(name: str) -> None:
    """Cut at the depth of the first neighbour some vectors differ; with one bit more none does, of very many."""
    made = instruction(name, "gfx908")
    path = datapath_for("gfx908", made)
    cuts = [each for value, each in MOVES["cut"](path) if value.startswith("what is uncut with c at ")]
    deepest = cuts[0]
    assert isinstance(deepest.tree, Fused)
    one_more = replace(deepest, tree=replace(deepest.tree, terms=tuple(
        replace(term, fraction_bits=(term.fraction_bits or 0) + 1) for term in deepest.tree.terms
    )))  # fmt: skip
    vectors = attack_vectors(made, path, cuts, 5, 40_000)
    true, *others, deeper = evaluate_many([path, *cuts, one_more], vectors)
    assert all((each != true).any() for each in others)
    assert (deeper == true).all()
