"""pytest's options and fixtures for suites that run on any device: ``--device --ref --plan --seed``, and what is
expected to differ.

``pytest probes --device cuda:0 --ref model:sm_90a --seed 7 --require-gpu``.
``--catalog FILE`` adds instructions and architectures from outside of the package, ``--plan`` says what a suite is
about, ``--xfails-file FILE`` what is known to differ or not to be run.  Without a device on this machine the tests
skip and say why; with ``--require-gpu`` that is an error, so that a GPU runner without its GPU is never green.  A GPU
named without its number is, under pytest-xdist, another one for each worker.

A test that takes ``instruction`` and is marked ``suite(NAME)`` runs once for each instruction and control state of
the suite, under its short id; the suite's ``conftest.py`` begins it with ``begin_suite``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from mmaprobe.catalog.lookup import short
from mmaprobe.catalog.states import default_state
from mmaprobe.devices.base import Device, schemes
from mmaprobe.errors import DeviceError, NotHereError, UsageError, near
from mmaprobe.generators.seeds import fixed, seed_of
from mmaprobe.parameters.lookup import add_catalog
from mmaprobe.pytest_plugin.expected import Expectations, read_expected
from mmaprobe.pytest_plugin.suites import device_of, is_model, reference_of, suite_of
from mmaprobe.pytest_plugin.workers import DEVICE, GpuEach
from mmaprobe.vendors import gpus, vendor_called

DRAWN = pytest.StashKey[bool]()
"""Whether nobody fixed the seed of the session."""
MARKERS = (
    "suite(name): one test for each instruction of the device under test that the suite is about",
    "control_state: of an instruction in another control state than its default one",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    group = parser.getgroup("mmaprobe", "matrix units under test")
    group.addoption("--device", default="cpu", metavar="NAME", help="device under test (default: cpu)")
    group.addoption("--ref", default=None, metavar="NAME", help="reference device (default: the model that fits)")
    group.addoption("--plan", default=None, metavar="NAME", help="what the suite is about: a plan's name, or its file")
    group.addoption(
        "--catalog", action="append", default=[], metavar="FILE", help="add the instructions and architectures of FILE"
    )
    group.addoption("--seed", default=None, type=int, metavar="N", help="seed of everything random (default: drawn)")
    group.addoption("--require-gpu", action="store_true", help="fail, instead of skipping, without a GPU device")
    group.addoption("--xfails-file", default=None, metavar="FILE", help="what is known to differ, or is not to be run")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a device that nobody registered, and ``--require-gpu`` with a device that is no GPU; add catalog files,
    draw the seed, read what is expected."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.option.device = getattr(config, "workerinput", {}).get(DEVICE, config.option.device)
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
        if config.getoption("--xfails-file") is not None:
            Expectations(config, read_expected(config.getoption("--xfails-file")))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """``-n auto`` with a GPU under test: a worker for each GPU that the name stands for."""
    from mmaprobe.devices.listed import gpu_names  # every session of pytest loads the plug-in

    return len(gpu_names(str(config.getoption("--device")))) or None


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
    """Without its GPU a session that requires one never begins; one of several workers shares the GPUs out."""
    config = session.config
    if config.getoption("--require-gpu"):
        try:
            device_of(config)
        except (NotHereError, DeviceError) as error:
            raise pytest.UsageError(f"--require-gpu: {error}") from None
    if config.pluginmanager.hasplugin("dsession"):
        GpuEach.begin(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test an instruction of the suite, by short id."""
    mark = metafunc.definition.get_closest_marker("suite")
    if mark is None or "instruction" not in metafunc.fixturenames:
        return
    chosen = [
        pytest.param(made, id=short(made.id), marks=[pytest.mark.control_state] if default_state(made) != made else [])
        for made in suite_of(metafunc.config, mark.args[0]).instructions
    ]
    metafunc.parametrize("instruction", chosen or [pytest.param(None, id="device not here")])


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
    """``--ref``, or the model of the device's architecture; None where no model fits; of a model it must be named."""
    try:
        return reference_of(pytestconfig, device)
    except pytest.UsageError:
        if pytestconfig.getoption("--ref") or is_model(device):
            raise
        return None


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config, record_testsuite_property: Callable[[str, object], None]) -> int:
    """``--seed``, else that of ``MMAPROBE_SEED``, else one that was drawn; JUnit has it as a property."""
    number = int(pytestconfig.getoption("--seed"))
    record_testsuite_property("seed", number)
    return number
