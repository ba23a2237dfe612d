"""What of a device a run is about: the instructions that a glob names, in their control states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, forms, instructions, is_glob, matches, short
from mmaprobe.catalog.lookup import instruction as lookup_instruction
from mmaprobe.catalog.states import default_state, modes
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError, UsageError, near

Runs = Callable[[Device, Instruction], bool]


def select(
    device: Device, pattern: str, runs: Runs | None = None
) -> tuple[list[tuple[Instruction, ...]], list[tuple[str, str]]]:
    """What of the device a glob names: groups of control states that run here, and what does not run and why.

    An id or glob with braces names single control states, one without them
    whole instructions with all their states.  Of a form that the device lists
    by its first instruction, it is the first that the glob names.  ``runs`` says what else than the device supports
    will run.
    """
    states = [modes(base) for base in _listed(device, pattern)]
    groups: list[tuple[Instruction, ...]]
    if "{" in pattern:
        groups = [(state,) for group in states for state in group if _matches(state, pattern)]
    else:
        groups = [group for group in states if _matches(group[0], pattern)]
    if not groups:
        known = [group[0].id for group in states]
        raise UsageError(
            f"{device.name} has no instruction {pattern!r}{near(pattern, known)}; see: mmaprobe instructions"
        )
    said = {group[0]: device.supports(group[0]) for group in groups}
    here = [group for group in groups if said[group[0]] or (runs and runs(device, group[0]))]
    absent = [(group[0].id, said[group[0]].reason) for group in groups if group not in here]
    if not here:
        raise NotHereError(f"{pattern} does not run on {device.name}: {absent[0][1]}")
    return here, absent


def unaccounted(device: Device, pattern: str, known: Collection[str]) -> list[str]:
    """Instructions of the device's architecture that a glob or id names and the device neither has nor says why not.

    ``known``: ids of those that it has, or lacks for a reason.
    """
    architecture = device.info().get("architecture", "")
    if architecture.partition("+")[0] not in architectures() or "{" in pattern:
        return []
    lost = [made for made in instructions(architecture) if made.id not in known and _matches(made, pattern)]
    return [made.id for made in lost if not device.supports(made).reason]


def _listed(device: Device, pattern: str) -> Sequence[Instruction]:
    """The device's instructions; where those are an architecture's forms, each at what the pattern names of it."""
    listed = device.instructions()
    architecture = device.info().get("architecture", "")
    if architecture.partition("+")[0] not in architectures() or tuple(listed) != instructions(architecture):
        return listed
    if not is_glob(pattern):
        try:
            return [default_state(lookup_instruction(pattern, architecture))]
        except UsageError:
            return listed
    found = [form.first for form in forms(architecture, pattern)]
    stateful = [base for base in listed if base.controls and base not in found] if "{" in pattern else []
    return [*found, *stateful] or listed


def _matches(instruction: Instruction, pattern: str) -> bool:
    return pattern in (instruction.id, short(instruction.id)) or matches(instruction, pattern)
