"""The steps of a run, and whose turn it is: each a slice at a time, every slice written as it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.driver import NO_ROOM
from mmaprobe.devices.gpu.health import Health
from mmaprobe.errors import DeviceError, UsageError, near
from mmaprobe.evidence.steps import Slice, StepRecord, StepStatus
from mmaprobe.runs.plan import Plan
from mmaprobe.runs.run_state import RunState, Work

SPENT = "the budget was spent"
LONGEST = 180
"""Seconds of a slice at most: a command that may take ten minutes ends between two."""
COMMIT_SECONDS = 20
"""Seconds after which what a slice has found is written inside it, too: a killed run loses no more."""


@dataclass(frozen=True)
class RunStep:
    """``work`` does one piece after another and can be left after each; what it finds it keeps in the run's state, and
    what it finds there it does not do again.  ``seconds`` bound a slice; ``hand_on`` follows what is written of each.

    ``owes``: of which instructions a run must have compared the minimum that takes the step.  ``recorded``: its slices
    and what it found are written; else that lies in its instructions' parts, which it keeps itself."""

    name: str
    purpose: str
    seconds: float
    work: Callable[[RunState], Work]
    hand_on: Callable[[RunState], object] | None = None
    owes: Callable[[Plan], Sequence[Instruction]] = lambda plan: ()
    recorded: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= LONGEST:
            raise UsageError(f"step {self.name}: a slice of {self.seconds} s; at most {LONGEST}")


def chosen(steps: Sequence[RunStep], names: Sequence[str]) -> tuple[RunStep, ...]:
    """The steps of these names (all where there is none) in their order; UsageError for an unknown one."""
    known = [step.name for step in steps]
    for name in names:
        if name not in known:
            raise UsageError(f"no step {name!r}{near(name, known)}; the steps are {', '.join(known)}")
    return tuple(step for step in steps if not names or step.name in names)


@dataclass
class Turns:
    """Rounds over the steps that are not finished, until all are, the budget is spent or the device is gone.

    In a short budget the slices of a round shrink alike, so that every step has its turn.  ``notes`` go into the
    next slice.
    """

    run: RunState
    steps: Sequence[RunStep]
    notes: list[str] = field(default_factory=list)
    running: dict[str, Work] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.finished |= {step.name for step in self.steps if self.record(step).status == "finished"}

    def take(self) -> str:
        """Why they end early; empty where every step is finished.  DeviceError where the device is gone or its last
        results are void: those of the slice under way are thrown away since they were last written."""
        try:
            while left := [step for step in self.steps if step.name not in self.finished]:
                for number, step in enumerate(left):
                    if self.run.spent():
                        return SPENT
                    self._slice(step, self._share(left[number:]))
            return ""
        finally:
            for work in self.running.values():
                work.close()

    def record(self, step: RunStep) -> StepRecord:
        """What is written of a step so far."""
        return self.run.store.steps.get(step.name) or StepRecord(step.name, step.purpose)

    def _share(self, rest: Sequence[RunStep]) -> float:
        """Seconds of the first one's slice, of those that still have a turn in this round."""
        if self.run.end is None:
            return rest[0].seconds
        whole = sum(step.seconds for step in rest)
        return min(rest[0].seconds, (self.run.end - self.run.clock()) * rest[0].seconds / whole)

    def _slice(self, step: RunStep, seconds: float) -> None:
        """One turn of a step: pieces until its time is up, written now and then and at the end."""
        run, begin = self.run, self.run.clock()
        run.deadline = begin + seconds
        run.open_steps = frozenset(each.name for each in self.steps) - self.finished - {step.name}
        if run.listener is not None:
            run.listener.step(step.name, step.purpose)
        saving = _Saving(self, step, begin)
        try:
            status = self._pieces(step, saving)
            saving.keep(status)
            self.finished |= {step.name} if status == "finished" else set()
            if step.hand_on is not None:
                step.hand_on(run)
        except NO_ROOM as error:
            saving.keep("partial", str(error))
            raise
        except DeviceError as error:
            saving.failed(str(error))
            raise
        except BaseException:  # an interrupt: what was found before it is kept
            saving.keep("partial")
            raise

    def _pieces(self, step: RunStep, saving: _Saving) -> StepStatus:
        """Run a step until its slice is over; its status then."""
        run, work = self.run, self.running.setdefault(step.name, step.work(self.run))
        for said in work:
            if said is None:
                del self.running[step.name]  # it looks anew when its turn comes again
                return "partial"
            now = run.clock()
            run.say(said)
            if now >= run.deadline:
                return "partial"
            if now - saving.kept >= COMMIT_SECONDS:
                saving.keep("partial")
        return "partial" if run.cut else "finished"


class _Saving:
    """One slice's way to disk: the device's health is read before what was found counts."""

    def __init__(self, turns: Turns, step: RunStep, begin: float) -> None:
        self._turns, self._step, self._begin = turns, step, begin
        self._before = turns.run.watch.reading
        self._notes, turns.notes = turns.notes, []
        self._earlier = turns.record(step)
        self.kept = begin

    def keep(self, status: StepStatus, *notes: str) -> None:
        """Write what was found; VoidError or LostError, and nothing is written, where the device says that it is
        worth nothing."""
        run, self.kept = self._turns.run, self._turns.run.clock()
        if not self._step.recorded:
            return
        self._notes += [*notes, *run.watch.look()]
        parts = [run.parts[name] for name in sorted(run.unsaved)]
        run.store.save_step(self._record(status, deepcopy(run.result(self._step.name))), parts)
        run.unsaved.clear()

    def failed(self, why: str) -> None:
        """Write that the slice came to a bad end, and nothing that it found since it was last written."""
        self._notes.append(why)
        if self._step.recorded:
            self._turns.run.store.save_step(self._record("partial", self._turns.record(self._step).result))

    def _record(self, status: StepStatus, result: dict[str, Any]) -> StepRecord:
        seconds = self._turns.run.clock() - self._begin
        mine = Slice(seconds, _form(self._before), _form(self._turns.run.watch.reading), tuple(self._notes))
        return replace(
            self._earlier, purpose=self._step.purpose, status=status, text=str(result.get("text", "")),
            slices=(*self._earlier.slices, mine), result=result,
        )  # fmt: skip


def _form(reading: Health | None) -> dict[str, Any]:
    return {} if reading is None else reading.form()
