"""Hold a device against its reference, vector by vector, as the chosen plan says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mmaprobe.campaigns.campaign import compare_one
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import DeviceError
from mmaprobe.exit_codes import DEVICE_FAILED
from mmaprobe.pytest_plugin.suites import answered
from mmaprobe.report.mismatches import failure_text

if TYPE_CHECKING:
    from mmaprobe.campaigns.plan import ValidationPlan
    from mmaprobe.campaigns.shard import PlanWork

pytestmark = pytest.mark.suite("validation")


def test_every_bit_agrees(
    instruction: Instruction, reference: Device, plan: ValidationPlan, work: PlanWork,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    if not reference.supports(instruction):
        pytest.skip(f"no reference for {instruction.id}: name one with --ref, or derive its datapath first")
    if plan.fitting(instruction) == ():
        pytest.fail(f"none of the plan's generators fits {instruction.id}")
    row = compare_one(work, instruction, plan.minutes / len({part.instruction for part in work.parts}))
    if row.error:
        raise DeviceError(row.error)
    if row.unfinished and row.vectors < plan.least_vectors:
        pytest.fail(f"{row.vectors:,} vectors: fewer vectors were compared than the plan demands")
    if row.summary is None or not row.vectors:
        pytest.fail(f"nothing is known of {instruction.id} to compare it with")
    answered(record_property, instruction)
    if row.exit_code == DEVICE_FAILED:  # what contradicts itself is no difference that anybody expects
        raise DeviceError(failure_text(row.summary))
    assert row.exit_code == 0, failure_text(row.summary)
