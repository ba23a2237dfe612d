"""What a file of ``probing/questions`` states of its question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.rounds import Asking
from mmaprobe.probing.session.session import ProbeSession

Experiment = Callable[[ProbeSession], Asking[Finding]]
"""What asks a device in rounds until it has a finding."""


def floats(instruction: Instruction) -> bool:
    """Whether the result is a floating-point number."""
    return instruction.formats()["d"].is_float


@dataclass(frozen=True)
class Probe:
    """One question to a device.

    ``order``: its place among the others; what several ask in one round is charged to the first of them.
    ``asks`` and ``rivals``: the question in words, and the answers that it tells apart (docs/probes.md).
    ``experiment``: the coroutine that asks, and gives the finding.
    ``applies``: whether an instruction has what is asked about; where it has not, ``otherwise`` is the answer, exact,
    with its reason, and nothing is run.
    ``of_tiles``: asked also of a device which gets the plainest sums wrong, since it is of whole tiles.
    ``of_opposites``: asked also where a term and its opposite do not cancel.
    ``sound``: what ``pytest probes`` demands of an answer that is not inconclusive, beside that a reference gives it.
    """

    order: int
    asks: str
    rivals: str
    experiment: Experiment
    applies: Callable[[Instruction], bool] = lambda _: True
    otherwise: tuple[Any, str] = (None, "does not apply")
    of_tiles: bool = False
    of_opposites: bool = False
    sound: Callable[[Any], bool] = lambda _: True
