"""A plan: what to validate of a device, against which reference, and how much of it must be compared at least.

Plans are TOML files, those of ``plans`` by their names and others by their paths.  A plan says nothing of a device:
which of its globs name what is settled when it meets one (``targets_of``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.toml import read_toml, shipped, text_of
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError, UsageError, brief, near
from mmaprobe.evidence.files import digest_of, json_text
from mmaprobe.generators import families_for
from mmaprobe.generators.families import FAMILIES
from mmaprobe.options import FLAG, NAMES, TEXT, Rule, whole
from mmaprobe.runs.selection import select
from mmaprobe.validation.stream import MOST

PLANS = ("mmaprobe.campaigns", "plans")
"""Package and folder of the plans that ship."""
MOST_MINUTES = 525_600
"""The minutes of a year: no budget is larger."""
_MINUTES = Rule(
    f"minutes, of more than 0 to {MOST_MINUTES:,}",
    lambda value: type(value) in (int, float) and 0 < value <= MOST_MINUTES,  # type: ignore[operator]
)
_GLOBS = Rule("a list of ids or globs", lambda value: NAMES.holds(value) and bool(value))
KEYS: Mapping[str, Rule] = {
    "about": TEXT, "instructions": _GLOBS, "vectors": whole(1, MOST), "witnesses": FLAG, "states": FLAG,
    "exhaustive": FLAG,
    "generators": _GLOBS, "cores": FLAG, "minutes": _MINUTES, "reference": TEXT,
    "least_instructions": whole(1), "least_vectors": whole(1, MOST),
}  # fmt: skip
"""What a plan's file may say, and how."""
NOT_EXHAUSTIVE = ("vectors", "least_vectors", "witnesses", "generators", "cores")
"""What an exhaustive plan does not say: it compares every vector of every enumeration, once, and no others."""


@dataclass(frozen=True)
class ValidationPlan:
    """``vectors`` of each instruction that a glob of ``instructions`` names, in its default control state or in all
    ``states``, of all generators or those named, after its ``witnesses``; ``cores``: on each core in turn.

    ``exhaustive``: in place of all these every vector of their enumerations (``generators.enumerations``), no fewer.

    ``minutes`` end it early.  At least ``least_instructions`` must be compared, each state of each on at least
    ``least_vectors`` (by default all).  ``reference`` names the device that is right, where nobody names another.
    """

    name: str
    instructions: tuple[str, ...]
    least_instructions: int
    vectors: int = 0
    least_vectors: int = 0
    witnesses: bool = False
    states: bool = False
    generators: tuple[str, ...] = ()
    cores: bool = False
    exhaustive: bool = False
    minutes: float = 0
    reference: str = ""
    about: str = ""

    def fitting(self, made: Instruction) -> tuple[str, ...] | None:
        """The plan's generators that fit an instruction; None for all where it names none."""
        return tuple(name for name in self.generators if name in families_for(made)) if self.generators else None

    def unfitting(self, chosen: Sequence[Instruction]) -> tuple[str, ...]:
        """The plan's generators that none of the instructions takes: by their formats there are no such vectors."""
        return tuple(name for name in self.generators if not any(name in families_for(made) for made in chosen))

    def form(self) -> dict[str, Any]:
        """As a shard keeps it: all that decides what is compared, and not what it is called or how long it takes."""
        fields = asdict(self)
        return {name: list(each) if isinstance(each, tuple) else each for name, each in fields.items()
                if name not in ("about", "minutes")}  # fmt: skip

    @property
    def digest(self) -> str:
        """What tells it from every other plan: 12 hexadecimal digits of the SHA-256 of its form."""
        return digest_of(json_text(self.form()).encode())[:12]


def plan_names() -> dict[str, str]:
    """The plans that ship, and what each is about."""
    return {name.removesuffix(".toml"): str(read_toml(text, name)["about"]) for name, text in shipped(*PLANS).items()}


def read_plan(name: str) -> ValidationPlan:
    """The plan that ships under this name, or the one in the file of this path; UsageError naming the key that is
    wrong."""
    ours = shipped(*PLANS)
    if f"{name}.toml" in ours:
        return plan_from_text(ours[f"{name}.toml"], name, name)
    if name.endswith(".toml"):
        return plan_from_text(text_of(Path(name)), Path(name).stem, name)
    raise UsageError(f"no plan {brief(name)}{near(name, plan_names())}; or name a file: PLAN.toml")


def plan_from_text(text: str, name: str, where: str) -> ValidationPlan:
    """The plan that a TOML text says; ``where`` is what errors call it."""
    table = read_toml(text, where)
    for key, value in table.items():
        if key not in KEYS:
            raise UsageError(f"{where}: no plan has a key {brief(key)}{near(key, KEYS)}")
        if not KEYS[key].holds(value):
            raise UsageError(f"{where}: {key} is {brief(value)}; it must be {KEYS[key].words}")
    for key in ("instructions", "least_instructions"):
        if key not in table:
            raise UsageError(f"{where}: a plan needs {key}")
    if table.get("exhaustive"):
        for key in NOT_EXHAUSTIVE:
            if key in table:
                raise UsageError(f"{where}: {key} goes without exhaustive = true, which compares all that there is")
    elif not (table.get("vectors") or table.get("witnesses")):
        raise UsageError(f"{where}: a plan needs vectors, or witnesses = true, or exhaustive = true")
    for family in table.get("generators", ()):
        if family not in FAMILIES:
            raise UsageError(f"{where}: no generator {family!r}{near(family, FAMILIES)}")
    least = table.get("least_vectors", table.get("vectors", 0))
    if least > table.get("vectors", 0):
        raise UsageError(f"{where}: least_vectors is {least:,}, more than its vectors")
    table["least_vectors"] = least
    for key in ("instructions", "generators"):
        table[key] = tuple(table.get(key, ()))
    return ValidationPlan(name, **table)


def targets_of(plan: ValidationPlan, device: Device) -> tuple[list[Instruction], list[tuple[str, str]]]:
    """What of a device a plan is about, in the control states that it wants; and what does not run there, and why.

    UsageError where a glob names nothing, or none of the plan's generators fits; NotHereError where nothing runs.
    """
    found: list[Instruction] = []
    absent: dict[str, str] = {}
    for glob in plan.instructions:
        try:
            groups, missing = select(device, glob)
        except NotHereError as error:
            absent[glob] = str(error)
            continue
        found += [made for group in groups for made in (group if plan.states else group[:1])]
        absent.update(missing)
    if not found:
        raise NotHereError(
            f"plan {plan.name}: none of its instructions runs on {device.name}: {next(iter(absent.values()))}"
        )
    chosen = list(dict.fromkeys(found))
    if plan.generators and plan.unfitting(chosen) == plan.generators:
        raise UsageError(
            f"plan {plan.name}: of its generators {', '.join(plan.generators)} none fits its instructions, such as "
            f"{chosen[0].id}, which takes {', '.join(families_for(chosen[0]))}"
        )
    return chosen, list(absent.items())
