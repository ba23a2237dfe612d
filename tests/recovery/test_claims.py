"""What is claimed from the truth is the truth; and the hunt for wrong claims finds one where it is made."""

from __future__ import annotations

import re
from pathlib import Path

import claims
import pytest
import test_random
from outcomes import compared
from random_architectures import case

from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.certify import Settlement
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.neighbours import neighbourhood, neighbours

ONCE_WRONG = (34099, 40177, 40598, 41843, 43355, 50473)
"""Seeds of which another function was claimed, or one left open that the judge tells, although the search began at
the truth."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_once_claimed_wrongly_is_not_claimed(seed: int) -> None:
    assert claims.claim(seed).verdict == "recovered"


def test_every_seed_that_was_once_wrong_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "wrong_claims.md").read_text()
    assert {*ONCE_WRONG, *test_random.ONCE_WRONG} <= {int(number) for number in re.findall(r"\b[0-9]+\b", page)}


@pytest.mark.parametrize("verdict", ["wrong", "left open", "recovered", "unsettled"])
def test_a_claim_is_judged(monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    """Of a neighbour that the judge tells, alone and with the truth left open; of the truth with that neighbour left
    open; of none."""
    drawn = case(7)
    told = (
        near for near in neighbours(drawn.datapath) if compared(drawn.instruction, drawn.datapath, near.datapath)[1]
    )
    other = next(told)
    back = next(near for near in neighbourhood(other.datapath) if near.datapath == drawn.datapath)
    left = {"left open": back[:2], "recovered": other[:2]}.get(verdict)

    def run(self: Settlement, datapath: Datapath, fresh: int) -> Certificate:
        self.state.believed = datapath if verdict == "recovered" else other.datapath
        return Certificate.of({left: None} if left else {}, {left: 0} if left else {})

    if verdict != "unsettled":
        monkeypatch.setattr(Settlement, "run", run)
    found = claims.claim(drawn.seed, allowance=1000 if verdict == "unsettled" else 10**9)
    assert found.verdict == verdict
    assert bool(found.differing and found.changes) == (verdict in ("wrong", "left open"))
    assert bool(found.unseen) == (verdict == "recovered")
