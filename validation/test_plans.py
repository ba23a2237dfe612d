"""Hold a device against its reference, vector by vector, as the chosen plan says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.pytest_plugin import answered
from mmaprobe.validation import validate
from mmaprobe.validation.core_by_core import validate_cores

if TYPE_CHECKING:
    from conftest import Plan


def test_every_bit_agrees(
    device: Device, target: Instruction, reference: Device, seed: int, plan: Plan,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    if not reference.supports(target):
        pytest.skip(f"no reference for {target.id}: name one with --ref, or derive its datapath first")
    generators = plan.fitting(target)
    assert generators is None or generators, f"none of the plan's generators fits {target.id}"
    compare = validate_cores if plan.cores else validate
    summary = compare(device, reference, target, plan.vectors, seed, generators)
    if summary.interrupted:
        raise KeyboardInterrupt
    where = summary.screening or summary.batches
    assert summary.exit_code == 0, (
        f"{summary.verdict}: {summary.mismatches:,} mismatches; {where}; {summary.examples[:1]}"
    )
    assert summary.vectors >= plan.least_vectors, "fewer vectors were compared than the plan demands"
    answered(record_property, target)
