"""pytest options and fixtures for suites that run on any device: ``--device --ref --seed --require-gpu``.

``pytest probes --device cuda:0 --ref model:sm_90a --seed 7 --require-gpu``.
Without a device on this machine the tests skip and say why; with
``--require-gpu`` that is an error, so that a GPU runner without its GPU is
never green.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from mmaprobe.devices.base import Device, open_device, schemes
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.generators.seeds import fixed, seed_of

GPU_SCHEMES = ("cuda", "hip")
DRAWN = pytest.StashKey[bool]()
"""Whether nobody fixed the seed of the session."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    group = parser.getgroup("mmaprobe", "matrix units under test")
    group.addoption("--device", default="cpu", metavar="NAME", help="device under test (default: cpu)")
    group.addoption("--ref", default=None, metavar="NAME", help="reference device (default: the model that fits)")
    group.addoption("--seed", default=None, type=int, metavar="N", help="seed of everything random (default: drawn)")
    group.addoption("--require-gpu", action="store_true", help="fail, instead of skipping, without a GPU device")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a device that nobody registered, and ``--require-gpu`` with a device that is no GPU; draw the seed."""
    known = schemes()
    for option in ("--device", "--ref"):
        name = config.getoption(option)
        if name is not None and str(name).partition(":")[0] not in known:
            raise pytest.UsageError(f"{option} {name}: unknown device{near(str(name).partition(':')[0], known)}")
    name = str(config.getoption("--device"))
    scheme = name.partition(":")[0]
    if config.getoption("--require-gpu") and scheme not in GPU_SCHEMES:
        raise pytest.UsageError(f"--require-gpu needs --device cuda:N or hip:N, not {name}")
    try:
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
    if pytestconfig.getoption("--ref"):
        return device_of(pytestconfig, "--ref")
    architecture = device.info().get("architecture")
    if architecture is None or device.name.startswith("model:"):
        return None
    try:
        return open_device(f"model:{architecture}")
    except (UsageError, NotHereError):
        return None


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config, record_testsuite_property: Callable[[str, object], None]) -> int:
    """``--seed``, else that of ``MMAPROBE_SEED``, else one that was drawn; JUnit has it as a property."""
    number = int(pytestconfig.getoption("--seed"))
    record_testsuite_property("seed", number)
    return number
