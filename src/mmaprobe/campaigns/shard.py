"""A shard of a plan: its parts compared, one after the other, and the one file that is its result.

The file appears whole, once, and never changes: a shard that is killed leaves nothing, and is run again.  What it says
is a function of the plan, the seed and the shard's number, as long as the device answers the same; only its seconds
and what the clock ended are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mmaprobe
from mmaprobe.campaigns.canaries import check_canary
from mmaprobe.campaigns.parts import PlanPart, Shard, digest_of_parts, parts_of
from mmaprobe.campaigns.plan import ValidationPlan, targets_of
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import InternalError, MmaprobeError, NotHereError, UsageError
from mmaprobe.evidence.silicon import kind_of
from mmaprobe.evidence.store import now
from mmaprobe.exit_codes import INCONCLUSIVE, run_code
from mmaprobe.generators.enumerations import enumerations_of, left_out
from mmaprobe.runs.beginning import OF_THE_MOMENT
from mmaprobe.showing import counted
from mmaprobe.survey.smoke import validate_witnesses
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.core_by_core import validate_cores
from mmaprobe.vendors import vendor_called

SPENT = "budget"
"""Why a shard ended before all of its parts were compared: its minutes were."""
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Unit:
    """A device as a shard keeps it: its name, and what does not change from one moment to the next of its identity."""

    name: str
    identity: Mapping[str, str]

    @classmethod
    def of(cls, device: Device) -> Unit:
        """What a device says of itself."""
        said = device.info()
        return cls(device.name, {key: value for key, value in said.items() if not key.startswith(OF_THE_MOMENT)})

    @property
    def architecture(self) -> str:
        return self.identity.get("architecture", "")

    @property
    def kind(self) -> tuple[str, str, str]:
        """What shards of one campaign share: the architecture, whether it is silicon, and the scheme, not which of
        several GPUs it was, nor where a model's file lay; of any other device its whole name."""
        scheme = self.name.partition(":")[0]
        whole = scheme not in ("cpu", "model") and vendor_called(scheme) is None
        return self.name if whole else scheme, self.architecture, kind_of(self.name, self.identity)


@dataclass(frozen=True)
class PartResult:
    """What was found of a part: summaries of what was compared (none where nothing is known of the instruction), or
    the ``error`` that ended the instruction, with its exit ``code``."""

    number: int
    instruction: str
    summary: Summary | None = None
    error: str = ""
    code: int = 0


@dataclass(frozen=True)
class Exhausted:
    """What an exhaustive plan counts through of an instruction: of each enumeration, in words, how many vectors; and
    what of the instruction it ``leaves`` out."""

    spaces: Mapping[str, tuple[int, str]]
    leaves: tuple[str, ...]

    @classmethod
    def of(cls, made: Instruction) -> Exhausted:
        """By the enumerations that there are of an instruction."""
        return cls({each.name: (each.size, str(each)) for each in enumerations_of(made)}, left_out(made))

    def is_all(self, counted: Callable[[str], int]) -> bool:
        """Whether the vectors compared of each enumeration are as many as there are."""
        return all(counted(name) == size for name, (size, _) in self.spaces.items())


