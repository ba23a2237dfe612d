"""What a run asks: every form at several sizes, which of them are main ones, and what is distinct among them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

from mmaprobe import formats
from mmaprobe.catalog.doubts import doubt
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instructions, is_glob, lowering
from mmaprobe.catalog.variants import asked
from mmaprobe.derivation.primitive_view import bare_primitive
from mmaprobe.devices.base import Device, Support
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.runs.selection import select, unaccounted
from mmaprobe.survey.layouts import unsettled

MAIN_FORMATS = ("f16", "bf16", "tf32", "e4m3", "e2m1")
"""Operand formats (and those whose names begin so) in which most work is done."""

Group = tuple[Instruction, ...]


@dataclass(frozen=True)
class Plan:
    """``groups``: each instruction in its control states, the default first.  ``others``: of the form that each id
    begins, the other sizes, placements and modifiers that are asked.  ``absent``: what does not run here and why;
    ``unasked``: how many others do not."""

    architecture: str
    groups: tuple[Group, ...]
    others: dict[str, Group]
    absent: tuple[tuple[str, str], ...]
    unasked: int

    @property
    def states(self) -> tuple[Instruction, ...]:
        """The instructions in all their control states."""
        return tuple(made for group in self.groups for made in group)

    @cached_property
    def bases(self) -> tuple[Instruction, ...]:
        """The instructions in their default control state, main ones first."""
        main = set(self.main)
        return (*self.main, *(group[0] for group in self.groups if group[0] not in main))

    @cached_property
    def main(self) -> tuple[Instruction, ...]:
        """Of each kind of instruction and each main format the dense one of the widest result, then of most lanes;
        those of whole matrices first."""
        best: dict[Hashable, Instruction] = {}
        for made in (group[0] for group in self.groups):
            fmt = next((name for name in MAIN_FORMATS if made.a.startswith(name)), None)
            if fmt is None or made.a != made.b or made.chunk:
                continue
            key = kind(made), fmt
            if key not in best or _weight(made) > _weight(best[key]):
                best[key] = made
        return tuple(sorted(best.values(), key=lambda made: made.m * made.n == 1))

    @cached_property
    def distinct(self) -> tuple[Instruction, ...]:
        """The first instruction of each family, formats and K, main ones first."""
        return _first_of(self.bases, lambda made: (made.family, made.a, made.b, made.c, made.d, made.scale, made.k))

    @cached_property
    def primitives(self) -> tuple[Instruction, ...]:
        """An instruction for each distinct primitive, and for each distinct way of emulating, main ones first."""
        return _first_of(self.bases, self._computes)

    @cached_property
    def asked(self) -> tuple[Instruction, ...]:
        """Every instruction: first those of every form, then their other sizes, placements and modifiers; last of all
        those whose shape is in doubt."""
        every = (*self.bases, *(made for base in self.bases for made in self.others.get(base.id, ())))
        return tuple(sorted(every, key=lambda made: bool(doubt(made))))

    def _computes(self, made: Instruction) -> Hashable:
        bare = bare_primitive(self.architecture, made)
        if bare is not None:
            return bare
        types = made.a, made.b, made.c, made.d, made.scale, made.k
        try:
            way = lowering(made, self.architecture)
        except UsageError:
            return made.id
        return way.kind, way.primitives, way.convert, way.add, way.convert_c, way.convert_d, types


def plan_of(device: Device, pattern: str, check: bool = False, beyond: bool = True) -> Plan:
    """The plan for what a glob, or an id, names of a device; to ``check``, what is missing is absent without a reason.

    ``beyond`` that, its other sizes, placements and modifiers are asked, and what runs once its layout is settled.
    Raises UsageError where it names nothing, NotHereError where nothing of it runs.
    """
    groups, absent = select(device, pattern, unsettled if beyond else None)

    def runs(made: Instruction) -> bool:
        return bool(device.supports(made)) or unsettled(device, made)

    held: Callable[[Instruction], Support] = getattr(device, "holds", lambda made: Support(True))
    absent += [(group[0].id, held(group[0]).reason) for group in groups if not held(group[0])]
    groups = sorted((group for group in groups if held(group[0])), key=lambda group: bool(doubt(group[0])))
    if check:
        known = {group[0].id for group in groups} | {name for name, _ in absent}
        absent += [(name, "") for name in unaccounted(device, pattern, known)]
    if not groups:
        raise NotHereError(f"{pattern} does not run on {device.name}: {absent[0][1]}")
    architecture = device.info().get("architecture", "")
    listed = architecture.partition("+")[0] in architectures()
    whole = beyond and listed and is_glob(pattern) and tuple(device.instructions()) == instructions(architecture)
    firsts = {group[0].id for group in groups}
    others: dict[str, Group] = {}
    unasked = 0
    for first, found in asked(architecture, pattern).items() if whole else ():
        if first in firsts:
            others[first] = tuple(made for made in found if made.id != first and runs(made) and held(made))
            unasked += len(found) - 1 - len(others[first])
    return Plan(architecture, tuple(groups), others, tuple(absent), unasked)


def kind(made: Instruction) -> str:
    """The kind of instruction: ``mma``, ``wgmma``, ``mfma``."""
    return made.family.partition(".")[0]


def place(made: Instruction) -> str:
    """Where A comes from, if not from where it does by default."""
    return made.modifier.get("a", "")


def _weight(made: Instruction) -> tuple[int, int, bool]:
    return formats.get(made.d).bits, made.k, made.scale is None


def _first_of(every: Iterable[Instruction], key: Callable[[Instruction], Hashable]) -> Group:
    found: dict[Hashable, Instruction] = {}
    for made in every:
        found.setdefault(key(made), made)
    return tuple(found.values())
