"""``pytest probes --device cpu``: every question to every instruction that the device runs here.

A finding must not be contradictory, and where a reference (``--ref``, or the model of the device's
architecture) knows the instruction, the same probe on it must give the same
answer.  An inconclusive finding skips and says why.  ``-k vdpbf16ps`` picks instructions, ``--plan`` those of a plan.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import DeviceError
from mmaprobe.evidence.records import Finding
from mmaprobe.probing import probe
from mmaprobe.pytest_plugin.suites import Least, answered, begin_suite, is_model, reference_of
from mmaprobe.report.mismatches import disagreement_text
from mmaprobe.validation.pair import Pair


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the instructions, those of ``--plan`` or all that run here, and the reference where one is named or must
    be; pytest.UsageError for a recording."""
    config = session.config
    suite = begin_suite(config, "probes")
    if isinstance(suite.device, Replay):
        what = "a recording answers what it holds, and no probe"
        raise pytest.UsageError(f"{what}: pytest validation --device {suite.device.name}")
    if suite.device is not None:
        if config.getoption("--ref") or is_model(suite.device):
            reference_of(config, suite.device).instructions()
        Least(config, suite.plan.least_instructions if suite.plan else 1, "answered a question")


@pytest.fixture(scope="session")
def answers(seed: int) -> Callable[[Device, Instruction], dict[str, Finding]]:
    """All findings of a device about an instruction, asked once a session."""
    known: dict[tuple[str, str], dict[str, Finding]] = {}

    def ask(device: Device, instruction: Instruction) -> dict[str, Finding]:
        key = device.name, instruction.id
        if key not in known:
            known[key] = probe(device, instruction, seed=seed)
        return known[key]

    return ask


@pytest.fixture
def agreed(
    device: Device,
    reference: Device | None,
    instruction: Instruction,
    answers: Callable[[Device, Instruction], dict[str, Finding]],
    record_property: Callable[[str, object], None],
) -> Callable[[str], Finding]:
    """The device's finding, after holding it against the reference's."""

    def ask(question: str) -> Finding:
        found = answers(device, instruction)[question]
        if found.status != "inconclusive":
            answered(record_property, instruction)
        if found.status == "contradictory":  # no difference that anybody expects
            raise DeviceError(f"{instruction.id} on {device.name}: {found.text}")
        if reference is not None and reference.supports(instruction):
            expected = answers(reference, instruction)[question]
            pair = Pair(device, reference, instruction)
            assert found.answer == expected.answer, disagreement_text(found, expected, pair)
        if found.status == "inconclusive":
            pytest.skip(f"inconclusive: {found.text}")
        return found

    return ask
