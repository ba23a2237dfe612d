"""Combinations answer as their records do, and the few programs that an axis takes stand for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest
from random_architectures import Case, case

from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.search import fields
from mmaprobe.derivation.search.descent import Group, descend
from mmaprobe.derivation.search.loss import Graded
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.errors import UsageError
from mmaprobe.models.combinations import Combinations, Programs
from mmaprobe.models.engine import evaluate, evaluate_many
from mmaprobe.parameters.datapath import OVERFLOWS, Datapath
from mmaprobe.parameters.rewrite import map_terms

GROUPS, COMBINATIONS = 6, 24


class OneByOne(Combinations):
    """Combinations that make a program of each edit."""

    def _derived(self, axis: object) -> None:
        return None


def groups(path: Datapath, source: Random) -> list[Group]:
    """Some of the groups that a search varies."""
    every = [*islice(fields.odd(path, (3, 11, 24)), 60), *_ends(path)]
    return source.sample(every, min(GROUPS, len(every)))


def _ends(path: Datapath) -> Iterator[Group]:
    terms = roles.term_roles(path)
    yield path, [field_choices.flush(), field_choices.overflow()]
    yield path, [roles.products(path)[1], field_choices.zero_sign()]
    yield path, [roles.products(path)[0], field_choices.underflow_sign()]
    for part in roles.parts_of(path):
        yield path, [roles.encode_axis(part, overflow=OVERFLOWS), fields.flush(part)]
    for role in terms:
        yield path, [roles.zeros(role, field_choices.zero_exponents(path)), roles.widths(role, False)]


def made(kind: type[Combinations], group: Group) -> Combinations | None:
    try:
        return kind(*group)
    except (UsageError, ValueError):
        return None


def found(seed: int) -> Case | None:
    """The case of a seed where it is one of floats."""
    drawn = case(seed)
    return None if drawn.kind == "integer" else drawn


@pytest.mark.parametrize("seed", range(9000, 9012))
def test_combinations_answer_as_their_records(seed: int) -> None:
    drawn = found(seed)
    if drawn is None:
        pytest.skip("integers have none of these axes")
    source, vectors = Random(seed), mixed_vectors(drawn.instruction, seed, 24)
    for group in groups(drawn.datapath, source):
        quick, slow = made(Combinations, group), made(OneByOne, group)
        assert (quick is None) == (slow is None)
        if quick is None or slow is None:
            continue
        assert np.array_equal(quick.valid, slow.valid)
        some = np.array(sorted(source.sample(quick.valid.tolist(), min(COMBINATIONS, len(quick.valid)))), np.int64)
        answers = evaluate_many([quick.datapath(int(i)) for i in some], vectors)
        assert np.array_equal(quick.evaluate(some, vectors), answers)
        assert np.array_equal(slow.evaluate(some, vectors), answers)


@pytest.mark.parametrize("seed", [9003, 9009])
def test_a_descent_takes_the_same_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = found(seed)
    assert drawn is not None
    vectors = mixed_vectors(drawn.instruction, seed, 60)
    answers = evaluate(drawn.datapath, vectors)
    start = field_choices.cut(drawn.datapath, 20, "RNE")

    def end() -> tuple[Datapath, float]:
        seen = Graded.of(drawn.instruction, [(vectors, answers)], Allowance(None))
        return descend(start, seen, lambda path: islice(fields.odd(path, (11, 24)), 8), 1)

    quick = end()
    monkeypatch.setattr(Combinations, "_derived", OneByOne._derived)
    assert end() == quick


def test_an_axis_whose_ends_the_engine_cannot_hold_is_a_line_between_them() -> None:
    """Uncut sums of scale blocks hold no zero of the largest exponents; the others take a few programs."""
    drawn = case(20008)
    path = map_terms(drawn.datapath, lambda term: replace(term, fraction_bits=None, zero_exponent=-100))
    numbers = [number for number in field_choices.zero_exponents(path) if number is not None]
    group = path, [roles.zeros(roles.term_roles(path)[0], numbers)]
    known: Programs = {}
    quick, slow = Combinations(*group, known), OneByOne(*group)
    assert np.array_equal(quick.valid, slow.valid)
    assert 100 < len(quick.valid) < len(group[1][0])
    assert len(known) < 40
    some, vectors = quick.valid[::97], mixed_vectors(drawn.instruction, 1, 24)
    assert np.array_equal(quick.evaluate(some, vectors), slow.evaluate(some, vectors))
