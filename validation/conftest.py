"""``pytest validation --device NAME --ref NAME --plan smoke``: a plan's instructions, one test a control state.

A session begins where all that the plan names is there, and is green where at least what it demands was compared.
"""

from __future__ import annotations

import pytest

from mmaprobe.campaigns.plan import ValidationPlan, read_plan, targets_of
from mmaprobe.campaigns.shard import PlanWork, work_of
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.pytest_plugin import Least, reference_of, suite_device

PLAN = pytest.StashKey[ValidationPlan]()
TARGETS = pytest.StashKey[list[Instruction]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("mmaprobe").addoption("--plan", default="smoke", metavar="NAME", help="plan to run, or its file")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the plan's instructions; pytest.UsageError where the plan names what is not there, or nothing is left."""
    config = session.config
    try:
        plan = config.stash[PLAN] = read_plan(config.getoption("--plan"))
        device = suite_device(config)
        config.stash[TARGETS] = [] if device is None else targets_of(plan, device)[0]
    except (UsageError, NotHereError) as error:
        raise pytest.UsageError(str(error)) from None
    if device is not None:
        reference = reference_of(config, device)
        if not any(reference.supports(made) for made in config.stash[TARGETS]):
            made = config.stash[TARGETS][0]
            why = reference.supports(made).reason or "and does not say why"
            raise pytest.UsageError(f"{reference.name} has none of the plan's instructions: {made.id}: {why}")
        Least(config, plan.least_instructions, f"had {plan.least_vectors:,} vectors compared")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the generators of which nothing was compared: nobody is to take them for tried."""
    stash = terminalreporter.config.stash
    if TARGETS in stash and stash[TARGETS] and (left := stash[PLAN].unfitting(stash[TARGETS])):
        kinds = ", ".join(dict.fromkeys(f"{made.a} x {made.b}" for made in stash[TARGETS]))
        few = f"plan {stash[PLAN].name}: generators that fit none of these instructions ({kinds})"
        terminalreporter.write_line(f"{few}, so not run: {', '.join(left)}", yellow=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        found = metafunc.config.stash[TARGETS]
        metafunc.parametrize("target", found or [None], ids=[each.id for each in found] or ["device not here"])


@pytest.fixture(scope="session")
def plan(pytestconfig: pytest.Config) -> ValidationPlan:
    """The plan that ``--plan`` names."""
    return pytestconfig.stash[PLAN]


@pytest.fixture(scope="session")
def work(plan: ValidationPlan, device: Device, reference: Device, seed: int) -> PlanWork:
    """The plan's parts for the device and its reference."""
    return work_of(plan, device, reference, seed)