@dataclass(frozen=True)
class ShardResult:
    """The parts of a shard that were compared, of ``count`` parts that the plan has in all, whose digest is ``parts``.

    ``left``: number and instruction of its parts that were not, since it ``ended`` early; ``begun``: when, by the wall
    clock.  ``canaries``: by instruction, vectors
    reported where a difference was planted.  ``absent``: what the plan names and does not run, and why.  ``exhausts``:
    of an exhaustive plan what it counts through of each instruction, in all shards together.
    """

    plan: Mapping[str, Any]
    seed: int
    version: str
    shard: Shard
    device: Unit
    reference: Unit
    parts: str
    count: int
    done: tuple[PartResult, ...]
    left: tuple[tuple[int, str], ...] = ()
    ended: str = ""
    canaries: Mapping[str, int] = field(default_factory=dict)
    absent: tuple[tuple[str, str], ...] = ()
    exhausts: Mapping[str, Exhausted] = field(default_factory=dict)
    begun: str = ""
    seconds: float = 0.0

    @property
    def vectors(self) -> int:
        return sum(part.summary.vectors for part in self.done if part.summary is not None)

    @property
    def mismatches(self) -> int:
        return sum(part.summary.mismatches for part in self.done if part.summary is not None)

    @property
    def exit_code(self) -> int:
        """Of what it compared: what the plan wants at least is known when all shards are there."""
        codes = {part.code for part in self.done} | {
            part.summary.exit_code for part in self.done if part.summary is not None
        }
        return run_code(codes, self.vectors, 0, False)


@dataclass(frozen=True)
class PlanWork:
    """What all shards of a plan share: two devices, and the parts for what both run."""

    plan: ValidationPlan
    dut: Device
    ref: Device
    seed: int
    parts: Sequence[PlanPart]
    absent: tuple[tuple[str, str], ...]

    def exhausts(self) -> dict[str, Exhausted]:
        """What an exhaustive plan counts through of each instruction; of another one nothing."""
        there = dict.fromkeys(part.instruction for part in self.parts if part.enumerated)
        return {made.id: Exhausted.of(made) for made in there}


def work_of(plan: ValidationPlan, dut: Device, ref: Device, seed: int) -> PlanWork:
    """The parts of a plan for the instructions that run on a device and have a reference.

    UsageError where a glob names nothing, and for a plan of witnesses alone with a recording; NotHereError where
    nothing runs, or nothing of it has a reference.
    """
    chosen, absent = targets_of(plan, dut)
    said = {made: ref.supports(made) for made in chosen}
    targets = [made for made in chosen if said[made]]
    absent += [(made.id, f"no reference: {said[made].reason}") for made in chosen if not said[made]]
    if not targets:
        raise NotHereError(
            f"plan {plan.name}: {ref.name} has none of its instructions: {absent[-1][0]}: {absent[-1][1]}"
        )
    if plan.exhaustive:
        targets, wide = _countable(plan, targets, (dut, ref))
        absent += wide
    parts = parts_of(plan, targets, recorded_by(dut, ref))
    if not parts and any(type(device) is Replay for device in (dut, ref)):
        raise UsageError(f"plan {plan.name}: a recording is compared on what it holds, so take a plan that has vectors")
    if not parts:
        raise UsageError(
            f"plan {plan.name}: witnesses are of default control states, and none of its instructions is in one, such "
            f"as {targets[0].id}; take a plan that has vectors"
        )
    return PlanWork(plan, dut, ref, seed, parts, tuple(absent))


def _countable(
    plan: ValidationPlan, targets: Sequence[Instruction], devices: tuple[Device, Device]
) -> tuple[list[Instruction], list[tuple[str, str]]]:
    """Of which instructions there is anything to count through, and why not of the others; UsageError where of none,
    and for a recording, which has vectors of its own."""
    if any(type(device) is Replay for device in devices):
        raise UsageError(f"plan {plan.name}: a recording is compared on what it holds; take a plan that has vectors")
    found = [made for made in targets if enumerations_of(made)]
    wide = [(made.id, f"nothing is counted through: {'; '.join(left_out(made))}")
            for made in targets if made not in found]  # fmt: skip
    if not found:
        raise UsageError(f"plan {plan.name}: {wide[0][0]}: {wide[0][1]}; take a plan of generators, such as quick")
    return found, wide


def recorded_by(*devices: Device) -> Callable[[Instruction], int | None]:
    """How many vectors there are of an instruction where a device is a recording; None where there is no end."""
    replays = [device for device in devices if type(device) is Replay]
    return lambda made: min((each.recorded(made)[0].size for each in replays), default=None)


