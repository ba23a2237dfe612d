"""Hold a device against its reference, vector by vector, as the chosen plan says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mmaprobe.campaigns.campaign import compare_one
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.pytest_plugin import answered
from mmaprobe.report.mismatches import failure_text

if TYPE_CHECKING:
    from mmaprobe.campaigns.plan import ValidationPlan
    from mmaprobe.campaigns.shard import PlanWork


def test_every_bit_agrees(
    target: Instruction, reference: Device, plan: ValidationPlan, work: PlanWork,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    if not reference.supports(target):
        pytest.skip(f"no reference for {target.id}: name one with --ref, or derive its datapath first")
    generators = plan.fitting(target)
    assert generators is None or generators, f"none of the plan's generators fits {target.id}"
    row = compare_one(work, target, plan.minutes / len({part.instruction for part in work.parts}))
    assert not row.error, row.error
    left = row.unfinished and row.vectors < plan.least_vectors
    assert not left, f"{row.vectors:,} vectors: fewer vectors were compared than the plan demands"
    assert row.summary is not None, f"nothing is known of {target.id} to compare it with"
    assert row.exit_code == 0, failure_text(row.summary)
    answered(record_property, target)
