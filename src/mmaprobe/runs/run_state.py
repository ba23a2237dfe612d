"""What the steps of a run share: the device, what is known so far, the clock, and who is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from mmaprobe.catalog.doubts import doubt
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.devices.gpu.health import Watch
from mmaprobe.errors import CannotWriteError, MmaprobeError, UsageError
from mmaprobe.evidence.store import Part, Store
from mmaprobe.evidence.unexpected_ends import unforeseen
from mmaprobe.exit_codes import DEVICE_FAILED, INCONCLUSIVE
from mmaprobe.runs.plan import Plan, kind, place
from mmaprobe.runs.planned import PlannedValidation
from mmaprobe.runs.result import Result, to_part
from mmaprobe.survey import survey

Clock = Callable[[], float]
Work = Generator[str | None, None, None]
"""A step at work: after each piece a line that says what it is at; None where it must wait for another step."""

ENDS_THE_RUN = (*ENDS_ALL, CannotWriteError)
"""What no other instruction will fare better with."""
LEAST_PER_MODE = 100_000
"""Vectors that a run must compare of each instruction and control state, unless it is told fewer."""
FLAGGED = "flagged"
"""Of a validation: the instruction contradicts itself, and is recorded all the same."""
T = TypeVar("T")


class RunListener(survey.SurveyListener, Protocol):
    """Who is told how a run goes: of a survey, and whose turn it is and how many vectors more were compared."""

    def step(self, name: str, purpose: str) -> None: ...
    def compared(self, vectors: int) -> None: ...


@dataclass
class RunState:
    """``wanted``: the ids of all instructions of the run.  ``parts`` and ``results`` (of each step, JSON) are what is
    known; ``unsaved`` parts are not on disk yet; ``found`` is what this run found of instructions taken one by one.

    ``most`` bounds the vectors of any one instruction's validation, or ``planned`` says all of it; ``end`` is when the
    budget is spent, ``deadline`` when the slice under way ends; ``cut``: the end of the budget left something undone.
    ``notes`` are for the report.
    """

    device: Device
    store: Store
    plan: Plan
    pattern: str
    seed: int
    most: int | None
    clock: Clock
    listener: RunListener | None
    end: float | None = None
    planned: PlannedValidation | None = None
    open_steps: frozenset[str] = frozenset()
    deadline: float = 0.0
    parts: dict[str, Part] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    unsaved: set[str] = field(default_factory=set)
    found: dict[Instruction, Result] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cut: bool = False
    watch: Watch = field(init=False)  # from the opening on

    def __post_init__(self) -> None:
        self._keeping = threading.Lock()
        self.architecture = self.device.info().get("architecture", "")
        self.parts = self.store.parts
        self.results = {name: dict(step.result) for name, step in self.store.steps.items()}
        self.wanted = {made.id for made in (*self.plan.asked, *self.plan.states)}
        self.surveyor = survey.Surveyor(self.device, self.seed, self.say, self.derived, self.left_out, ENDS_THE_RUN)

    def result(self, step: str) -> dict[str, Any]:
        """What a step found so far; written at the end of its slice."""
        return self.results.setdefault(step, {})

    @property
    def minimum(self) -> int:
        """Vectors that must be compared of each instruction."""
        if self.planned is not None:
            return self.planned.least
        return LEAST_PER_MODE if self.most is None else min(LEAST_PER_MODE, self.most)

    def late(self) -> bool:
        """Whether the slice under way is over."""
        return self.clock() >= self.deadline

    def spent(self) -> bool:
        """Whether the budget is spent."""
        return self.cut or (self.end is not None and self.clock() >= self.end)

    def begin(self, instructions: int, vectors: int | None = None) -> None:
        """So many instructions are to be derived, and vectors to be compared."""
        if self.listener is not None:
            self.listener.begin(instructions, vectors)

    def say(self, text: str) -> None:
        """Tell the listener what the step is at, and the time left."""
        if self.listener is not None:
            self.listener.at(text, None if self.end is None else max(self.end - self.clock(), 0.0))

    def derived(self, made: Instruction) -> None:
        """The derivation of an instruction ended; those that a survey takes besides are not counted."""
        if self.listener is not None and made.id in self.wanted:
            self.listener.derived(made.id)

    def compared(self, vectors: int) -> None:
        """So many vectors more were compared."""
        if self.listener is not None:
            self.listener.compared(vectors)

    def part(self, made: Instruction) -> Part:
        """What is known of an instruction."""
        return self.parts.get(made.id) or Part(made.id, "partial")

    def save(self, made: Instruction, **changes: Any) -> None:
        """Change what is known of an instruction; written at the end of the slice."""
        self.parts[made.id] = replace(self.part(made), **changes)
        self.unsaved.add(made.id)

    def fail(self, made: Instruction, error: str, code: int) -> None:
        """The instruction is left out from here on: the device failed, lied or refused."""
        error = "; ".join(filter(None, (error, doubt(made))))
        said = {**self.part(made).validation, "error": error, "error_code": code}
        self.save(made, status="partial", validation=said)

    def flag(self, made: Instruction, error: str) -> None:
        """The instruction contradicts itself: it is left out from here on, but for the recording."""
        self.fail(made, error, DEVICE_FAILED)
        self.merge(made, {FLAGGED: True})

    def left_out(self, made: Instruction) -> bool:
        """Whether a step before found that the instruction cannot be asked."""
        return made.id in self.parts and "error" in self.parts[made.id].validation

    def broken(self, made: Instruction) -> bool:
        """Whether it is left out for more than contradicting itself: it breaks the device, or operands go astray."""
        return self.left_out(made) and FLAGGED not in self.parts[made.id].validation

    def sound(self, flagged: bool = False) -> Plan:
        """The plan without what is left out so far: another form stands for a kind whose first one is unsound.

        With ``flagged`` those that contradict themselves are not left out.
        """
        out = self.broken if flagged else self.left_out
        groups = tuple(group for group in self.later(self.plan.groups, lambda group: group[0]) if not out(group[0]))
        others = {name: tuple(made for made in found if not out(made)) for name, found in self.plan.others.items()}
        return replace(self.plan, groups=groups, others=others)

    def later(self, every: Iterable[T], of: Callable[[T], Instruction]) -> list[T]:
        """The same with those last whose like, of their kind and with A in the same place, broke in the self-test."""
        tested = self.results.get("selftest", {}).get("kernels", {})
        doubted = {(kind(each), place(each)) for each in self.plan.asked if each.id in tested and self.broken(each)}
        return sorted(every, key=lambda each: (kind(of(each)), place(of(each))) in doubted)

    @contextmanager
    def asking(self, made: Instruction) -> Iterator[None]:
        """What goes wrong inside ends this instruction, not the run; a device that is gone ends the run."""
        try:
            yield
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            self.fail(made, *blamed(error, self.store.path))

    def merge(self, made: Instruction, more: Mapping[str, Any]) -> None:
        """Put more into what is known of an instruction's validation."""
        self.save(made, validation={**self.part(made).validation, **more})

    def keep(self, result: Result) -> None:
        """Write what was found of an instruction, from any thread; the device's health is read before it counts."""
        with self._keeping:
            if result.resumed is None:
                self.notes += [] if result.error else self.watch.look()
                part = to_part(result)
                self.store.save(part)
                self.parts[part.instruction] = part
            self.found[result.instruction] = result


def blamed(error: Exception, folder: Path) -> tuple[str, int]:
    """What is said of an instruction that came to this error, and its exit code; one that nobody foresaw is kept."""
    said = error if isinstance(error, MmaprobeError) else unforeseen(error, folder)
    return str(said), INCONCLUSIVE if isinstance(said, UsageError) else said.exit_code