@dataclass
class Comparing:
    """Parts compared one after the other, in at most so many ``minutes`` (0: in any time) and until ``stop`` says so;
    and what was found so far.

    What an instruction does wrong is kept with it, and its other parts are left out; KeyboardInterrupt and what ends
    all (a device that is gone, a planted difference that is not reported) end it.
    """

    work: PlanWork
    minutes: float = 0
    progress: Progress | None = None
    clock: Callable[[], float] = time.monotonic
    stop: Callable[[], bool] | None = None
    done: list[PartResult] = field(default_factory=list)
    left: list[tuple[int, str]] = field(default_factory=list)
    canaries: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin = self.clock()

    def late(self) -> bool:
        """Whether its minutes are spent, or somebody else's are."""
        if self.stop is not None and self.stop():
            return True
        return bool(self.minutes) and self.clock() >= self.begin + 60 * self.minutes

    def compare(self, parts: Sequence[PlanPart]) -> None:
        """Compare these parts."""
        failed: set[str] = set()
        for part in parts:
            if self.late():
                self.left.append((part.number, part.instruction.id))
            elif part.instruction.id not in failed:
                self.done.append(self._part(part))
                failed |= {part.instruction.id} if self.done[-1].error else set()

    def _part(self, part: PlanPart) -> PartResult:
        """What is found of a part; the first one of an instruction proves that a planted difference is reported."""
        work, made = self.work, part.instruction
        try:
            if part.witnesses:
                return PartResult(part.number, made.id, next(validate_witnesses(work.dut, work.ref, made.id), None))
            if made.id not in self.canaries:
                self.canaries[made.id] = check_canary(work.dut, work.ref, made, work.seed, part.enumerated)
            summary = self._vectors(part)
        except (*ENDS_ALL, InternalError):
            raise
        except MmaprobeError as error:
            blamed = INCONCLUSIVE if isinstance(error, UsageError) else error.exit_code  # 2 is for what a user typed
            return PartResult(part.number, made.id, error=str(error), code=blamed)
        if summary.interrupted and not summary.stopped:
            raise KeyboardInterrupt
        return PartResult(part.number, made.id, summary)

    def _vectors(self, part: PlanPart) -> Summary:
        """The vectors of a part, on each core in turn where the plan says so."""
        work, made, generators = self.work, part.instruction, self.work.plan.fitting(part.instruction)
        given = (work.dut, work.ref, made, part.vectors, work.seed, generators)
        if part.enumerated:
            return validate(
                *given, first=part.first, stop=self.late, progress=self.progress, enumerated=part.enumerated
            )
        if work.plan.cores:
            return validate_cores(*given, first=part.first, stop=self.late)
        return validate(*given, first=part.first, stop=self.late, progress=self.progress)


def run_shard(
    work: PlanWork,
    shard: Shard,
    *,
    minutes: float = 0,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ShardResult:
    """Compare the parts of a shard, as ``Comparing`` does; where that ends it leaves no result.

    UsageError where there are more shards than parts.
    """
    if shard.of > len(work.parts):
        raise UsageError(f"plan {work.plan.name} has {counted(len(work.parts), 'part')} here: at most so many shards")
    begun, comparing = now(), Comparing(work, minutes, progress, clock)
    comparing.compare(shard.parts(work.parts))
    stopped = any(part.summary is not None and part.summary.stopped for part in comparing.done)
    return ShardResult(
        plan=work.plan.form(),
        seed=work.seed,
        version=mmaprobe.__version__,
        shard=shard,
        device=Unit.of(work.dut),
        reference=Unit.of(work.ref),
        parts=digest_of_parts(work.parts),
        count=len(work.parts),
        done=tuple(comparing.done),
        left=tuple(comparing.left),
        ended=SPENT if comparing.left or stopped else "",
        canaries=comparing.canaries,
        absent=work.absent,
        exhausts=work.exhausts(),
        begun=begun,
        seconds=max(clock() - comparing.begin, 0.0),
    )
