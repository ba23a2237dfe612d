"""A derivation under way: what was asked, what is believed, what is kept for when that turns out wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.observations import Observations
from mmaprobe.derivation.survivors import Living
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.datapath import Datapath

Say = Callable[[str], None]
KEPT = 300
"""So many of the hypotheses that agree so far are kept as rivals."""


class OutsideError(Exception):
    """No hypothesis of the grammar agrees with all observations; ``closest`` is the one with the least wrong."""

    def __init__(self, stage: str, closest: Datapath | None) -> None:
        super().__init__(stage)
        self.stage = stage
        self.closest = closest


class ContradictedError(Exception):
    """The device contradicts itself, or gets wrong what every unit gets right: nothing can be derived from it."""


@dataclass
class State:
    """``current`` is the datapath believed now; ``others`` agreed as well when they were last looked at.

    ``findings`` are the probes' answers where they were asked before; ``relative_of``
    is the known datapath that ``current`` is a control variant of; ``proofs`` are
    the witnesses against neighbours, by field and value.
    """

    instruction: Instruction
    observations: Observations
    seed: int
    say: Say
    findings: dict[str, Finding] = field(default_factory=dict)
    believed: Datapath | None = None
    others: list[Datapath] = field(default_factory=list)
    relative_of: Datapath | None = None
    proofs: dict[tuple[str, str], Witness] = field(default_factory=dict)

    @property
    def allowance(self) -> Allowance:
        """What pays for the evaluation of hypotheses."""
        return self.observations.allowance

    def begin(self, stage: str, more: str = "") -> None:
        """Say that a stage begins, which pays from now on."""
        self.allowance.stage = stage
        self.say(f"{stage}: {more}" if more else stage)

    @property
    def current(self) -> Datapath:
        """The datapath believed now."""
        if self.believed is None:
            raise OutsideError("nothing was found yet", None)
        return self.believed

    def choose(self, alive: Living) -> Datapath:
        """Believe the first of these; the rest are kept.  OutsideError where there is none."""
        if not len(alive):
            raise OutsideError("no rival agrees with everything asked", self.believed)
        self.believed, *rest = alive.first(KEPT)
        self.others = rest + self.others
        return self.believed

    def move(self, candidates: list[Datapath]) -> bool:
        """Believe the first candidate that agrees with everything asked; False where none does."""
        alive = self.observations.alive(candidates)
        if alive:
            self.believed, self.others = alive[0], alive[1:]
        return bool(alive)
