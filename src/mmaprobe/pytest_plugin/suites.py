"""A suite that begins: its device, its reference, the instructions that its tests are about, and how many must be
answered for.

A session without answers is never green, nor one that holds a device against itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state, modes
from mmaprobe.devices.base import Device, open_device
from mmaprobe.devices.model import ModelDevice
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence.unexpected_ends import interrupting
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.showing import counted

if TYPE_CHECKING:
    from mmaprobe.campaigns.plan import ValidationPlan

ANSWERED = "instruction"
"""The property of a test's report that names the instruction it had an answer of."""


@dataclass(frozen=True)
class DeviceSuite:
    """What a suite is about: a plan, where it follows one, and instructions in their control states; without a device
    none of them."""

    device: Device | None
    plan: ValidationPlan | None
    instructions: tuple[Instruction, ...]


SUITES = pytest.StashKey[dict[str, DeviceSuite]]()
OPENED = pytest.StashKey[dict[str, Device]]()


def begin_suite(config: pytest.Config, name: str, plan: str = "") -> DeviceSuite:
    """Open the device and find its instructions: those of ``--plan``, else of ``plan``, else all that it runs.

    pytest.UsageError, in one line, for a device that cannot be opened or runs nothing, and for a plan that names what
    is not there.  A device that is not on this machine makes every test skip.
    """
    from mmaprobe.campaigns.plan import read_plan, targets_of  # every session of pytest loads the plug-in

    try:
        wanted = str(config.getoption("--plan") or plan)
        chosen = read_plan(wanted) if wanted else None
        device = suite_device(config)
        found = [] if device is None else targets_of(chosen, device)[0] if chosen else _every(device)
    except (UsageError, NotHereError) as error:
        raise pytest.UsageError(str(error)) from None
    suite = DeviceSuite(device, chosen, tuple(found))
    config.stash.setdefault(SUITES, {})[name] = suite
    return suite


def suite_of(config: pytest.Config, name: str) -> DeviceSuite:
    """The suite of this name; pytest.UsageError where its folder was not named, so that it never began."""
    suites = config.stash.get(SUITES, {})
    if name not in suites:
        raise pytest.UsageError(f"the suite {name} begins where its folder is named: pytest {name}")
    return suites[name]


def _every(device: Device) -> list[Instruction]:
    """What a device runs, each in the control states that it may obey."""
    return [mode for made in device.instructions() for mode in modes(made) if device.supports(mode)]


class Least:
    """Makes a session red in which fewer than ``least`` instructions were answered for, by ``answered``.

    The reports of workers count where they come together; ``what`` says what was to be done with each instruction.
    """

    def __init__(self, config: pytest.Config, least: int, what: str) -> None:
        self.config, self.least, self.what = config, least, what
        self.seen: set[object] = set()
        config.pluginmanager.register(self)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the instructions of a report."""
        self.seen |= {value for name, value in report.user_properties if name == ANSWERED}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn green into red where too little was done."""
        judges = not hasattr(self.config, "workerinput") and not self.config.option.collectonly
        if judges and len(self.seen) < self.least and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many they were."""
        if not self.config.option.collectonly:
            text = f"{counted(len(self.seen), 'instruction')} {self.what}; at least {self.least} must be"
            terminalreporter.write_line(text, red=len(self.seen) < self.least)


def answered(record: Callable[[str, object], None], instruction: Instruction) -> None:
    """Tell ``Least``, by the fixture ``record_property``, that a test is about this instruction and had its answer."""
    record(ANSWERED, default_state(instruction).id)


def suite_device(config: pytest.Config) -> Device | None:
    """The device of a suite that begins; None where it is not on this machine, so that every test skips.

    pytest.UsageError where it cannot be opened or runs nothing.  From here on SIGTERM and SIGHUP end the session as
    Ctrl-C does.
    """
    ending = ExitStack()
    ending.enter_context(interrupting())
    config.add_cleanup(ending.close)
    try:
        device = device_of(config)
        listed = device.instructions()
        if any(device.supports(made) for made in listed):
            return device
    except NotHereError:
        return None
    except DeviceError as error:
        raise pytest.UsageError(f"--device {config.getoption('--device')}: {error}") from None
    why = next((f": {reason}" for made in listed if (reason := device.supports(made).reason)), "")
    raise pytest.UsageError(f"{device.name} offers no instruction{why}")


def reference_of(config: pytest.Config, device: Device) -> Device:
    """``--ref``, or the model of the device's architecture; pytest.UsageError with the reason where there is none, and
    where it is the device itself."""
    if config.getoption("--ref"):
        try:
            reference = device_of(config, "--ref")
        except (NotHereError, DeviceError) as error:
            raise pytest.UsageError(f"--ref {config.getoption('--ref')}: {error}") from None
        if _same(device, reference):
            raise pytest.UsageError(f"--ref {reference.name} is the device itself, which agrees with itself; name "
                                    "another one")  # fmt: skip
        return reference
    architecture = device.info().get("architecture")
    if architecture is None or is_model(device):
        kind = "is a model itself" if architecture else "names no architecture"
        raise pytest.UsageError(f"{device.name} {kind}: name the reference with --ref")
    try:
        return open_device(f"model:{architecture}")
    except (UsageError, NotHereError) as error:
        raise pytest.UsageError(f"no model fits {device.name}: {error}; name the reference with --ref") from None


def is_model(device: Device) -> bool:
    """Whether a device is a parameter file."""
    return device.name.startswith("model:")


def _same(one: Device, other: Device) -> bool:
    """Whether two devices are one: by their names, or two models of an architecture by their datapaths, however the
    files are called and whatever else they say."""
    if isinstance(one, ModelDevice) and isinstance(other, ModelDevice):
        return one.architecture == other.architecture and _datapaths(one) == _datapaths(other)
    return one.name == other.name


def _datapaths(model: ModelDevice) -> dict[str, Datapath]:
    return {primitive: entry.datapath for primitive, entry in model.parameters.entries.items()}


def device_of(config: pytest.Config, option: str = "--device") -> Device:
    """The device that an option names, opened once a session; NotHereError where it is missing, pytest.UsageError for
    a wrong name."""
    opened, name = config.stash.setdefault(OPENED, {}), str(config.getoption(option))
    try:
        if name not in opened:
            opened[name] = open_device(name)
    except NotHereError:
        raise
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    return opened[name]
