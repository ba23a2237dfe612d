"""``pytest probes --device cpu``: every question to every instruction that the device runs here.

A finding must not be contradictory, and where a reference (``--ref``, or the model of the device's
architecture) knows the instruction, the same probe on it must give the same
answer.  An inconclusive finding skips and says why.  ``-k vdpbf16ps`` picks instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import short
from mmaprobe.catalog.states import modes
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError
from mmaprobe.evidence.records import Finding
from mmaprobe.probing import probe
from mmaprobe.pytest_plugin import Least, answered, device_of, reference_of, suite_device
from mmaprobe.report.mismatches import disagreement_text
from mmaprobe.validation.pair import Pair


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a device or a reference that cannot be opened, in one line; a device that is not here skips later."""
    config = session.config
    device = suite_device(config)
    if device is not None:
        if config.getoption("--ref"):
            reference_of(config, device).instructions()
        Least(config, 1, "answered a question")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each instruction that the device runs here, in each control state that it may obey."""
    if "instruction" not in metafunc.fixturenames:
        return
    try:
        device = device_of(metafunc.config)
    except NotHereError:
        metafunc.parametrize("instruction", [None], ids=["device not here"])
        return
    every = [mode for instruction in device.instructions() for mode in modes(instruction)]
    here = [instruction for instruction in every if device.supports(instruction)]
    metafunc.parametrize("instruction", here, ids=[short(instruction.id) for instruction in here])


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
        assert found.status != "contradictory", f"{instruction.id} on {device.name}: {found.text}"
        if reference is not None and reference.supports(instruction):
            expected = answers(reference, instruction)[question]
            pair = Pair(device, reference, instruction)
            assert found.answer == expected.answer, disagreement_text(found, expected, pair)
        if found.status == "inconclusive":
            pytest.skip(f"inconclusive: {found.text}")
        answered(record_property, instruction)
        return found

    return ask
