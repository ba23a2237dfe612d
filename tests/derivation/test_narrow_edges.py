"""Vectors at an edge of a narrow result: what a wide sum inside does shows in them, and in other plain ones hardly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.single_terms import Alone
from mmaprobe.derivation.vectors.mixtures import plain
from mmaprobe.derivation.vectors.narrow_edges import hides_sums, narrow_edges
from mmaprobe.derivation.vectors.plain import safe_vectors
from mmaprobe.models.engine import evaluate, evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fused, Products
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.rewrite import map_terms, narrowed, spellings

COUNT = 1000
ALL = Fused.alike((Accumulator(), Products((0, 1))), 24, to=Encode("bf16", "RZ"))
STEPS = Datapath("bf16", "bf16", "bf16", "bf16", 8, ALL, step=2)


def telling(architecture: str, form: Instruction, vectors: Batch, field: str, value: str) -> int:
    """How many vectors tell the shipped datapath from the one with this value."""
    truth = datapath_for(architecture, form)
    true, other = evaluate_many([truth, mutate(truth, field, value)], vectors)
    return int(np.count_nonzero(true != other))


@pytest.mark.parametrize("architecture", ["gfx1100", "gfx1200"])
@pytest.mark.parametrize("name", ["v_wmma_bf16_16x16x16_bf16", "v_wmma_f16_16x16x16_f16", "v_dot2_bf16_bf16"])
def test_they_are_plain(architecture: str, name: str) -> None:
    """No end of a range shows: nearly every answer counts for the structure and its numbers."""
    form = instruction(name, architecture)
    vectors = narrow_edges(form, 3, COUNT)
    assert vectors.size == COUNT
    assert plain(form, vectors, evaluate(datapath_for(architecture, form), vectors)).mean() > 0.99


@pytest.mark.parametrize(
    ("architecture", "name", "field", "value", "least", "usual"),
    [
        ("gfx1100", "v_wmma_bf16_16x16x16_bf16", "tree.terms.0.fraction_bits", "23", 200, 50),
        ("gfx1200", "v_wmma_bf16_16x16x16_bf16", "tree.terms.0.fraction_bits", "23", 100, 10),
        ("gfx1200", "v_wmma_bf16_16x16x16_bf16", "tree.terms.0.rounding", "RZ", 40, 10),
        ("gfx1200", "v_wmma_bf16_16x16x16_bf16", "tree.terms.0.to.rounding", "RZ", 300, 30),
        ("gfx1200", "v_wmma_f16_16x16x16_f16", "tree.rounding", "RZ", 10, 1),
    ],
)
def test_a_unit_of_the_sum_inside_shows(
    architecture: str, name: str, field: str, value: str, least: int, usual: int
) -> None:
    """Of a thousand at least so many tell, of the usual plain ones at most."""
    form = instruction(name, architecture)
    assert telling(architecture, form, narrow_edges(form, 5, COUNT), field, value) >= least
    assert telling(architecture, form, safe_vectors(form, 5, COUNT), field, value) <= usual


@pytest.mark.parametrize(
    ("name", "hides"),
    [
        ("v_wmma_bf16_16x16x16_bf16", True),
        ("v_dot2_f16_f16", True),
        ("v_wmma_f32_16x16x16_f16", False),
        ("v_wmma_i32_16x16x16_iu8", False),
    ],
)
def test_they_are_for_results_narrower_than_a_sum_inside_may_be(name: str, hides: bool) -> None:
    assert hides_sums(instruction(name, "gfx1200")) is hides


def test_a_step_rounds_twice() -> None:
    """To f32 and then to bf16, not once at the end: structures begin so, and a first cut can be spelled so."""
    both = narrowed(STEPS, "f32", "RNE")
    first = Encode("f32", "RNE")
    inside = Fused(ALL.terms, first)
    assert both.tree == Exact((inside,), Encode("bf16", "RZ"))
    assert both.result is None
    assert both.step == 2
    alone = Alone(STEPS, STEPS, (), ("bf16",))
    assert both in alone.starts(lambda to: STEPS)
    assert both in spellings(mutate(STEPS, "tree.to.first", "23 RNE"))


def test_c_below_a_unit_is_dropped_whatever_its_sign() -> None:
    """What C shows, what is dropped of it and the width of all are three numbers of which none shows alone."""
    wide = map_terms(STEPS, lambda term: replace(term, fraction_bits=26))
    made = {edit(wide) for _, axes in fields.simple(wide) for axis in axes for edit in axis}
    assert mutate(mutate(STEPS, "tree.terms.0.label_offset", "-2"), "tree.terms.0.cutoff", "26") in made
