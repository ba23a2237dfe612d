"""The probes on random architectures: an exact tree is the true one, and no number of an exact finding is wrong."""

from __future__ import annotations

import os

import pytest
from outcomes import BlackBox
from random_architectures import case

from mmaprobe.probing import probe
from second_source.findings import contradiction

COUNT = int(os.environ.get("MMAPROBE_FINDINGS", "30"))
SEEDS = [
    *range(COUNT),
    *(seed for seed in (32, 43, 52, 60, 71, 73, 75, 87, 97, 115, 130, 139, 150, 178, 185) if seed >= COUNT),
    *(seed for seed in (221, 223, 249, 257, 282, 303, 381, 382, 403, 537, 551, 571, 616, 624, 642) if seed >= COUNT),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_exact_finding_about_a_random_architecture_is_wrong(seed: int) -> None:
    drawn = case(seed)
    found = probe(BlackBox(drawn.instruction, drawn.datapath), drawn.instruction)
    wrong = [text for finding in found.values() if (text := contradiction(drawn.datapath, finding))]
    wrong += [f"{name}: {finding.text}" for name, finding in found.items() if finding.status == "contradictory"]
    assert not wrong
