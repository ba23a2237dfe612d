"""One way downhill: which steps it takes, at once or the best of all, and what halving drops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import field_choices
from mmaprobe.derivation.search.descent import Group, descend, descent, race
from mmaprobe.derivation.search.loss import FIRST, Graded
from mmaprobe.derivation.survivors import Living, several
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.models.combinations import Combinations
from mmaprobe.models.engine import evaluate, evaluate_many
from mmaprobe.operands.batch import take
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Products

FORM = Instruction("test.f16", "test.f16", "test", 16, 8, 8, "f16", "f16", "f32", "f32")
SUM = Fused.alike((Accumulator(), Products(tuple(range(8)))), 26, "RD", to=Encode("f32", "RZ"))
TRUTH = Datapath("f16", "f16", "f32", "f32", 8, SUM)
START = field_choices.cut(replace(TRUTH, tree=replace(SUM, to=Encode("f32", "RNE"))), 40, "RNE")
VECTORS = mixed_vectors(FORM, 1, 400)


def graded(every: bool = False) -> Graded:
    return Graded.of(FORM, [(VECTORS, evaluate(TRUTH, VECTORS))], Allowance(None), every)


def singly(path: Datapath) -> Iterator[Group]:
    """Width, alignment and rounding of the result, each alone."""
    yield path, [field_choices.fraction_bits(True)]
    yield path, [field_choices.alignment()]
    yield path, [field_choices.rounding()]


def jointly(path: Datapath) -> Iterator[Group]:
    yield path, [field_choices.fraction_bits(True), field_choices.alignment()]
    yield path, [field_choices.rounding()]


def test_steps_are_taken_at_once() -> None:
    way = list(descent(START, graded(), jointly))
    losses = [loss for _, loss in way]
    assert losses == sorted(losses, reverse=True)
    assert way[-1] == (TRUTH, 0)
    assert losses[1] < losses[0]
    assert way[1][0].tree.to == START.tree.to  # type: ignore[union-attr]
    assert len(way) == 3  # the start, and one step a group: one sweep


def test_or_a_sweep_takes_the_best_of_all() -> None:
    seen = graded()
    start = seen.total(START)
    single = [seen.nearest(*group) for group in singly(START)]
    best = min(loss for _, loss in filter(None, single))
    first = list(descent(START, seen, singly, sweeps=1, best=True))
    assert first[-1] in single  # one step, although several groups come nearer
    assert first[-1][1] == best < start
    assert descend(START, seen, jointly, 4, best=True) == (TRUTH, 0)


def test_it_ends_where_nothing_is_nearer() -> None:
    way = list(descent(START, graded(), lambda path: [(path, [field_choices.rounding()])]))
    assert 0 < way[-1][1] < way[0][1]
    assert len(way) <= 4  # it does not go on for all its sweeps


def test_ways_go_down_side_by_side() -> None:
    """Always the one that has cost least of those that go on; each ends where it would alone."""
    allowance = Allowance(1_000_000_000)
    seen = replace(graded(), allowance=allowance)
    starts = [START, TRUTH, field_choices.cut(TRUTH, 3, "RD")]
    steps, left = [], allowance.left
    for i, found in race([descent(start, seen, jointly) for start in starts], allowance):
        steps.append((i, left - allowance.left, found))
        left = allowance.left
    spent = dict.fromkeys(range(3), 0.0)
    for number, (i, took, _) in enumerate(steps):
        assert spent[i] <= min(spent[other] for other, *_ in steps[number:])
        spent[i] += took
    assert {i: found for i, _, found in steps} == dict.fromkeys(range(3), (TRUTH, 0.0))


def test_a_costly_way_waits_for_cheap_ones() -> None:
    allowance = Allowance(10_000)

    def way(units: int, steps: int) -> Iterator[tuple[Datapath, float]]:
        for left in reversed(range(steps)):
            allowance.spend(units)
            yield TRUTH, float(left)

    turns = [i for i, _ in race([way(900, 2), way(100, 12)], allowance)]
    assert turns == [0, *[1] * 9, 0, *[1] * 3]


def test_every_answer_counts_or_the_normal_ones() -> None:
    """Ends of the range show where all answers are held against, and nowhere else."""
    other = replace(TRUTH, tree=replace(SUM, to=Encode("f32", "RZ", zero="positive")))
    assert graded().total(other) == 0 < graded(every=True).total(other)
    assert len(graded(every=True).answers) == VECTORS.size > len(graded().answers)


@pytest.mark.parametrize("bits", range(6, 10))
def test_long_axes_are_looked_at_from_coarse_to_fine(bits: int) -> None:
    """Numbers that no first look meets."""
    truth = field_choices.cut(TRUTH, bits, "RNE")
    seen = Graded.of(FORM, [(VECTORS, evaluate(truth, VECTORS))], Allowance())
    axes = [field_choices.fraction_bits(True), field_choices.alignment(), field_choices.rounding()]
    found = seen.nearest(truth, axes)
    assert found is not None
    assert found[1] == 0
    assert {term.fraction_bits for term in found[0].tree.terms} == {bits}  # type: ignore[union-attr]


def test_what_has_no_loss_so_far_stays() -> None:
    """However many others have none either on the first vectors."""
    every = [*(field_choices.cut(TRUTH, bits, "RZ") for bits in range(2, 40)), TRUTH]
    same = np.flatnonzero((evaluate_many(every, VECTORS) == evaluate(TRUTH, VECTORS)).all(axis=0))
    order = np.concatenate([np.repeat(same[:1], FIRST), np.arange(VECTORS.size)])
    vectors = take(VECTORS, order)
    seen = replace(graded(every=True), vectors=vectors, answers=evaluate(TRUTH, vectors))
    assert seen.least(several(every, Allowance())) == (TRUTH, 0)


def test_halving_drops_nothing_without_loss() -> None:
    every = Combinations(
        TRUTH, [field_choices.fraction_bits(True), field_choices.alignment(), field_choices.rounding()]
    )
    seen = graded(every=True)
    found = seen.least(Living.of([every], Allowance()))
    assert found == (TRUTH, 0)
    right = Living.of([every], Allowance()).agreeing(seen.vectors, seen.answers)
    wrong = np.array([(evaluate(path, seen.vectors) != seen.answers).any() for path in right])
    assert not wrong.any()
    assert TRUTH in list(right)
