"""``pytest validation --device NAME --ref NAME --plan smoke``: a plan's instructions, one test a control state.

A session begins where all that the plan names is there, and is green where at least what it demands was compared.
"""

from __future__ import annotations

import pytest

from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import PlanWork, work_of
from mmaprobe.devices.base import Device
from mmaprobe.pytest_plugin.suites import SUITES, DeviceSuite, Least, begin_suite, reference_of, suite_of

NAME, PLAN = "validation", "smoke"
"""The suite, and the plan that it follows where ``--plan`` names none."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the plan's instructions; pytest.UsageError where the reference has none of them."""
    config = session.config
    suite = begin_suite(config, NAME, PLAN)
    if suite.device is not None:
        reference = reference_of(config, suite.device)
        if not any(reference.supports(made) for made in suite.instructions):
            made = suite.instructions[0]
            why = reference.supports(made).reason or "and does not say why"
            raise pytest.UsageError(f"{reference.name} has none of the plan's instructions: {made.id}: {why}")
        Least(config, _plan(suite).least_instructions, f"compared as plan {_plan(suite).name} wants")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the generators of which nothing was compared: nobody is to take them for tried."""
    suite = terminalreporter.config.stash.get(SUITES, {}).get(NAME)
    if suite is not None and suite.instructions and (left := _plan(suite).unfitting(suite.instructions)):
        kinds = ", ".join(dict.fromkeys(f"{made.a} x {made.b}" for made in suite.instructions))
        few = f"plan {_plan(suite).name}: generators that fit none of these instructions ({kinds})"
        terminalreporter.write_line(f"{few}, so not run: {', '.join(left)}", yellow=True)


def _plan(suite: DeviceSuite) -> ValidationPlan:
    assert suite.plan is not None, "validation has a plan where nobody names one"
    return suite.plan


@pytest.fixture(scope="session")
def plan(pytestconfig: pytest.Config) -> ValidationPlan:
    """The plan that ``--plan`` names."""
    return _plan(suite_of(pytestconfig, NAME))


@pytest.fixture(scope="session")
def work(plan: ValidationPlan, device: Device, reference: Device, seed: int) -> PlanWork:
    """The plan's parts for the device and its reference."""
    return work_of(plan, device, reference, seed)
