"""Structures with numbers of their own: single terms, shapes without lanes, losses, and the places of lanes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance, SpentError
from mmaprobe.derivation.hypotheses import field_choices
from mmaprobe.derivation.hypotheses.structures import fused_structures, rounded_structures
from mmaprobe.derivation.search.lane_orders import TRIED, Places, ordered, shapes
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.search.single_terms import fit_alone
from mmaprobe.derivation.vectors.plain import single_vectors
from mmaprobe.models.engine import evaluate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Product, Products

FORM = Instruction("test.f16", "test.f16", "test", 16, 8, 8, "f16", "f16", "f32", "f32")
SUM = Fused.alike((Accumulator(), Products((0, 1))), 30, "RNE", None, Encode("f32", "RZ"))
WHOLE = Fused.alike((Accumulator(), Products(tuple(range(8)))), 30, "RNE", None, Encode("f32", "RZ"))
CHAIN = Datapath("f16", "f16", "f32", "f32", 8, SUM, 2)


def rounded(result: Encode, product: Encode | None = None, last: Encode | None = None) -> Datapath:
    return replace(CHAIN, tree=replace(SUM, to=result), product=Product(product), result=last)


@pytest.mark.parametrize(
    "path",
    [
        rounded(Encode("f32", "RU", first=(7, "RNA"))),
        rounded(Encode("f32", "RNE"), product=Encode("f32", "RZ", first=(13, "RD"))),
        rounded(Encode("bf16", "RNU"), last=Encode("f32", "RZ")),
        field_choices.cut(replace(CHAIN, tree=WHOLE, step=0), 9, "RO"),
    ],
    ids=["first cut", "rounded products", "format in between", "alignment"],
)
def test_single_terms_show_their_roundings(path: Datapath) -> None:
    """The fit of 96 single terms makes of 2,000 others what the datapath makes of them."""
    vectors = single_vectors(FORM, 1, 96)
    answers = evaluate(path, vectors)
    seen = Graded.of(FORM, [(vectors, answers)], Allowance())
    fit = fit_alone(FORM, vectors, answers, seen)
    assert seen.total(fit.cut) == 0
    others = single_vectors(FORM, 2, 2000)
    normal = formats.decode(formats.get("f32"), evaluate(path, others)).kind == formats.NORMAL
    assert (evaluate(fit.cut, others) == evaluate(path, others))[normal].mean() > 0.99


@pytest.mark.parametrize("seed", range(4))
def test_each_lane_tells_its_place(seed: int) -> None:
    """Whatever the order of the lanes, one odd lane at a time shows which step takes it."""
    order = tuple(random.Random(seed).sample(range(8), 8))
    device = replace(CHAIN, order=order)
    allowance = Allowance(None)
    places = Places(FORM, CHAIN, seed, allowance)
    assert allowance.spent.total > TRIED * FORM.k  # a lane or more of a vector for each pair in each lane
    assert places.vectors is not None
    found = places.order(evaluate(device, places.vectors))
    assert found is not None
    assert [set(step) for step in replace(CHAIN, order=found).steps] == [set(step) for step in device.steps]


def test_shapes_hold_what_equal_lanes_cannot_tell_apart() -> None:
    names = {member.name: shape for shape in shapes(rounded_structures(8, True)) for member in shape.members}
    assert names["fma ascending from c over 8"] is names["fma descending from c over 8"]
    assert names["fma ascending from c over 8"] is not names["exact over 8"]


def test_every_member_of_a_shape_keeps_the_numbers() -> None:
    shape = next(shape for shape in shapes(fused_structures(8, True)) if shape.name == "fused over 2")
    found = list(ordered(FORM, shape, CHAIN))
    assert len({path.order for path in found}) == len(found) > 4
    assert {path.tree.terms[1].fraction_bits for path in found} == {30}  # type: ignore[union-attr]
    assert {path.step for path in found} == {2}


def test_a_loss_grows_with_the_distance() -> None:
    vectors = single_vectors(FORM, 3, 200)
    seen = Graded.of(FORM, [(vectors, evaluate(CHAIN, vectors))], Allowance())
    near, far = (seen.total(field_choices.cut(CHAIN, bits, "RZ")) for bits in (12, 4))
    assert 0 == seen.total(CHAIN) < near < far
    table, part = np.stack([seen.answers + 1, seen.answers + 1000]), np.arange(len(seen.answers))
    one, thousand = seen.loss(table, part)
    assert 0 < one < thousand  # as many are wrong
    counted = replace(seen, counted=True).loss(table, part)
    assert counted[0] == counted[1] > 0


def test_losses_end_with_the_allowance() -> None:
    vectors = single_vectors(FORM, 3, 100)
    seen = Graded.of(FORM, [(vectors, evaluate(CHAIN, vectors))], Allowance(20_000))
    with pytest.raises(SpentError, match="allowance of 20,000"):
        [seen.total(CHAIN) for _ in range(100)]
