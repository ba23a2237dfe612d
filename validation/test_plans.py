"""Hold a device against its reference, vector by vector, as the chosen plan says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.generators import families_for
from mmaprobe.validation import validate

if TYPE_CHECKING:
    from conftest import Plan


def test_every_bit_agrees(target: Instruction, device: Device, reference: Device | None, seed: int, plan: Plan) -> None:
    if reference is None or not reference.supports(target):
        pytest.skip(f"no reference for {target.id}: name one with --ref, or derive its datapath first")
    generators = [name for name in plan.generators if name in families_for(target)] or None
    summary = validate(device, reference, target, plan.vectors, seed, generators)
    assert summary.exit_code == 0, (summary.verdict, summary.mismatches, summary.examples[:1])
    assert summary.vectors == plan.vectors
