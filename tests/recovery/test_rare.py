"""Random architectures with what few units have: some are recovered, none is answered wrongly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from outcomes import judged
from rare_architectures import (
    DRAWN_FROM,
    FEATURES,
    FROM,
    LATER,
    SHORT,
    SHORT_FROM,
    TELLING,
    outcome,
    rare_case,
    without,
)
from test_interpreters import DEPTH, check, mixed
from test_oracle import by_oracle

from mmaprobe import formats
from mmaprobe.models import stages
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
@pytest.mark.parametrize(("first", "features"), [(FROM, LATER), (SHORT_FROM, SHORT)])
def test_later_features_are_drawn_from_their_seeds_on(first: int, features: dict[str, object]) -> None:
    made = [rare_case(first + seed) for seed in range(4)]
    assert {each.kind for each in made} == set(features)
    for each in made:
        d, plain = evaluate_many([each.datapath, without(each.datapath)], judged(each.instruction, each.datapath))
        assert np.count_nonzero(d != plain) >= TELLING


COMPUTED = {
    "sticky": (15, 5, 7), "carry": (117, 2, 4), "shift": (18, 0, 1), "columns": (35, 3, 6),
    "parts": (FROM + 10, FROM, FROM + 1), "random": (DRAWN_FROM + 2, DRAWN_FROM, DRAWN_FROM + 1),
    "complement": (SHORT_FROM + 21, SHORT_FROM + 1, SHORT_FROM + 2),
    "offset": (SHORT_FROM + 25, SHORT_FROM + 3, SHORT_FROM + 5), "cause": (SHORT_FROM + 38, SHORT_FROM, SHORT_FROM + 9),
}  # fmt: skip
"""Seeds by what they have, each of which engine, stages and oracle compute; the first has few lanes."""


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(kind, seed, marks=[pytest.mark.long] if seed != seeds[0] else [])
        for kind, seeds in COMPUTED.items() for seed in seeds
    ],
)  # fmt: skip
def test_random_units_with_a_feature_are_computed_alike(kind: str, seed: int) -> None:
    """As deep as the shipped datapaths are compared (``MMAPROBE_DEPTH``)."""
    made = rare_case(seed)
    path, instruction = made.datapath, made.instruction
    assert made.kind == kind
    assert instruction.random == path.random
    for count, expected in ((DEPTH.stages, stages.evaluate), (DEPTH.oracle, by_oracle)):
        for vectors in mixed(instruction, seed, count):
            check(path, vectors, np.asarray(expected(path, vectors), formats.get(path.d).dtype))


@pytest.mark.parametrize("seed", [DRAWN_FROM, DRAWN_FROM + 19])
def test_random_units_that_round_by_random_bits_are_found(seed: int) -> None:
    found = outcome(seed)
    assert (found.kind, found.verdict) == ("random", "recovered"), found.line
