"""The step ``instructions``: each instruction in turn is probed, derived, held beside the shipped file and validated.

It is all that a device is asked whose minutes are not counted.  One instruction is derived while the one before is
validated on the other cores, and the part of each is written as it ends.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import derive
from mmaprobe.devices.base import Device, serial
from mmaprobe.devices.child import no_children
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import DeviceError
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.probing import probe
from mmaprobe.runs.planned import PlannedValidation
from mmaprobe.runs.result import Result
from mmaprobe.runs.run_state import ENDS_THE_RUN, RunState, Work, blamed
from mmaprobe.runs.steps import LONGEST, RunStep
from mmaprobe.runs.until_spent import TimeUpError, UntilSpent
from mmaprobe.survey.comparison import compare, compare_with_shipped
from mmaprobe.validation import validate

VECTORS = 10_000_000
"""Vectors of each instruction, where nobody says how many."""


def take_each(run: RunState) -> Work:
    """Every instruction of the plan in all its control states; those that an earlier run finished stay as they are.

    The others of an opcode begin with what the first one computes.
    """
    device, known = serial(run.device), dict[str, Datapath]()
    todo = [share for state, share in _shares(run) if not run.store.is_finished(state.id)]
    run.begin(len(todo), sum(todo))
    with ThreadPoolExecutor(1) as thread:
        behind = _Behind(run, device, thread)
        try:
            for state, share in _shares(run):
                if run.spent():
                    run.cut = True
                    break
                kept = run.store.is_finished(state.id)
                result = _kept(run, state) if kept else _derived(run, device, state, known.get(state.opcode))
                if result.datapath is not None:
                    known.setdefault(state.opcode, result.datapath)
                behind.take(result, share)
                yield state.id
            behind.wait()
        except BaseException as error:
            behind.stopping = True
            with nullcontext() if isinstance(error, GeneratorExit) else no_children():
                behind.wait()
            raise


EACH_IN_TURN = (
    RunStep("instructions", "each in turn: probed, derived, beside the shipped file, validated", LONGEST, take_each,
         owes=lambda plan: plan.states, recorded=False),
)  # fmt: skip
"""What a processor, a model or a program is asked."""


def _shares(run: RunState) -> Iterator[tuple[Instruction, int]]:
    """Every control state, with its share of its instruction's vectors: never below the run's minimum; by a plan each
    has all of them."""
    for group in run.plan.groups:
        if run.planned is not None:
            yield from ((state, run.planned.vectors) for state in group)
            continue
        share = max((VECTORS if run.most is None else run.most) // len(group), run.minimum)
        yield from ((state, share) for state in group)


def _kept(run: RunState, state: Instruction) -> Result:
    """What a part that an earlier run finished says, beside the file that ships now."""
    part = run.part(state)
    table = (part.datapath or {}).get("datapath")
    datapath = from_table(table, f"{run.store.path}: {state.id}") if table else None
    return Result(state, datapath, comparison=compare(run.architecture, state, datapath, run.seed), resumed=part)


def _derived(run: RunState, device: Device, state: Instruction, start: Datapath | None) -> Result:
    """What an instruction computes; without a known relative to ``start`` from it is probed first."""
    begin, findings = time.monotonic(), dict[str, Finding]()
    device = UntilSpent(device, run.spent)
    try:
        if start is None and not state.chunk:
            run.say(f"{state.id}: probing")
            findings = probe(device, state, seed=run.seed)
            _check_sound(findings)
        derivation = derive(device, state, seed=run.seed, start=start, findings=findings,
                            say=lambda stage: run.say(f"{state.id}: {stage}"))  # fmt: skip
        comparison = compare_with_shipped(run.architecture, state, derivation, run.seed)
    except TimeUpError as error:
        run.cut = True
        run.notes.append(str(error))
        return Result(state, seconds=time.monotonic() - begin, findings=tuple(findings.values()))
    except Exception as error:
        probed = tuple(findings.values())
        return _failed(run, Result(state, seconds=time.monotonic() - begin, findings=probed), error)
    finally:
        run.derived(state)
    return Result(state, derivation.datapath, derivation, comparison, seconds=time.monotonic() - begin)


def _check_sound(findings: dict[str, Finding]) -> None:
    """DeviceError where answers contradict what any unit does, the layout of the operands before all else."""
    wrong = [finding for finding in findings.values() if finding.status == "contradictory"]
    if wrong:
        first = min(wrong, key=lambda finding: finding.question != "layout")
        raise DeviceError(f"{first.question}: {first.text}")


def _failed(run: RunState, result: Result, error: Exception) -> Result:
    """What went wrong with one instruction is its result, and the others go on; what ends the run its part says too."""
    said, code = blamed(error, run.store.path)
    result = replace(result, error=said, error_code=code)
    if isinstance(error, ENDS_THE_RUN):
        run.keep(result)
        raise error
    return result


class _Behind:
    """Validates on a thread of its own, behind the derivations; ``stopping`` ends what is under way early."""

    def __init__(self, run: RunState, device: Device, thread: ThreadPoolExecutor) -> None:
        self._room, self._device, self._thread = run, device, thread
        self._waiting = deque[Future[None]]()
        self.stopping = False

    def take(self, result: Result, vectors: int) -> None:
        """Validate what was derived, once what came before is; what that came to is raised here."""
        self._waiting.append(self._thread.submit(self._finish, result, vectors))
        while self._waiting and self._waiting[0].done():
            self._next()

    def wait(self) -> None:
        """Until all is validated and written."""
        while self._waiting:
            self._next()

    def _next(self) -> None:
        self._waiting[0].result()
        self._waiting.popleft()

    def _finish(self, result: Result, vectors: int) -> None:
        """Validate against the derived datapath, and keep the part; against the shipped one where none was found, or
        where no vector told the two apart.  What an earlier run finished is done."""
        begin = time.monotonic()
        comparison = result.comparison
        shipped = comparison.shipped if comparison is not None else None
        reference = result.datapath or shipped
        if comparison is not None and comparison.outcome == "equivalent":
            reference = shipped
        if result.resumed is None and not result.error and reference is not None:
            result = self._validated(result, reference, vectors)
        self._room.keep(replace(result, seconds=result.seconds + time.monotonic() - begin))

    def _validated(self, result: Result, reference: Datapath, vectors: int) -> Result:
        run, made = self._room, result.instruction
        model, seed = DatapathDevice(made, reference), run.seed + 1
        try:
            if run.planned is not None:
                return self._as_planned(result, model, run.planned)
            summary = validate(self._device, model, made, vectors, seed, progress=run.compared, stop=self._stop)
        except Exception as error:
            return result if self.stopping else _failed(run, result, error)
        run.cut = run.cut or summary.stopped
        return replace(result, summary=summary)

    def _as_planned(self, result: Result, model: Device, planned: PlannedValidation) -> Result:
        """The same by a plan; at the run's own seed, as a campaign of the plan."""
        run = self._room
        found = planned.compare(self._device, model, result.instruction, run.seed, run.compared, self._stop)
        run.cut = run.cut or (found.summary is not None and found.summary.stopped)
        return replace(result, summary=found.summary, error=found.error, error_code=found.code)

    def _stop(self) -> bool:
        return self.stopping or self._room.spent()
