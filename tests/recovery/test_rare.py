"""Random architectures with what few units have: some are recovered, none is answered wrongly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from outcomes import judged
from rare_architectures import DRAWN, DRAWN_FROM, FEATURES, FROM, LATER, TELLING, outcome, rare_case, without
from test_oracle import by_oracle

from mmaprobe.models import stages
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import take
from mmaprobe.parameters.datapath import Fused, walk

RECOVERED = {14: "sticky", 17: "carry", 18: "shift", 21: "columns"}
"""Seeds that are recovered, by what they have."""


@pytest.mark.long
@pytest.mark.parametrize("seed", RECOVERED)
def test_what_few_units_have_is_found(seed: int) -> None:
    found = outcome(seed)
    assert (found.kind, found.verdict) == (RECOVERED[seed], "recovered"), found.line


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 2, 12])
def test_what_is_not_found_is_not_answered(seed: int) -> None:
    found = outcome(seed, allowance=80_000_000)
    assert found.verdict in ("recovered", "inconclusive"), found.line


@pytest.mark.long
def test_every_feature_is_drawn_and_shows() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(16):
        made = rare_case(seed)
        d, plain = evaluate_many([made.datapath, without(made.datapath)], judged(made.instruction, made.datapath))
        assert np.count_nonzero(d != plain) >= TELLING
        assert made.kind == "columns" or any(isinstance(node, Fused) for node in walk(made.datapath.tree))
        kinds[made.kind] += 1
    assert set(kinds) == set(FEATURES)


@pytest.mark.long
def test_later_features_are_drawn_from_their_seeds_on() -> None:
    made = [rare_case(FROM + seed) for seed in range(4)]
    assert {each.kind for each in made} == set(LATER)
    for each in made:
        d, plain = evaluate_many([each.datapath, without(each.datapath)], judged(each.instruction, each.datapath))
        assert np.count_nonzero(d != plain) >= TELLING


@pytest.mark.parametrize("seed", range(DRAWN_FROM, DRAWN_FROM + 12))
def test_random_units_that_round_by_random_bits_are_computed_alike(seed: int) -> None:
    made = rare_case(seed)
    assert made.kind in DRAWN
    assert made.instruction.random == made.datapath.random
    vectors = judged(made.instruction, made.datapath)
    d, plain = evaluate_many([made.datapath, without(made.datapath)], vectors)
    assert np.count_nonzero(d != plain) >= TELLING
    some = np.random.default_rng(seed).permutation(vectors.size)[:1500]
    assert (stages.evaluate(made.datapath, take(vectors, some)) == d[some]).all()
    few = some[: max(2, 400 // made.datapath.k)]
    assert by_oracle(made.datapath, take(vectors, few)) == d[few].tolist()


@pytest.mark.parametrize("seed", [DRAWN_FROM, DRAWN_FROM + 19])
def test_random_units_that_round_by_random_bits_are_found(seed: int) -> None:
    found = outcome(seed)
    assert (found.kind, found.verdict) == ("random", "recovered"), found.line
