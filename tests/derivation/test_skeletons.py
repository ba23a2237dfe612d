"""Datapaths to begin with: which structures a probe's tree and the grammar give, and what is changed about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import grammar
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.search.single_terms import Alone, fit_alone
from mmaprobe.derivation.search.skeletons import all_structures, read_structures, starts, variants
from mmaprobe.derivation.vectors.plain import single_vectors
from mmaprobe.models.engine import evaluate
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fused, Products, walk

FORM = Instruction("test.f16", "test.f16", "test", 16, 8, 8, "f16", "f16", "f32", "f32")
SCALED = replace(FORM, k=64, a="e2m1", b="e2m1", scale="ue8m0", scale_size=32)
TO = Encode("f32", "RU")
ONE_SUM = Fused.alike((Accumulator(), Products(tuple(range(8)))), 11, "RD", None, TO)
DEVICE = Datapath("f16", "f16", "f32", "f32", 8, ONE_SUM)


@pytest.fixture(scope="module")
def alone() -> Alone:
    vectors = single_vectors(FORM, 1, 96)
    answers = evaluate(DEVICE, vectors)
    return fit_alone(FORM, vectors, answers, Graded.of(FORM, [(vectors, answers)], Allowance()))


def test_a_tree_of_sums_in_sums_is_read_as_such() -> None:
    inner = [{"kind": "fused", "terms": lanes} for lanes in ([0, 3, 5], [1, 2, 4, 6, 7])]
    found = read_structures(FORM, {"kind": "add", "terms": [{"kind": "fused", "terms": inner}, "c"]}, True)
    assert "sums inside a sum over 8" in {each.name for each in found}
    inner_sums = [[n for n in walk(each.build(TO)) if isinstance(n, Fused) and n.to is None] for each in found]
    assert max(map(len, inner_sums)) == 3  # both groups, and the sum of them before c joins


FLAT = {"kind": "fused", "terms": ["c", *range(64)]}


def test_what_a_window_shows_as_one_sum_may_add_c_after() -> None:
    exact, bounded = ({each.name for each in read_structures(SCALED, FLAT, exact)} for exact in (True, False))
    assert "fused, c after over 64" in bounded - exact
    assert "scaled sums of 32 over 64, c after" in bounded - exact
    assert exact < bounded
    assert not [name for name in exact if "after" in name]


def test_blocks_and_products_come_before_parts_of_blocks() -> None:
    names = [each.name for each in read_structures(SCALED, FLAT, True)]
    assert names[:2] == ["scaled sums of 32 over 64, read", "fused over 64, read"]
    assert "scaled sums of 16 over 64, read" in names[2:]


def test_sums_of_scale_blocks_without_c_may_carry_what_was_added_so_far() -> None:
    without = [each for each in all_structures(replace(SCALED, c=None)) if each.scaled]
    carried = {each.step for each in without if any(isinstance(n, Accumulator) for n in walk(each.build(TO)))}
    assert carried == {32, 64}
    assert {each.step for each in without if each.name.endswith("nothing else")} == {64}


def test_every_kind_of_sum_is_among_all() -> None:
    """Sums of all, of steps, of groups, chains and trees; exact sums of scale blocks where there are scales."""
    kinds = {type(node).__name__ for each in all_structures(FORM) for node in walk(each.build(TO))}
    assert kinds >= {"Fused", "Fma", "Add", "Exact"}
    nested = [each for each in all_structures(FORM) if sum(isinstance(n, Fused) for n in walk(each.build(TO))) > 1]
    assert nested
    assert not any(each.scaled for each in all_structures(FORM))
    blocks = [each for each in all_structures(SCALED) if each.scaled]
    assert blocks
    assert all(any(isinstance(node, Exact) and node.scaled for node in walk(each.build(TO))) for each in blocks)


def test_structures_begin_with_the_numbers_of_single_terms(alone: Alone) -> None:
    begun = starts(FORM, all_structures(FORM), alone, 0x7FC00000)
    assert {path.special.code for path in begun} == {0x7FC00000}
    sums = [path for path in begun if isinstance(path.tree, Fused) and path.step == DEVICE.step]
    cuts = {(term.fraction_bits, term.rounding) for path in sums for term in path.tree.terms}  # type: ignore[union-attr]
    assert (11, "RD") in cuts
    assert {path.root.format for path in begun} == set(alone.results) == {"e8m13", "f32"}  # 11 bits fit both


def test_sums_of_a_narrow_result_begin_with_a_wider_format_as_well() -> None:
    """What is rounded to f16 at last may have been kept in f32 before."""
    narrow = replace(FORM, c="f16", d="f16")
    vectors = single_vectors(narrow, 1, 96)
    one_sum = Fused.alike((Accumulator(), Products(tuple(range(8)))), 24, "RZ", None, Encode("f16"))
    device = replace(DEVICE, c="f16", d="f16", tree=one_sum)
    answers = evaluate(device, vectors)
    fit = fit_alone(narrow, vectors, answers, Graded.of(narrow, [(vectors, answers)], Allowance()))
    begun = starts(narrow, all_structures(narrow), fit, 0x7FFF)
    results = {(path.root.format, path.result and path.result.format) for path in begun}
    assert {("f16", None), ("f32", "f16")} <= results


def test_where_c_enters_and_what_is_summed_together_are_varied() -> None:
    found = variants(DEVICE, "all")
    names = set(found.values())
    assert any(name.startswith("all, accumulation") for name in names)
    assert any(name.startswith("all, grouping") for name in names)
    assert DEVICE not in found


def test_chains_too_deep_for_a_record_are_no_structures_of_many_lanes() -> None:
    """Of 256 lanes a chain written out link by link has more levels than a record; the others are all there."""
    every = all_structures(replace(FORM, k=256))
    assert all(grammar.build(replace(FORM, k=256), each, TO).k == 256 for each in every)
    assert {each.step for each in every} >= {256, 128, 16, 4}
