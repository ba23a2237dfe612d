"""Vectors aimed at pairs: what they are made of, and what they tell apart that plain families do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.rivals import MORE, SHAPES, attack_vectors, places_of
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Datapath, Fused
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
    "two of f16": ("gfx1200", "v_dot2_f16_f16"),
    "two of bf16": ("gfx1200", "v_dot2_bf16_bf16"),
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
    # nothing reaches deep, no last conversion hides steps; there is c, and there are no scales; seldom two lanes
    usual = len(SHAPES) - 4 - (made.k > 2)
    assert first.size == -(-1000 // usual) * (usual + MORE["tails"] + MORE["alone"] - 2)
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
        ("two of f16", "tree.terms.0.of.zero_exponent", "-14"),
        ("two of bf16", "tree.terms.0.terms.1.zero_exponent", "-127"),
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
    assert_told(path, rival, 16_000)


ZERO_SIGNS = {
    "a flushed operand's": (
        {
            "a": "e5m2fnuz", "b": "e5m2fnuz", "c": "bf16", "d": "bf16", "k": 37,
            "tree": {"node": "fma", "acc": "c", "lanes": "0", "to": {"format": "bf16", "rounding": "RNO"}},
            "step": 1, "operand_b": {"subnormals": "zero"},
        },
        "operand_b.subnormals", "signed_zero",
    ),
    "a sum's of products that underflow": (
        {
            "a": "e4m3fnuz", "b": "e5m2fnuz", "c": "f16", "d": "f16", "k": 16,
            "tree": {
                "node": "add", "y": "c", "to": {"format": "f16", "rounding": "RZ"},
                "x": {"node": "fma", "acc": "zero", "lanes": "0", "to": {"format": "f16", "rounding": "RZ"}},
            },
            "step": 1, "product": {"to": {"format": "f32", "first": "3 RNE"}},
        },
        "tree.to.zero", "positive",
    ),
}  # fmt: skip
"""Where the sign of a zero shows only if every product is a zero of one sign, or tiny and of one sign."""


@pytest.mark.parametrize("whose", ZERO_SIGNS)
def test_the_sign_of_a_zero_is_told_where_all_products_are_zeros_of_one_sign(whose: str) -> None:
    table, field, value = ZERO_SIGNS[whose]
    path = from_table(table, whose)
    assert_told(path, mutate(path, field, value), 16_000)


def test_the_label_of_two_subnormals_is_told_by_the_last_bit_of_what_cancels_them() -> None:
    """One product and c: where these cancel but for the last bit of c, it is cut by one label and kept by the other."""
    table = {
        "a": "e2m3", "b": "e4m3", "c": "f64", "d": "f64", "k": 1,
        "tree": {"node": "fused", "terms": ["c", "0"], "fraction_bits": 53, "to": {"format": "f64", "rounding": "RND"}},
    }  # fmt: skip
    path = from_table(table, "one product")
    assert_told(path, mutate(path, "product.label", "operands"), 8_000)


def test_a_chain_is_told_from_one_that_is_cut_by_a_product_that_ties_beside_the_smallest() -> None:
    """A sum so far of the smallest products decides a tie that the next product makes with its own bits."""
    to = {"format": "bf16", "first": "3 RNZ"}
    table = {
        "a": "f32", "b": "f32", "c": "bf16", "d": "bf16", "k": 4,
        "tree": {"node": "add", "x": {"node": "fma", "acc": "zero", "lanes": "0..3", "to": to}, "y": "c", "to": to},
        "product": {"to": {"format": "f16", "rounding": "RNU", "subnormals": "signed_zero"}},
    }  # fmt: skip
    path = from_table(table, "a chain")
    assert_told(path, mutate(path, "cut", "what is uncut without c at 18 bits RZ"), 120_000)


SCALED = {
    "a": "e5m2", "b": "e5m2", "c": "f32", "d": "f16", "k": 48, "scale": {"format": "ue4m3", "size": 16},
    "tree": {"node": "add", "x": "c", "to": {"format": "f16", "rounding": "RZ"}, "y": {
        "node": "fused", "terms": ["0..47"], "fraction_bits": 69, "to": {"format": "f16", "rounding": "RZ"},
    }},
}  # fmt: skip


def test_a_deep_cut_is_told_where_products_of_blocks_far_apart_cancel() -> None:
    """Products of one pair of scales lie 62 bits apart at most, those of two pairs 96: f16 shows a bit of 2**-24 where
    two of 2**46 cancel."""
    path = from_table(SCALED, "a sum of three scale blocks")
    others = {name: cut for name, cut in MOVES["cut"](path) if name.startswith("what is cut at 69")}
    assert list(others) == [f"what is cut at 69 bits at {bits}" for bits in (67, 65, 61, 71, 73, 77)]
    for cut in others.values():
        assert_told(path, cut, 6_000)


@pytest.mark.parametrize("operand", ["a", "b"])
def test_the_sign_of_a_flushed_factor_is_told_behind_a_sum_that_became_a_zero(operand: str) -> None:
    """c is flushed to +0 first, so a sum must become -0 of itself before only zeros follow."""
    made = instruction("v_mfma_f32_16x16x16bf16_1k", "gfx90a")
    path = datapath_for("gfx90a", made)
    kept = mutate(path, f"operand_{operand}.subnormals", "signed_zero")
    for seed in range(3):
        true, other = evaluate_many([path, kept], attack_vectors(made, path, [kept], seed, 48_000))
        assert (true != other).any()


def test_a_zero_of_either_sign_meets_factors_that_are_none() -> None:
    made = instruction(FORMS["hopper"][1])
    vectors = attack_vectors(made, datapath_for("sm_90a", made), [], 1, 2_000)
    for zero, other in ((vectors.a, vectors.b), (vectors.b, vectors.a)):
        beside = (other & 0x7FFF) != 0
        assert ((zero == 0x8000) & beside).sum() > 200
        assert ((zero == 0) & beside).sum() > 200


def test_scales_have_digits_too() -> None:
    path = from_table(SCALED, "a sum of three scale blocks")
    vectors = attack_vectors(form_of(path), path, [], 1, 4_000)
    for scales in (vectors.scale_a, vectors.scale_b):
        assert scales is not None
        assert ((scales > 7) & (scales & 7 != 0)).mean() > 0.05


SEEN_SELDOM = {
    "a tie at the top of the range": (
        {"a": "e2m1", "b": "e2m1", "c": "f32", "d": "f32", "k": 4,
         "tree": {"node": "exact", "terms": ["c", "0..3"], "to": {"format": "f32", "first": "21 RNZ"}},
         "result": {"format": "f32", "overflow": "largest", "first": "7 RA"}},
        "tree.to.first", "21 RNE"),
    "c far below products that cancel": (
        {"a": "f32", "b": "f32", "c": "f16", "d": "f16", "k": 21, "step": 7,
         "tree": {"node": "fused", "fraction_bits": 38, "to": {"format": "f16", "overflow": "largest"}, "terms": [
             {"of": "c", "fraction_bits": 38, "rounding": "RNU"},
             {"of": "0..6", "fraction_bits": 37, "rounding": "RNZ"}]}},
        "tree.terms.0.fraction_bits", "39"),
    "a subnormal product and the last bit of c": (
        {"a": "e5m2", "b": "e2m1", "c": "bf16", "d": "bf16", "k": 23, "step": 1,
         "operand_c": {"subnormals": "signed_zero"},
         "tree": {"node": "fma", "acc": "c", "lanes": "0", "to": {"format": "bf16"}}},
        "cut", "what is uncut with c at 17 bits RZ"),
    "a zero behind a sum that the least scales let vanish": (
        {"a": "e2m3", "b": "e4m3", "c": "f16", "d": "f16", "k": 32, "scale": {"format": "ue4m3", "size": 16},
         "tree": {"node": "add", "x": "c", "to": {"format": "f16", "rounding": "RZ"}, "y": {
             "node": "fused", "fraction_bits": 20, "rounding": "RNU", "to": {"format": "f16", "rounding": "RZ"},
             "terms": [
                 {"of": {"node": "fused", "terms": ["zero", "0..15"], "fraction_bits": 20, "rounding": "RNU",
                         "to": {"format": "f16", "rounding": "RZ"}}},
                 {"of": "16..31"}]}}},
        "tree.y.to.zero", "positive"),
    "a tie of the first step that the last conversion hides": (
        {"a": "e3m2", "b": "e3m2", "c": "bf16", "d": "bf16", "k": 32, "step": 2,
         "tree": {"node": "fused", "terms": ["c", "0,1"], "fraction_bits": 52, "to": {"format": "f16"}},
         "result": {"format": "bf16", "rounding": "RND"}},
        "tree.fraction_bits", "53"),
    "the last bits of the smallest products of a scale block": (
        {"a": "e4m3", "b": "e4m3", "c": "f64", "d": "f64", "k": 48, "step": 16,
         "scale": {"format": "ue5m3", "size": 16}, "tree": {
             "node": "add", "x": "c", "to": {"format": "bf16", "rounding": "RZ"}, "y": {
                 "node": "fused", "terms": ["0..15"], "fraction_bits": 60,
                 "to": {"format": "bf16", "rounding": "RZ"}}}},
        "cut", "what is uncut without c at 39 bits RZ"),
    "what is more than half of a last kept bit, beside a tie": (
        {"a": "e2m3", "b": "e4m3", "c": "f32", "d": "f32", "k": 16, "product": {"label": "operands"}, "tree": {
            "node": "fused", "fraction_bits": 33, "to": {"rounding": "RNA", "subnormals": "zero"}, "terms": [
                {"of": "c", "fraction_bits": 33, "rounding": "RNE"},
                {"of": "0..15", "fraction_bits": 35, "rounding": "RNA"}]}},
        "tree.terms.1", '{ of = "0..15", fraction_bits = 36, rounding = "RNE" }'),
    "a product that is a tie at a last kept bit and cancels": (
        {"a": "f32", "b": "f32", "c": "bf16", "d": "bf16", "k": 16, "step": 1, "tree": {
            "node": "fused", "terms": ["c", "0"], "fraction_bits": 40, "rounding": "RNU",
            "to": {"format": "bf16", "rounding": "RNU"}}},
        "tree.rounding", "RNE"),
    "the last bit of a product, all else of which another takes away, beside a tie": (
        {"a": "e2m3", "b": "e3m2", "c": "f16", "d": "f16", "k": 8, "step": 4, "operand_a": {"subnormals": "zero"},
         "operand_b": {"subnormals": "zero"},
         "tree": {"node": "fused", "terms": ["c", "0..3"], "fraction_bits": 20, "to": {"format": "f16"}}},
        "tree.terms.1.fraction_bits", "21"),
    "a last place of c that the last product leaves, where no product is subnormal": (
        {"a": "e3m2", "b": "e2m3", "c": "f16", "d": "f16", "k": 6, "step": 1, "operand_a": {"subnormals": "zero"},
         "tree": {"node": "fma", "acc": "c", "lanes": "0", "to": {
             "format": "f16", "subnormals": "zero", "zero": "positive"}}},
        "tree.to.subnormals", "signed_zero"),
    "the last bit of a product beside many equal ones that add up": (
        {"a": "e2m3", "b": "e4m3", "c": "f32", "d": "f16", "k": 58, "step": 29, "operand_a": {"subnormals": "zero"},
         "operand_b": {"subnormals": "zero"}, "operand_c": {"subnormals": "zero"},
         "tree": {"node": "add", "x": "c", "to": {"format": "f16", "rounding": "RZ"}, "y": {
             "node": "exact", "terms": ["0..28"], "to": {"format": "f16", "rounding": "RZ"}}}},
        "cut", "what is uncut without c at 21 bits RZ"),
    "the lowest bit of a product beside the largest that cancel, where it is never alone": (
        {"a": "e5m2", "b": "e4m3", "c": "f16", "d": "bf16", "k": 37, "operand_b": {"subnormals": "zero"},
         "operand_c": {"subnormals": "zero"},
         "tree": {"node": "exact", "terms": ["c", "0..36"], "to": {"format": "bf16", "rounding": "RNU"}}},
        "cut", "what is uncut with c at 47 bits RZ"),
    "half of a last place below the lowest normal number, which no product is as low as": (
        {"a": "e3m2", "b": "e3m2", "c": "f32", "d": "f32", "k": 22, "step": 2, "product": {"label": "operands"},
         "tree": {"node": "fused", "terms": ["c", "0,1"], "fraction_bits": 54,
                  "to": {"format": "e8m13", "subnormals": "zero", "zero": "positive"}}},
        "tree.to.tininess", "encoded"),
    "the last place of a c just below a power of two, which one of the lowest products takes away": (
        {"a": "e2m1", "b": "e3m2", "c": "f16", "d": "f16", "k": 55, "operand_a": {"subnormals": "zero"},
         "operand_c": {"subnormals": "zero"},
         "tree": {"node": "exact", "terms": ["c", "0..54"], "to": {"format": "f16", "rounding": "RNZ"}}},
        "tree.to.subnormals", "zero"),
    "a tie of a sum of sums, and far below it what one of those cuts": (
        {"a": "e5m2", "b": "e4m3", "c": "f32", "d": "f32", "k": 4, "tree": {
            "node": "fused", "fraction_bits": 15, "rounding": "RNE", "to": {"rounding": "RU"}, "terms": [
                "c", {"of": {"node": "fused", "terms": ["0,2"], "fraction_bits": 32, "rounding": "RNO"}},
                {"of": {"node": "fused", "terms": ["1,3"], "fraction_bits": 32, "rounding": "RNO"}}]}},
        "tree.terms.1.of.rounding", "RZ"),
    "products that are cut under a large c, of which only sums of several come to half of its last place": (
        {"a": "e2m3", "b": "e2m1", "c": "bf16", "d": "bf16", "k": 3, "operand_a": {"subnormals": "zero"}, "tree": {
            "node": "fused", "fraction_bits": 13, "to": {"format": "bf16", "rounding": "RND", "zero": "positive"},
            "terms": [{"of": "c", "fraction_bits": 43}, {"of": "0..2", "fraction_bits": 13, "rounding": "RU"}]}},
        "tree.terms.1", '{ of = "0..2", fraction_bits = 43 }'),
    "the sign of a c that vanishes, where no zero is negative but that of the lowest products": (
        {"a": "e4m3fnuz", "b": "e5m2fnuz", "c": "f32", "d": "f32", "k": 37, "step": 1,
         "product": {"to": {"format": "f16", "rounding": "RZ", "zero": "positive"}}, "tree": {
             "node": "fused", "terms": ["c", "0"], "fraction_bits": 41, "to": {
                 "rounding": "RNE", "subnormals": "signed_zero", "underflow": "positive", "first": "6 RNE"}}},
        "tree.to.underflow", "signed"),
    "a product cut far below what the products before it add up to, where there is no c": (
        {"a": "e2m1", "b": "e3m2", "c": "none", "d": "f16", "k": 29, "step": 1,
         "operand_a": {"subnormals": "signed_zero"}, "tree": {
             "node": "fused", "terms": ["c", "0"], "fraction_bits": 14, "rounding": "RNE",
             "to": {"format": "f16", "rounding": "RNE", "zero": "positive"}}},
        "tree.rounding", "RZ"),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEN_SELDOM)
def test_what_few_vectors_show_is_told(name: str) -> None:
    """Each was the difference between a claim and the truth, met in one of 9,600 vectors made from the truth, or in a
    few of 480,000."""
    table, field, value = SEEN_SELDOM[name]
    path = from_table(table, name)
    assert_told(path, mutate(path, field, value), 16_000)


def test_many_equal_products_have_a_shape_of_their_own() -> None:
    """Other shapes meet the last bit beside them now and then: a third as often."""
    table, field, value = SEEN_SELDOM["the last bit of a product beside many equal ones that add up"]
    path = from_table(table)
    rival, told = mutate(path, field, value), 0
    for seed in range(6):
        true, other = evaluate_many([path, rival], attack_vectors(form_of(path), path, [rival], seed, 16_000))
        told += int((true != other).sum())
    assert told >= 16


def test_each_kind_of_term_is_cut_alone() -> None:
    """Where c and the products are cut alike each is tried a bit higher and lower without the other, and told."""
    path = datapath_for("sm_90a", instruction(FORMS["hopper"][1]))
    alone = {name: cut for name, cut in MOVES["cut"](path) if " alone at " in name}
    assert sorted(alone) == [f"{kind} alone at {bits} bits" for kind in ("c", "products") for bits in (24, 26)]
    for other in alone.values():
        assert_told(path, other, 24_000)


def form_of(path: Datapath) -> Instruction:
    """A form with the formats of a datapath."""
    made = replace(instruction(FORMS["hopper"][1]), a=path.a, b=path.b, c=path.c, d=path.d, k=path.k)
    return made if path.scale is None else replace(made, scale=path.scale.format, scale_size=path.scale.size)


def assert_told(path: Datapath, rival: Datapath, count: int) -> None:
    """Vectors aimed at the two tell them apart, whatever the seed."""
    made = form_of(path)
    for seed in range(4):
        true, other = evaluate_many([path, rival], attack_vectors(made, path, [rival], seed, count))
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
    vectors = attack_vectors(made, path, cuts, 5, 20_000)
    true, *others, deeper = evaluate_many([path, *cuts, one_more], vectors)
    assert all((each != true).any() for each in others)
    assert (deeper == true).all()
