"""One run of a device, whichever steps it takes: begun or gone on with, taken within a budget, ended and reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.outside import carried
from mmaprobe.devices.base import Device, open_device
from mmaprobe.devices.gpu.driver import TakenError, TooOldError
from mmaprobe.devices.gpu.health import Watch
from mmaprobe.errors import DeviceError, MmaprobeError
from mmaprobe.evidence.files import digest_of, json_text
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import CATALOG
from mmaprobe.evidence.unexpected_ends import unforeseen
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INTERNAL, INTERRUPTED, MISMATCH, NOT_HERE
from mmaprobe.runs.asking import answers_of
from mmaprobe.runs.beginning import Options, begun, best_device
from mmaprobe.runs.deriving import remember
from mmaprobe.runs.layouts import recall
from mmaprobe.runs.plan import plan_of
from mmaprobe.runs.planned import narrowed
from mmaprobe.runs.publishing import write_results
from mmaprobe.runs.report_summary import document_of
from mmaprobe.runs.result import Report, Result, cpu_codes, spent
from mmaprobe.runs.run_state import RunState
from mmaprobe.runs.selftest import lines
from mmaprobe.runs.steps import SPENT, RunStep, Turns
from mmaprobe.runs.validating import ordinary

SUMMARY = "summary.json"
FAILURES = (INTERNAL, DEVICE_FAILED, MISMATCH, NOT_HERE)
"""Exit codes of what ends a run or is about no single instruction, the first that occurs first."""
RESERVE = 10.0
"""Seconds of the budget kept for the report, or a twentieth of it where that is less."""


def conduct(device: Device | str | None, taken: Sequence[RunStep], options: Options, whole: bool = True) -> Report:
    """Take the steps on what an id or glob names of a device, and report; ``whole``: they are all there are.

    Raises UsageError, NotHereError, CannotWriteError; what the device does wrong is in the report.
    """
    begin, recorded = options.clock(), any(step.recorded for step in taken)
    opened = open_device(device) if isinstance(device, str) else device or best_device()
    plan = plan_of(opened, options.instruction, options.check, beyond=recorded)
    settings: dict[str, Any] = {"instruction": options.instruction, "vectors": options.vectors}
    settings |= {"schedule": options.schedule} if options.schedule else {}
    if options.planned is not None:
        plan = narrowed(plan, options.planned, opened)
        settings["validation"] = dict(options.planned.form())
    catalog = carried(plan.architecture).encode()
    settings |= ({"plan": "steps"} if recorded else {}) | ({"catalog": digest_of(catalog)} if catalog else {})
    store = begun(opened, options, settings)
    end = None if options.budget is None else begin + 60 * options.budget - min(RESERVE, 3 * options.budget)
    with closing(store):
        if catalog:
            store.attach(CATALOG, catalog)
        run = RunState(opened, store, plan, options.instruction, store.header.seed, options.vectors, options.clock,
                    options.listener, end, options.planned)  # fmt: skip
        ended, code = _take(run, taken)
        if not ended and whole:
            store.finish()
        run.notes += lines(run)
        if code not in (0, INTERRUPTED):
            run = replace(run, listener=None, parts={}, results={}, unsaved=set())  # without what is void
            remember(run)
        run.notes += write_results(run) + ordinary(run)
        report = _report(run, taken, options, ended, code, begin)
        if recorded:
            store.attach(SUMMARY, json_text(document_of(report)).encode())
        elif ended == SPENT and whole and report.exit_code in (EQUAL, MISMATCH):
            store.leave()
    return report


def _take(run: RunState, taken: Sequence[RunStep]) -> tuple[str, int]:
    """Take the steps; why that ended early, and its exit code."""
    recall(run)
    remember(run)
    try:
        run.watch = Watch(run.device)
        run.notes += run.watch.opening()
        return Turns(run, taken, notes=list(run.notes)).take(), 0
    except (DeviceError, TakenError, TooOldError) as error:
        return str(error), error.exit_code
    except KeyboardInterrupt:
        return "interrupted", INTERRUPTED
    except Exception as error:
        if isinstance(error, MmaprobeError):
            raise
        said = unforeseen(error, run.store.path)
        return str(said), said.exit_code


def _report(run: RunState, taken: Sequence[RunStep], options: Options, ended: str, code: int, begin: float) -> Report:
    """What was found, whether it is what was asked, and why it ended: by an error's code, or the budget's."""
    unreached, owed = 0, {made for step in taken for made in step.owes(run.plan)}
    if ended == SPENT and owed:
        unreached = _below(run, owed)
        ended = spent(unreached, len(owed), run.minimum)
    steps, answers = run.store.steps, answers_of(run.store)
    codes = [code, *(answer.exit_code for answer in answers), *cpu_codes(steps)]
    return Report(
        device=run.device,
        results=tuple(_results(run)),
        absent=run.plan.absent,
        out=run.store.path,
        run=run.store.header.run,
        seed=run.seed,
        seconds=run.clock() - begin,
        ended=ended,
        interrupted=code == INTERRUPTED,
        check=options.check,
        least=options.least,
        unreached=unreached,
        steps=tuple(steps.get(each.name) or StepRecord(each.name, each.purpose) for each in taken if each.recorded),
        failure=next((each for each in (INTERRUPTED, *FAILURES) if each in codes), 0),
        answers=tuple(answers),
        notes=tuple(run.notes),
    )


def _below(run: RunState, owed: Iterable[Instruction]) -> int:
    """How many instructions had less than the minimum of vectors, nothing being wrong with them."""
    known = [run.part(made) for made in owed if not run.left_out(made)]
    return sum(part.vectors < run.minimum and not part.mismatch_count for part in known)


def _results(run: RunState) -> Iterator[Result]:
    """What is known of every instruction, those of one form side by side."""
    for group in run.plan.groups:
        for made in (*group, *run.plan.others.get(group[0].id, ())):
            if made in run.found:
                yield run.found[made]
            elif made.id in run.store.parts:
                yield Result(made, resumed=run.store.parts[made.id], form=group[0])
