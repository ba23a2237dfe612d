"""``pytest validation --device NAME --ref NAME --plan smoke``: a plan's instructions, one test a control state."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import short
from mmaprobe.catalog.states import modes
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError
from mmaprobe.pytest_plugin import device_of

PLANS = Path(__file__).parent / "plans"


@dataclass(frozen=True)
class Plan:
    """What to validate: globs of instructions, generators (none: all), vectors a control state."""

    name: str
    vectors: int
    instructions: tuple[str, ...]
    states: bool = False
    generators: tuple[str, ...] = ()


def read_plan(path: Path) -> Plan:
    """The plan in a file; TypeError naming a key that no plan has."""
    table = tomllib.loads(path.read_text())
    for key in ("instructions", "generators"):
        table[key] = tuple(table.get(key, ()))
    return Plan(path.stem, **table)


def pytest_addoption(parser: pytest.Parser) -> None:
    names = sorted(path.stem for path in PLANS.glob("*.toml"))
    parser.getgroup("mmaprobe").addoption("--plan", default="smoke", choices=names, help="plan to run")


def targets(device: Device, plan: Plan) -> list[Instruction]:
    """The plan's instructions that run on the device, with their control states where the plan wants them."""
    found = []
    for base in device.instructions():
        wanted = any(fnmatchcase(base.id, glob) or fnmatchcase(short(base.id), glob) for glob in plan.instructions)
        if wanted and device.supports(base):
            found += modes(base) if plan.states else (base,)
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" not in metafunc.fixturenames:
        return
    plan = read_plan(PLANS / f"{metafunc.config.getoption('--plan')}.toml")
    try:
        found = targets(device_of(metafunc.config), plan)
    except NotHereError:
        found = []
    metafunc.parametrize("target", found, ids=[each.id for each in found])


@pytest.fixture(scope="session")
def plan(pytestconfig: pytest.Config) -> Plan:
    """The plan that ``--plan`` names."""
    return read_plan(PLANS / f"{pytestconfig.getoption('--plan')}.toml")
