"""What a single product tells of operands in parts: which parts, how they are rounded, which products are added."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import roles
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.search.single_terms import fit_alone
from mmaprobe.derivation.vectors.plain import single_vectors
from mmaprobe.models.engine import evaluate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fma, Fused, Product, Products, Split

FORM = Instruction("test.f32", "test.f32", "test", 16, 8, 4, "f32", "f32", "f32", "f32")
TREE = Fused.alike((Accumulator(), Products((0, 1, 2, 3))), 26, "RZ", None, Encode("f32", "RNE"))
SPLITS = {
    "bf16x6": Split("bf16", ("00", "01", "10", "02", "11", "20")),
    "bf16x3, truncated": Split("bf16", ("00", "01", "10"), "RZ"),
    "3xTF32": Split("tf32", ("10", "01", "00"), "RNA", "apart"),
    "rounded to bf16": Split("bf16", ("00",)),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_single_product_tells_its_parts(name: str) -> None:
    path = Datapath("f32", "f32", "f32", "f32", 4, TREE, product=Product(split=SPLITS[name]))
    vectors = single_vectors(FORM, 1, 288)  # of 96 another split makes the same
    answers = evaluate(path, vectors)
    seen = Graded.of(FORM, [(vectors, answers)], Allowance())
    split = fit_alone(FORM, vectors, answers, seen).cut.product.split
    assert split is not None
    assert (split.format, split.rounding) == (SPLITS[name].format, SPLITS[name].rounding)
    assert set(split.pairs) == set(SPLITS[name].pairs)


def test_formats_that_hold_an_operand_in_few_parts() -> None:
    path = Datapath("f32", "f32", "f32", "f32", 4, TREE)
    assert set(roles.part_formats(path)) == {"bf16", "tf32", "e8m13"}
    assert roles.part_formats(replace(path, a="f16", b="f16")) == ()  # e5m2 holds nine bits of its eleven in three
    assert roles.part_formats(replace(path, a="bf16", b="bf16")) == ()
    assert roles.part_formats(replace(path, a="tf32", b="bf16")) == ("bf16",)


def test_the_order_of_products_is_looked_for_where_it_shows() -> None:
    """Side by side in one sum they have none; one after the other in a chain, and in steps of their own."""
    path = Datapath("f32", "f32", "f32", "f32", 4, TREE)
    found = [base.product.split for base, _ in fields.splits(path)]
    beside = [split.pairs for split in found if split is not None and split.added == "together"]
    assert len(beside) == len(set(map(frozenset, beside))) == len(roles.REACHES)
    chain = replace(path, tree=Fma(Accumulator(), (0, 1, 2, 3), Encode()))
    linked = [base.product.split for base, _ in fields.splits(chain)]
    assert sum(split is not None and split.added == "together" for split in linked) == len(roles.pair_orders())
