"""pytest options and fixtures for suites that run on any device: ``--device --ref --catalog --seed``.

``pytest probes --device cuda:0 --ref model:sm_90a --seed 7 --require-gpu``.
``--catalog FILE`` adds instructions and architectures from outside of the package.
Without a device on this machine the tests skip and say why; with
``--require-gpu`` that is an error, so that a GPU runner without its GPU is
never green.  A suite that is about instructions registers ``Least``: a session
without answers is never green either.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state
from mmaprobe.devices.base import Device, open_device, schemes
from mmaprobe.errors import DeviceError, NotHereError, UsageError, near
from mmaprobe.evidence.unexpected_ends import interrupting
from mmaprobe.generators.seeds import fixed, seed_of
from mmaprobe.parameters.lookup import add_catalog
from mmaprobe.vendors import gpus, vendor_called

ANSWERED = "instruction"
"""The property of a test's report that names the instruction it had an answer of."""
DRAWN = pytest.StashKey[bool]()
"""Whether nobody fixed the seed of the session."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    group = parser.getgroup("mmaprobe", "matrix units under test")
    group.addoption("--device", default="cpu", metavar="NAME", help="device under test (default: cpu)")
    group.addoption("--ref", default=None, metavar="NAME", help="reference device (default: the model that fits)")
    group.addoption(
        "--catalog", action="append", default=[], metavar="FILE", help="add the instructions and architectures of FILE"
    )
    group.addoption("--seed", default=None, type=int, metavar="N", help="seed of everything random (default: drawn)")
    group.addoption("--require-gpu", action="store_true", help="fail, instead of skipping, without a GPU device")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a device that nobody registered, and ``--require-gpu`` with a device that is no GPU; add catalog files,
    draw the seed."""
    known = schemes()
    for option in ("--device", "--ref"):
        name = config.getoption(option)
        if name is not None and str(name).partition(":")[0] not in known:
            raise pytest.UsageError(f"{option} {name}: unknown device{near(str(name).partition(':')[0], known)}")
    name = str(config.getoption("--device"))
    scheme = name.partition(":")[0]
    if config.getoption("--require-gpu") and vendor_called(scheme) is None:
        raise pytest.UsageError(f"--require-gpu needs --device {gpus('N', ' or ')}, not {name}")
    try:
        for path in config.getoption("--catalog"):
            add_catalog(path)
        config.stash[DRAWN] = fixed(config.option.seed) is None
        config.option.seed = seed_of(config.option.seed)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print a seed that was drawn, with the command that repeats it, where a test takes it: quiet runs too."""
    config, terminal = session.config, session.config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or not config.stash[DRAWN]:
        return
    if any("seed" in getattr(item, "fixturenames", ()) for item in session.items):
        words = ["pytest", *map(str, config.invocation_params.args), "--seed", str(config.option.seed)]
        terminal.write_line(f"seed {config.option.seed}; the same vectors again: {shlex.join(words)}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Without its GPU a session that requires one never begins."""
    if session.config.getoption("--require-gpu"):
        try:
            device_of(session.config)
        except (NotHereError, DeviceError) as error:
            raise pytest.UsageError(f"--require-gpu: {error}") from None


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
            text = f"{len(self.seen)} instructions {self.what}; at least {self.least} must be"
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
    """``--ref``, or the model of the device's architecture; pytest.UsageError with the reason where there is none."""
    if config.getoption("--ref"):
        try:
            return device_of(config, "--ref")
        except (NotHereError, DeviceError) as error:
            raise pytest.UsageError(f"--ref {config.getoption('--ref')}: {error}") from None
    architecture = device.info().get("architecture")
    if architecture is None or device.name.startswith("model:"):
        kind = "is a model itself" if architecture else "names no architecture"
        raise pytest.UsageError(f"{device.name} {kind}: name the reference with --ref")
    try:
        return open_device(f"model:{architecture}")
    except (UsageError, NotHereError) as error:
        raise pytest.UsageError(f"no model fits {device.name}: {error}; name the reference with --ref") from None


def device_of(config: pytest.Config, option: str = "--device") -> Device:
    """The device that an option names; NotHereError where it is missing, pytest.UsageError for a wrong name."""
    try:
        return open_device(str(config.getoption(option)))
    except NotHereError:
        raise
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.fixture(scope="session")
def device(pytestconfig: pytest.Config) -> Device:
    """The device under test."""
    try:
        return device_of(pytestconfig)
    except NotHereError as error:
        if pytestconfig.getoption("--require-gpu"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def reference(pytestconfig: pytest.Config, device: Device) -> Device | None:
    """``--ref``, or the model of the device's architecture; None where no model fits."""
    try:
        return reference_of(pytestconfig, device)
    except pytest.UsageError:
        if pytestconfig.getoption("--ref"):
            raise
        return None


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config, record_testsuite_property: Callable[[str, object], None]) -> int:
    """``--seed``, else that of ``MMAPROBE_SEED``, else one that was drawn; JUnit has it as a property."""
    number = int(pytestconfig.getoption("--seed"))
    record_testsuite_property("seed", number)
    return number
