"""Random datapaths written canonically, and changed in several places at once: what is argued, vectors bear out."""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_architectures import case

from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.equivalence.sum_order import canonical
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.neighbours import neighbourhood

VECTORS = 500
AIMED = 3000
TRIED = 25


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_canonical_record_is_the_same_function(first: int) -> None:
    for seed in range(first, first + 20):
        path, made = case(seed).datapath, case(seed).instruction
        written = canonical(path)
        assert canonical(written) == written, seed
        assert np.array_equal(*evaluate_many([path, written], mixed_vectors(made, seed, VECTORS))), seed


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_what_is_proved_is_the_same_function(seed: int) -> None:
    """Two or three changes, each of a field or of the structure."""
    path, made = case(seed).datapath, case(seed).instruction
    draw, near = random.Random(seed), neighbourhood(case(seed).datapath)
    for _ in range(TRIED):
        other = draw.choice(near).datapath
        for _ in range(draw.choice((1, 1, 2))):
            other = draw.choice(neighbourhood(other)).datapath
        proof = same_function(path, other)
        if proof is None:
            continue
        assert all(step.holds for step in proof)
        pools = [mixed_vectors(made, seed, VECTORS)]
        pools += [attack_vectors(made, path, [other], seed, AIMED)] if can_attack(made) else []
        for pool in pools:
            assert np.array_equal(*evaluate_many([path, other], pool)), [step.argument.rule for step in proof]
