"""Where no datapath of the grammar fits: the smallest counterexample, and which change of one field would repair it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.session import check_repeats
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.devices.base import Device, run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import families_for
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.neighbours import neighbours
from mmaprobe.parameters.table import flatten, to_table
from mmaprobe.validation.shrink import shrink

MORE = 2000
"""Vectors of every family asked once more, so that repairs are counted over more than the search came by."""


@dataclass(frozen=True)
class Repair:
    """One field changed: of ``wrong`` mismatches ``repaired`` go away, and ``broken`` right answers become wrong."""

    field: str
    old: str
    value: str
    repaired: int
    wrong: int
    broken: int

    def __str__(self) -> str:
        harm = f" and breaks {self.broken}" if self.broken else ""
        return f"{self.field} {self.old} -> {self.value} repairs {self.repaired} of {self.wrong}{harm}"


@dataclass(frozen=True)
class Explanation:
    """The smallest vector that the closest datapath gets wrong (d is the device's), and repairs, the best first."""

    counterexample: Witness | None = None
    repairs: tuple[Repair, ...] = ()


def explain(
    device: Device, instruction: Instruction, closest: Datapath, seen: tuple[Batch, Bits], seed: int
) -> Explanation:
    """Where ``closest`` fails: over the vectors seen and, where the device can still be asked, some more.

    UnstableError where it fails because an answer does not repeat.
    """
    model = DatapathDevice(instruction, closest)
    vectors, answers = _more(device, instruction, seen, seed)
    wrong = np.flatnonzero(model.run_vectors(instruction, vectors) != answers)
    if not wrong.size:
        return Explanation()
    first, answer = take(vectors, wrong[:1]), int(answers[wrong[0]])
    try:
        small = shrink(
            instruction,
            first,
            lambda tried: run_vectors(device, instruction, tried) != model.run_vectors(instruction, tried),
        )
        shown = int(run_vectors(device, instruction, small)[0])
        check_repeats(device, instruction, first, answer)
        check_repeats(device, instruction, small, shown)
    except UsageError:  # a recording answers nothing else
        small, shown = first, answer
    return Explanation(
        Witness.of(small, shown, "the closest datapath differs"), repairs(instruction, closest, vectors, answers)
    )


def _more(device: Device, instruction: Instruction, seen: tuple[Batch, Bits], seed: int) -> tuple[Batch, Bits]:
    vectors, answers = seen
    try:
        fresh = hard_vectors(instruction, families_for(instruction), seed + 4242, MORE)
        more = run_vectors(device, instruction, fresh)
    except UsageError:
        return seen
    return join([vectors, fresh]), np.concatenate([answers, more])


def repairs(instruction: Instruction, closest: Datapath, vectors: Batch, answers: Bits) -> tuple[Repair, ...]:
    """How many of the mismatches each neighbour of ``closest`` repairs, those that repair any; the best first.

    Best is the one that leaves the fewest answers wrong.
    """
    right = DatapathDevice(instruction, closest).run_vectors(instruction, vectors) == answers
    table = dict(flatten(to_table(closest, full=True)))
    found = []
    for field, value, path in neighbours(closest):
        now = DatapathDevice(instruction, path).run_vectors(instruction, vectors) == answers
        if (now & ~right).any():
            old = table.get(field)
            counts = int((now & ~right).sum()), int((~right).sum()), int((right & ~now).sum())
            found.append(Repair(field, "none" if old is None else str(old), value, *counts))
    return tuple(sorted(found, key=lambda repair: (repair.broken - repair.repaired, repair.field, repair.value)))
