"""A plan in a run: which instructions the run is of, and how each is validated, in place of the run's own weights.

The rooms below a campaign do not know its plans: this is what a run wants of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.runs.plan import Plan
from mmaprobe.validation import Summary

FIRST = 10_000
"""Vectors of each instruction before any has more, of a run by steps."""
GROWTH = 4
"""Each round goes to so many times the vectors of the one before."""


@dataclass(frozen=True)
class PlannedResult:
    """What was found of an instruction by a plan, or the ``error`` that ended it with its exit ``code``."""

    summary: Summary | None
    error: str = ""
    code: int = 0


class PlannedValidation(Protocol):
    """``vectors`` of each instruction, of which ``least`` are the minimum where a budget ends the run."""

    @property
    def vectors(self) -> int: ...
    @property
    def least(self) -> int: ...
    def form(self) -> Mapping[str, Any]:
        """What decides what is compared, as evidence keeps it."""

    def targets(self, device: Device) -> Sequence[Instruction]:
        """The instructions and control states that it is about; UsageError where it names none."""

    def names(self, name: str) -> bool:
        """Whether it names an instruction, by its id."""

    def fitting(self, made: Instruction) -> Sequence[str] | None:
        """Its generators for an instruction, None for all."""

    def compare(
        self, dut: Device, ref: Device, made: Instruction, seed: int, progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> PlannedResult:  # fmt: skip
        """The whole of it for one instruction; ``stop`` ends it early."""

    def witnesses(self, dut: Device, ref: Device, made: Instruction) -> Summary | None:
        """Its witnesses of an instruction, where the plan wants them and there are any."""


def narrowed(plan: Plan, planned: PlannedValidation, device: Device) -> Plan:
    """What of a run's plan the validation is about: its instructions, in the control states that it wants."""
    wanted = {*planned.targets(device)}
    groups = tuple(kept for group in plan.groups if (kept := tuple(made for made in group if made in wanted)))
    firsts = {group[0].id for group in groups}
    others = {name: found for name, found in plan.others.items() if name in firsts}
    absent = tuple(pair for pair in plan.absent if planned.names(pair[0]))
    return replace(plan, groups=groups, others=others, absent=absent)


def rounds(vectors: int) -> Iterator[int]:
    """How many vectors each instruction has after each round, by steps: the last is all."""
    size = FIRST
    while size < vectors:
        yield size
        size *= GROWTH
    if vectors:
        yield vectors
