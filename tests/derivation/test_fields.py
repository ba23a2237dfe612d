"""What a search varies of a datapath: no value of a field is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import product

import pytest

from mmaprobe import formats
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.descent import Group
from mmaprobe.parameters.datapath import (
    OVERFLOWS,
    SUBNORMALS,
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fused,
    Products,
    Scale,
    Term,
)
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.rewrite import map_terms

SUM = Fused.alike((Accumulator(), Products((0, 1, 2, 3))), 20, "RD", to=Encode("f32", "RZ"))
PATH = Datapath("f16", "f16", "f32", "f32", 4, SUM)
INNER = Fused.alike((Products((0, 1)), Products((2, 3))), 20, to=Encode("f32", "RZ"))
APART = replace(PATH, tree=Add(Accumulator(), INNER, Encode("f32")))


def made(groups: Iterable[Group]) -> list[Datapath]:
    """Every datapath that one edit of a group makes."""
    return [edit(base) for base, axes in groups for axis in axes for edit in axis]


def test_every_sign_of_a_zero_is_tried() -> None:
    found = [edit(PATH).root for axis in fields.signs(PATH, lambda _: True) for edit in axis]
    signs = product(choices(Encode, "zero"), choices(Encode, "underflow"), SUBNORMALS)
    assert {(to.zero, to.underflow, to.subnormals) for to in found} == set(signs)


def test_a_part_that_no_one_flush_leaves_alike_is_no_axis() -> None:
    """Seed 255: parts that differ inside, of which every change costs something."""
    axes = fields.signs(PATH, lambda _: False)
    assert axes
    assert all(len(axis) for axis in axes)


def test_flushes_that_only_together_are_alike_are_tried_together() -> None:
    """Flushing C and flushing the result each change an answer here, and both at once do not."""

    def alike(path: Datapath) -> bool:
        return (path.operand_c.subnormals == "keep") == (path.root.subnormals == "keep")

    def tried(pairs: bool) -> set[tuple[str, str]]:
        every = [
            reduce(lambda path, edit: edit(path), edits, PATH) for edits in product(*fields.signs(PATH, alike, pairs))
        ]
        return {(path.operand_c.subnormals, path.root.subnormals) for path in every}

    assert ("signed_zero", "signed_zero") not in tried(False)
    assert ("signed_zero", "signed_zero") in tried(True)


@pytest.mark.parametrize("beside", ["cutoff", "label"])
def test_what_hides_behind_a_width_and_a_rounding_is_tried_with_both(beside: str) -> None:
    """A cut-off, and the label of a product: of each kind of term every value with every width and rounding."""

    def values(path: Datapath) -> Iterator[tuple[object, ...]]:
        for term in path.tree.terms:  # type: ignore[union-attr]
            yield term.cutoff if beside == "cutoff" else path.product.label, term.fraction_bits, term.rounding

    groups = [[list(axis) for axis in axes] for _, axes in fields.odd_ends(PATH, ()) if len(axes) == 3]
    sample = [[axis[:: max(len(axis) // 5, 1)] for axis in axes] for axes in groups]
    paths = [reduce(lambda path, edit: edit(path), edits, PATH) for axes in sample for edits in product(*axes)]
    found = {each for path in paths for each in values(path)}
    kinds = {first for first, _, _ in found}
    assert len(kinds) >= 3
    widths, roundings = {bits for _, bits, _ in found}, {mode for _, _, mode in found}
    assert {(first, bits, mode) for first in kinds for bits in widths - {20} for mode in roundings - {"RD"}} <= found


def test_every_cut_of_a_product_is_tried() -> None:
    cuts = {to.first for path in made(fields.odd(PATH, ())) if (to := path.product.to) is not None}
    assert cuts >= set(product(range(1, fields.MOST_FIRST), formats.ROUNDINGS))


def test_every_rounding_and_width_is_tried_of_all_terms_and_of_each() -> None:
    paths = made(fields.odd(PATH, ()))
    both = [{(term.fraction_bits, term.rounding) for term in path.tree.terms} for path in paths if path.tree != SUM]  # type: ignore[union-attr]
    assert {mode for some in both if len(some) == 1 for _, mode in some} == set(formats.ROUNDINGS)
    assert {bits for some in both if len(some) == 1 for bits, _ in some} >= {None, *range(65)}
    assert {mode for some in both if len(some) == 2 for _, mode in some} == set(formats.ROUNDINGS)


def test_every_rule_of_the_ends_is_tried_of_all_results_and_of_each() -> None:
    paths = made(fields.ends(APART))
    tiny = {(to.subnormals, to.tininess) for path in paths for to in (path.tree.to, path.tree.y.to)}  # type: ignore[union-attr]
    assert tiny >= set(fields.TINY)
    for rule in OVERFLOWS:
        assert any(path.tree.to.overflow == rule for path in paths)  # type: ignore[union-attr]
        assert any(path.tree.y.to.overflow == rule for path in paths)  # type: ignore[union-attr]
    assert any(path.tree.to.overflow != path.tree.y.to.overflow for path in paths)  # type: ignore[union-attr]
    assert {path.operand_a.subnormals for path in paths} == {"keep", "signed_zero"}


def test_a_zero_exponent_is_tried_with_the_width_and_the_label_that_hide_it() -> None:
    """Where subnormals of f16 are multiplied, a width and a label imitate a zero exponent: all three at once."""
    start = replace(PATH, product=replace(PATH.product, label="operands"))
    wanted = replace(map_terms(PATH, _cut_at_zeros), product=replace(PATH.product, label="encoded"))
    assert wanted in _corners(start, fields.odd_ends(start, ()), (-19, 23, "encoded"))


def _cut_at_zeros(term: Term) -> Term:
    return replace(term, zero_exponent=-19, fraction_bits=23)


def _corners(start: Datapath, groups: Iterable[Group], values: tuple[object, ...]) -> Iterator[Datapath]:
    """The datapaths of groups of three fields, of each field the edits that set one of these values."""
    for base, axes in groups:
        if base is start and len(axes) == 3:
            chosen = [[edit for edit in axis if set(_told(edit(base))) & set(values)] for axis in axes]
            yield from (reduce(lambda path, edit: edit(path), edits, base) for edits in product(*chosen))


def _told(path: Datapath) -> Iterator[object]:
    yield path.product.label
    for term in path.tree.terms:  # type: ignore[union-attr]
        yield from (term.zero_exponent, term.fraction_bits)


@pytest.mark.parametrize("root", ["f32", "f64"])
def test_a_format_is_carried_between_steps_to_a_conversion_that_does_what_the_sum_did(root: str) -> None:
    """Also where the sum is held in a format that the result's cannot be."""
    path = replace(PATH, d="f16", tree=replace(SUM, to=Encode(root, "RU", "largest", first=(7, "RZ"))))
    found = fields.carried(path, "bf16")
    assert found.root == Encode("bf16")
    assert found.result == Encode("f16", "RU", "largest", first=(7, "RZ"))


