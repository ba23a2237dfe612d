"""How many vectors of what, in which order: no vector is compared here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.store import Store
from mmaprobe.runs import validating
from mmaprobe.runs.plan import plan_of
from mmaprobe.runs.validating import DISTINCT, EACH, MAIN, RISING
from mmaprobe.validation import FamilyCount, Summary

MODEL = "model:sm_90a"
GLOB = "*mma*k16.f32.f16.f16*"


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Instructions in the order in which their counts reach a weight, with a ``validate`` that takes no time."""
    counts: dict[str, int] = {}
    order: list[tuple[str, int]] = []

    def validate(device: Any, reference: Any, made: Instruction, vectors: int, seed: int, **_: Any) -> Summary:
        before = counts.get(made.id, 0)
        counts[made.id] = before + vectors
        order.extend((made.id, weight) for weight in (EACH, *RISING, MAIN) if before < weight <= counts[made.id])
        families = (("uniform", FamilyCount(vectors)),)
        return Summary(made.id, "", "", seed, vectors, vectors, 0, families, (), 1.0)

    monkeypatch.setattr(validating, "validate", validate)
    return order


def test_everything_a_little_before_anything_much(tmp_path: Path, reached: list[tuple[str, int]]) -> None:
    """All forms reach 10^6, then all distinct ones 10^9, then the main ones 10^11; other sizes and modifiers last."""
    plan = plan_of(open_device(MODEL), GLOB)
    mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["validation"], instruction=GLOB)
    parts = Store.open(tmp_path / "e").parts
    for made in plan.asked:
        weight = MAIN if made in plan.main else DISTINCT if made in plan.distinct else EACH
        assert parts[made.id].vectors == weight
        assert sum(run["vectors"] for run in parts[made.id].validation["runs"]) == weight
        assert len({run["seed"] for run in parts[made.id].validation["runs"]}) == len(parts[made.id].validation["runs"])
    bases = {made.id for made in plan.bases}
    last = {weight: max(i for i, (name, at) in enumerate(reached) if at == weight and name in bases)
            for weight in (EACH, DISTINCT, MAIN)}  # fmt: skip
    first = {weight: min(i for i, (_, at) in enumerate(reached) if at == weight) for weight in (DISTINCT, MAIN)}
    assert last[EACH] < first[DISTINCT] <= last[DISTINCT] < first[MAIN] <= last[MAIN]
    assert {name for name, _ in reached[last[MAIN] + 1 :]} == {made.id for made in plan.asked} - bases


def test_what_is_slow_takes_nobody_s_time(
    tmp_path: Path, reached: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU those without a fused kernel come after all others, by rising weights."""
    plan = plan_of(open_device(MODEL), GLOB)
    quick = plan.main[0]
    monkeypatch.setattr(validating, "fused", lambda device, reference, made, *_: made == quick or None)
    monkeypatch.setattr(validating, "runs_campaigns", lambda device: True)
    mmaprobe.bring_up(MODEL, out=tmp_path / "e", steps=["validation"], instruction=GLOB)
    slow = {made.id for made in plan.distinct} - {quick.id}
    rest = [(name, weight) for name, weight in reached if name in slow and weight > EACH]
    assert [weight for _, weight in rest] == sorted(weight for _, weight in rest)
    before = reached[: reached.index(rest[0])]
    assert (quick.id, MAIN) in before
    assert {made.id for made in plan.asked} == {name for name, weight in before if weight == EACH}
