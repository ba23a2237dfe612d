"""A label shown higher or lower than it is: dropped where only sums tell that lose nothing by it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.equivalence.sum_order import canonical
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Accumulator, Datapath, Fused, Term
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.rewrite import simpler

MADE = instruction("v_mfma_f32_16x16x32_bf8_bf8", "gfx942")
SHIPPED = datapath_for("gfx942", MADE)


def with_rules(inner: int | None, offset: int, cutoff: int | None, c_bits: int | None = 24) -> Datapath:
    """The shipped sum of C and groups cut to 24 bits, of which the root keeps ``inner``."""
    tree = SHIPPED.tree
    assert isinstance(tree, Fused)
    groups, c = tree.terms
    assert isinstance(c.of, Accumulator)
    terms = (replace(groups, fraction_bits=inner), Term(c.of, c_bits, "RD", None, cutoff, offset))
    return replace(SHIPPED, tree=replace(tree, terms=terms))


def alike(one: Datapath, other: Datapath) -> bool:
    pools = (mixed_vectors(MADE, 1, 4000), attack_vectors(MADE, one, [other], 2, 40_000))
    return all(np.array_equal(*evaluate_many([one, other], pool)) for pool in pools)


@pytest.mark.parametrize(
    ("shown", "plain"),
    [
        ((26, -6, 31), (32, 0, 25)),
        ((24, -6, 31), (30, 0, 25)),
        ((30, 4, 20, 28), (26, 0, 24, 28)),
        ((30, -1, None), (31, 0, None)),
        ((None, -6, 31), (None, 0, 25)),
    ],
)
def test_a_label_that_tells_nothing_is_its_own(shown: tuple[Any, ...], plain: tuple[Any, ...]) -> None:
    one, other = with_rules(*shown), with_rules(*plain)
    assert canonical(one) == canonical(other) != one
    assert [step.argument.rule for step in same_function(one, other) or ()] == ["same sum"]
    assert other in simpler(one)
    assert alike(one, other)


@pytest.mark.parametrize(
    ("shown", "plain"),
    [
        ((23, -6, 31), (29, 0, 25)),  # the groups have 24 bits
        ((30, 8, 20, 32), (22, 0, 28, 32)),  # without the offset they are cut
        ((26, -6, 31, 22), (32, 0, 25, 22)),  # C has 23 bits, and is cut where it is the larger
        ((30, 4, 20, 24), (26, 0, 24, 24)),  # with the offset C is cut where it is the larger
        ((26, -6, 31), (32, 0, 26)),  # another cutoff
        ((26, -6, 31), (26, 0, 25)),  # the groups are cut elsewhere
    ],
)
def test_a_label_that_tells_stays(shown: tuple[Any, ...], plain: tuple[Any, ...]) -> None:
    one, other = with_rules(*shown), with_rules(*plain)
    assert canonical(one) != canonical(other)
    assert same_function(one, other) is None
    assert not alike(one, other)


@pytest.mark.parametrize(("zero", "own"), [(-132, -126), (-20, -14), (10, 16)])
def test_the_exponent_of_a_zero_is_shown_without_an_offset(zero: int, own: int) -> None:
    shown, plain = (showing(with_rules(*rules), z) for rules, z in (((26, -6, 31), zero), ((32, 0, 25), own)))
    assert canonical(shown) == canonical(plain) != shown
    assert alike(shown, plain)
    assert zero < 0 or not alike(shown, showing(plain, zero))


def showing(path: Datapath, zero: int) -> Datapath:
    """The datapath whose zero C shows this exponent."""
    tree = path.tree
    assert isinstance(tree, Fused)
    return replace(path, tree=replace(tree, terms=(tree.terms[0], replace(tree.terms[1], zero_exponent=zero))))


def test_what_an_mfma_was_derived_to_be_is_what_is_shipped() -> None:
    """Found on a stand-in of gfx942: 800 million vectors told nothing, and no argument joined the two."""
    steps = same_function(with_rules(26, -6, 31), SHIPPED)
    assert steps is not None
    assert [step.argument.rule for step in steps] == ["same sum"]