def test_an_exact_sum_is_cut_and_scales_are_of_blocks_or_products() -> None:
    """Nothing cut is known by none of the vectors asked so far: fresh ones may tell."""
    exact = replace(PATH, tree=Exact(tuple(term.of for term in SUM.terms), SUM.to))
    cuts = [path.tree for path in made(fields.odd_ends(exact, ())) if isinstance(path.tree, Fused)]
    assert {term.fraction_bits for tree in cuts for term in tree.terms} >= set(range(3, 60))
    assert {term.rounding for tree in cuts for term in tree.terms} == set(formats.ROUNDINGS)
    scaled = replace(PATH, a="e2m1", b="e2m1", scale=Scale("ue8m0", 4))
    assert {path.scale and path.scale.where for path in made(fields.odd_ends(scaled, ()))} == {"product", "group"}


def test_what_a_first_cut_made_short_is_held_in_any_format() -> None:
    """What it overflows to, and from where, is its format's."""
    to = Encode("tf32", "RU", first=(4, "RNE"))
    wanted = replace(to, format="f32", overflow="largest", rounding="RNE")
    paths = made(fields.odd_ends(replace(PATH, tree=replace(SUM, to=to)), ()))
    assert wanted in {path.root for path in paths}


def test_the_grid_of_tiny_terms_stays_where_it_is() -> None:
    """More fraction bits below a zero that shows a larger exponent: the same last place."""
    start = map_terms(PATH, lambda term: replace(term, fraction_bits=20, zero_exponent=-130))
    found = [edit(start) for edit in fields.moved_grids(start)]
    grids = {(term.zero_exponent or 0) - (term.fraction_bits or 0) for path in found for term in path.tree.terms}
    assert grids == {-150}
    assert {term.fraction_bits for path in found for term in path.tree.terms} == set(range(8, 33))


def test_sums_of_products_begin_with_a_zero_or_not() -> None:
    apart = fields.with_zeros(APART)
    assert fields.without_zeros(apart) == APART != apart
    assert fields.with_zeros(PATH) == PATH  # c is there


def test_exact_sums_inside_one_that_is_cut_are_cut_with_a_width_of_their_own() -> None:
    """What is cut inside few vectors show: an exact sum imitates it, and the width outside is right already."""
    groups = tuple(Exact((Products(lanes),)) for lanes in ((0, 1), (2, 3)))
    path = replace(PATH, tree=Fused.alike(groups, 5, "RNE", to=Encode("f32", "RZ")))
    inside = Fused.alike((Products((0, 1)),), 17, "RNE"), Fused.alike((Products((2, 3)),), 17, "RNE")
    wanted = Fused.alike(inside, 5, "RNE", to=Encode("f32", "RZ"))
    made = {
        reduce(lambda path, edit: edit(path), edits, base).tree
        for base, axes in fields.odd_ends(path, ())
        for edits in (product(*axes) if base != path and len(axes) == 2 else ())
    }
    assert wanted in made
