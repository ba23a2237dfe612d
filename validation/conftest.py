"""``pytest validation --device NAME --ref NAME --plan smoke``: a plan's instructions, one test a control state.

A session begins where all that the plan names is there, and is green where at least what it demands was compared.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import short
from mmaprobe.catalog.states import modes
from mmaprobe.devices.base import Device
from mmaprobe.errors import near
from mmaprobe.generators import families_for
from mmaprobe.generators.families import FAMILIES
from mmaprobe.pytest_plugin import Least, reference_of, suite_device

PLANS = Path(__file__).parent / "plans"
KEYS = {"vectors": int, "instructions": list, "states": bool, "generators": list, "least_instructions": int,
        "least_vectors": int, "cores": bool}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What to validate: globs of instructions, generators (none: all), vectors a control state.

    ``least_instructions`` must be compared on at least ``least_vectors`` each (by default ``vectors``) in every
    control state that is asked, or the session is red.  ``cores``: on each core in turn.
    """

    name: str
    vectors: int
    instructions: tuple[str, ...]
    least_instructions: int
    least_vectors: int
    states: bool = False
    generators: tuple[str, ...] = ()
    cores: bool = False

    def fitting(self, made: Instruction) -> list[str] | None:
        """The plan's generators that fit an instruction; None for all where it names none."""
        return [name for name in self.generators if name in families_for(made)] if self.generators else None

    def unfitting(self, chosen: Sequence[Instruction]) -> tuple[str, ...]:
        """The plan's generators that none of the instructions takes: by their formats there are no such vectors."""
        return tuple(name for name in self.generators if not any(name in families_for(made) for made in chosen))


PLAN = pytest.StashKey[Plan]()
TARGETS = pytest.StashKey[list[Instruction]]()


def read_plan(name: str) -> Plan:
    """The plan of this name, or in this file; pytest.UsageError naming the key that is wrong."""
    path = Path(name) if name.endswith(".toml") else PLANS / f"{name}.toml"
    if not path.exists():
        raise pytest.UsageError(
            f"--plan {name}: no such plan{near(name, [each.stem for each in PLANS.glob('*.toml')])}"
        )
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{path}: {error}") from None
    for key, value in table.items():
        if key not in KEYS:
            raise pytest.UsageError(f"{path}: no plan has a key {key!r}{near(key, KEYS)}")
        if type(value) is not KEYS[key] or (KEYS[key] is int and value < 1):
            raise pytest.UsageError(f"{path}: {key} is {value!r}; it must be a {KEYS[key].__name__}, of 1 or more")
    for key in ("vectors", "instructions", "least_instructions"):
        if not table.get(key):
            raise pytest.UsageError(f"{path}: a plan needs {key}")
    for name in table.get("generators", ()):
        if name not in FAMILIES:
            raise pytest.UsageError(f"{path}: no generator {name!r}{near(str(name), FAMILIES)}")
    lists = {key: tuple(map(str, table.get(key, ()))) for key in ("instructions", "generators")}
    return Plan(path.stem, **{"least_vectors": table["vectors"], **table, **lists})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("mmaprobe").addoption("--plan", default="smoke", metavar="NAME", help="plan to run, or its file")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the plan's instructions; pytest.UsageError where the plan names what is not there, or nothing is left."""
    config = session.config
    plan = config.stash[PLAN] = read_plan(config.getoption("--plan"))
    device = suite_device(config)
    config.stash[TARGETS] = [] if device is None else targets(device, plan)
    if device is not None:
        reference = reference_of(config, device)
        if not any(reference.supports(made) for made in config.stash[TARGETS]):
            made = config.stash[TARGETS][0]
            why = reference.supports(made).reason or "and does not say why"
            raise pytest.UsageError(f"{reference.name} has none of the plan's instructions: {made.id}: {why}")
        Least(config, plan.least_instructions, f"had {plan.least_vectors:,} vectors compared")


def targets(device: Device, plan: Plan) -> list[Instruction]:
    """The plan's instructions that run on the device, with their control states where the plan wants them."""
    found: list[Instruction] = []
    listed = device.instructions()
    for glob in plan.instructions:
        wanted = [made for made in listed if fnmatchcase(made.id, glob) or fnmatchcase(short(made.id), glob)]
        if not wanted:
            known = [short(made.id) for made in listed]
            raise pytest.UsageError(f"plan {plan.name}: {device.name} has no instruction {glob!r}{near(glob, known)}")
        found += [made for made in wanted if made not in found and device.supports(made)]
    if not found:
        raise pytest.UsageError(f"plan {plan.name}: none of its instructions runs on {device.name}")
    if plan.generators and plan.unfitting(found) == plan.generators:
        names = ", ".join(plan.generators)
        raise pytest.UsageError(
            f"plan {plan.name}: of its generators {names} none fits its instructions, such as {found[0].id}, "
            f"which takes {', '.join(families_for(found[0]))}"
        )
    return [state for made in found for state in (modes(made) if plan.states else (made,))]


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
def plan(pytestconfig: pytest.Config) -> Plan:
    """The plan that ``--plan`` names."""
    return pytestconfig.stash[PLAN]
