"""The plan of a run (``mmaprobe run --plan``): the same parts of each instruction as ``validate --plan`` compares, held
against the datapath that the run derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from mmaprobe.campaigns.campaign import EXAMPLES
from mmaprobe.campaigns.parts import parts_of
from mmaprobe.campaigns.plan import ValidationPlan, targets_of
from mmaprobe.campaigns.shard import Comparing, PlanWork, recorded_by
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, short
from mmaprobe.catalog.states import default_state
from mmaprobe.devices.base import Device
from mmaprobe.errors import UsageError
from mmaprobe.exit_codes import INCONCLUSIVE, USAGE
from mmaprobe.runs.planned import PlannedResult
from mmaprobe.survey.smoke import validate_witnesses
from mmaprobe.validation import Summary
from mmaprobe.validation.summary import joined


@dataclass(frozen=True)
class PlannedRun:
    """A plan as a run takes it; UsageError for one that says what a run says itself, or that leaves instructions out.

    A run compares a device with what it derives of it: a plan with a reference is of two devices, and one that is
    exhaustive has no vectors of wide formats, so that a run of it would end without a word on these.
    """

    plan: ValidationPlan

    def __post_init__(self) -> None:
        again = "mmaprobe validate DEVICE model:ARCH --plan PLAN"
        if self.plan.exhaustive:
            raise UsageError(
                f"plan {self.plan.name} counts narrow formats through, and a run validates every instruction: {again}"
            )
        if self.plan.reference:
            raise UsageError(
                f"plan {self.plan.name} names a reference, and a run compares with what it derives: {again}"
            )

    @property
    def vectors(self) -> int:
        return self.plan.vectors

    @property
    def least(self) -> int:
        return self.plan.least_vectors

    def form(self) -> Mapping[str, Any]:
        """As a shard keeps the plan."""
        return self.plan.form()

    def targets(self, device: Device) -> Sequence[Instruction]:
        """As ``targets_of`` finds them."""
        return targets_of(self.plan, device)[0]

    def names(self, name: str) -> bool:
        """By id or short form, or a glob of either."""
        return any(fnmatchcase(each, glob) for glob in self.plan.instructions for each in (name, short(name)))

    def fitting(self, made: Instruction) -> Sequence[str] | None:
        return self.plan.fitting(made)

    def compare(
        self, dut: Device, ref: Device, made: Instruction, seed: int, progress: Callable[[int], None],
        stop: Callable[[], bool],
    ) -> PlannedResult:  # fmt: skip
        """Its witnesses, then its parts, one after the other, after a difference that is planted."""
        first = self.witnesses(dut, ref, made)
        parts = parts_of(replace(self.plan, witnesses=False), [made], recorded_by(dut, ref))
        comparing = Comparing(PlanWork(self.plan, dut, ref, seed, parts, ()), progress=progress, stop=stop)
        comparing.compare(parts)
        wrong = next((part for part in comparing.done if part.error), None)
        if wrong is not None:
            return PlannedResult(None, wrong.error, INCONCLUSIVE if wrong.code == USAGE else wrong.code)
        found = [each for each in (first, *(part.summary for part in comparing.done)) if each is not None]
        if not found:
            return PlannedResult(None)
        summary = joined(found, EXAMPLES)
        return PlannedResult(replace(summary, interrupted=True, stopped=True) if comparing.left else summary)

    def witnesses(self, dut: Device, ref: Device, made: Instruction) -> Summary | None:
        """Those of the file that ships for the device, of an instruction in its default control state."""
        home = dut.info().get("architecture", "")
        if not self.plan.witnesses or home.partition("+")[0] not in architectures() or default_state(made) != made:
            return None
        return next(validate_witnesses(dut, ref, made.id, home), None)
