"""The bring-up of a device that nobody has seen: steps within a budget, each writing what it found as it ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mmaprobe.devices.base import Device, open_device
from mmaprobe.devices.gpu.driver import TakenError, TooOldError
from mmaprobe.devices.gpu.health import Watch
from mmaprobe.errors import DeviceError, MmaprobeError
from mmaprobe.evidence.ending import unforeseen
from mmaprobe.evidence.files import json_text
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Store
from mmaprobe.options import checked, or_none, with_methods
from mmaprobe.runs import beginning
from mmaprobe.runs.asking import answers_of, ask_questions, probe_primitives
from mmaprobe.runs.beginning import begun, best_device, check_options
from mmaprobe.runs.campaign import LEAST_PER_MODE
from mmaprobe.runs.cpu import cpu_codes, run_cpu
from mmaprobe.runs.deriving import derive_main, remember, survey_all
from mmaprobe.runs.layouts import find_layouts, recall
from mmaprobe.runs.plan import Plan, plan_of
from mmaprobe.runs.publishing import write_results
from mmaprobe.runs.recording import record_all, record_main, write_archive
from mmaprobe.runs.result import INTERRUPTED, Report, Result, spent
from mmaprobe.runs.room import Clock, Listener, Room
from mmaprobe.runs.rows import document_of
from mmaprobe.runs.selftest import lines, test_itself
from mmaprobe.runs.steps import SPENT, Step, Turns, chosen
from mmaprobe.runs.validating import ordinary, validate_all

STEPS = (
    Step("selftest", "a kernel of each kind, and a fused campaign, in a child process first", 30, test_itself),
    Step("layouts", "where the operands of every form go, at several sizes and every placement", 100, find_layouts),
    Step("outputs", "the main forms' answers to vectors named by recipes", 10, record_main, write_archive),
    Step("main", "the main forms: derived, beside the shipped file, validated briefly", 80, derive_main),
    Step("questions", "what is open about this architecture", 60, ask_questions),
    Step("survey", "every primitive derived once, the other instructions shown equal", 180, survey_all),
    Step("probes", "every question of the probe suite, to each distinct primitive", 120, probe_primitives),
    Step("validation", "vectors by weight: every form, every distinct one, the main ones", 180, validate_all),
    Step("recording", "answers to vectors named by recipes", 60, record_all, write_archive),
    Step("cpu", "this machine's own CPU", 60, run_cpu),
)
"""In this order, so that the first minutes answer the most, and their answers are there whatever breaks later."""
SUMMARY = "summary.json"
FAILURES = (70, 5, 1, 3)
"""Exit codes of what ends a run or is about no single instruction, the first that occurs first."""
OPTIONS = beginning.OPTIONS | {"listener": or_none(with_methods("step", "at", "compared"))}
RESERVE = 10.0
"""Seconds of the budget kept for the report, or a twentieth of it where that is less."""


def bring_up(
    device: Device | str | None = None,
    *,
    instruction: str = "*",
    vectors: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    budget: float | None = None,
    resume: bool = False,
    check: bool = False,
    least: int = 0,
    steps: Sequence[str] = (),
    listener: Listener | None = None,
    clock: Clock = time.monotonic,
) -> Report:
    """Run the steps (all, or those named) on what an id or glob names of a device, within ``budget`` minutes.

    ``vectors`` bound the validation of each instruction; without a ``seed`` one is drawn (``Report.seed``).
    ``check`` and ``least`` are those of ``run``.  A spent budget is exit code 0 where the first instruction of every
    form had ``LEAST_PER_MODE`` vectors (or ``vectors``, where that is less), 4 where not.
    Slices of at most three minutes go round the steps; every slice is written as it ends, and ``resume`` goes on in
    ``out`` where the last one ended, on the same device with the same driver, kernels and options.

    Raises UsageError, NotHereError, CannotWriteError; what the device does wrong is in the report.
    """
    given = {"device": device, "instruction": instruction, "check": check, "steps": steps, "listener": listener}
    checked("bring_up", {**given, "clock": clock}, OPTIONS)
    check_options(vectors, seed, budget, least, out, resume)
    begin = clock()
    taken = chosen(STEPS, steps)
    opened = open_device(device) if isinstance(device, str) else device or best_device()
    plan = plan_of(opened, instruction, check)
    store = begun(opened, out, seed, {"instruction": instruction, "vectors": vectors, "plan": "steps"}, resume)
    seed = store.header.seed
    end = None if budget is None else begin + 60 * budget - min(RESERVE, 3 * budget)
    with closing(store):
        room = Room(opened, store, plan, instruction, seed, vectors, clock, listener, end)
        return _brought_up(room, taken, begin, check, least, whole=not steps)


def _brought_up(room: Room, taken: Sequence[Step], begin: float, check: bool, least: int, whole: bool) -> Report:
    """Take the steps and report; ``whole``: they are all there are."""
    opened, store, plan = room.device, room.store, room.plan
    ended, code, notes = _take(room, taken)
    unreached = 0
    if ended == SPENT and any(step.name == "validation" for step in taken):
        minimum = LEAST_PER_MODE if room.most is None else min(LEAST_PER_MODE, room.most)
        unreached = _below(room, minimum)
        ended = spent(unreached, len(plan.bases), minimum)
    if not ended and whole:
        store.finish()
    notes += lines(room)
    if code not in (0, INTERRUPTED):
        room = replace(room, listener=None, parts={}, results={}, unsaved=set())  # without what is void
        remember(room)
    notes += write_results(room) + ordinary(room)
    answers = answers_of(store)
    codes = [code, *(answer.exit_code for answer in answers), *cpu_codes(store.steps)]
    report = Report(
        device=opened,
        results=tuple(_results(plan, store)),
        absent=plan.absent,
        out=store.path,
        run=store.header.run,
        seed=room.seed,
        seconds=room.clock() - begin,
        ended=ended,
        interrupted=code == INTERRUPTED,
        check=check,
        least=least,
        unreached=unreached,
        steps=tuple(store.steps.get(step.name) or StepRecord(step.name, step.purpose) for step in taken),
        failure=next((each for each in (INTERRUPTED, *FAILURES) if each in codes), 0),
        answers=tuple(answers),
        notes=tuple(notes),
    )
    store.attach(SUMMARY, json_text(document_of(report)).encode())
    return report


def _take(room: Room, taken: Sequence[Step]) -> tuple[str, int, list[str]]:
    """Take the steps; why that ended early and its exit code, and what was worth saying at the beginning."""
    recall(room)
    remember(room)
    notes: list[str] = []
    try:
        watch = Watch(room.device)
        notes = watch.opening()
        return Turns(room, taken, watch, notes=list(notes)).run(), 0, notes
    except (DeviceError, TakenError, TooOldError) as error:
        return str(error), error.exit_code, notes
    except KeyboardInterrupt:
        return "interrupted", INTERRUPTED, notes
    except Exception as error:
        if isinstance(error, MmaprobeError):
            raise
        said = unforeseen(error, room.store.path)
        return str(said), said.exit_code, notes


def _below(room: Room, minimum: int) -> int:
    """How many first instructions of forms had less than so many vectors, nothing being wrong with them."""
    known = [room.part(made) for made in room.plan.bases if not room.left_out(made)]
    return sum(part.vectors < minimum and not part.mismatch_count for part in known)


def _results(plan: Plan, store: Store) -> list[Result]:
    """What is known of every instruction, those of one form side by side."""
    parts = store.parts
    found = []
    for group in plan.groups:
        for made in (*group, *plan.others.get(group[0].id, ())):
            if made.id in parts:
                found.append(Result(made, resumed=parts[made.id], form=group[0]))
    return found
