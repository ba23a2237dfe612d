"""Random architectures with what few units have: some are recovered, none is answered wrongly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from outcomes import judged
from rare_architectures import FEATURES, FROM, LATER, TELLING, outcome, rare_case, without

from mmaprobe.models.engine import evaluate_many
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
