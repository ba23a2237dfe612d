"""``run`` and ``bring_up``: the list of steps, and which of them a device takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mmaprobe.devices.base import Device
from mmaprobe.errors import UsageError
from mmaprobe.options import checked
from mmaprobe.runs.asking import ask_questions, probe_primitives
from mmaprobe.runs.beginning import OPTIONS, Options, goes_by_steps
from mmaprobe.runs.cpu import run_cpu
from mmaprobe.runs.deriving import derive_main, survey_all
from mmaprobe.runs.engine import conduct
from mmaprobe.runs.instructions import EACH_IN_TURN, VECTORS
from mmaprobe.runs.layouts import find_layouts
from mmaprobe.runs.product import product_step
from mmaprobe.runs.recording import record_all, record_main, write_archive
from mmaprobe.runs.result import Report
from mmaprobe.runs.run_state import Clock, RunListener
from mmaprobe.runs.selftest import test_itself
from mmaprobe.runs.steps import RunStep, chosen
from mmaprobe.runs.validating import validate_all

STEPS = (
    RunStep("selftest", "a kernel of each kind, and a fused campaign, in a child process first", 30, test_itself),
    RunStep("layouts", "where the operands of every form go, at several sizes and every placement", 100, find_layouts),
    RunStep("outputs", "the main forms' answers to vectors named by recipes", 10, record_main, write_archive),
    RunStep("main", "the main forms: derived, beside the shipped file, validated briefly", 80, derive_main),
    RunStep("questions", "what is open about this architecture", 60, ask_questions),
    RunStep("survey", "every primitive derived once, the other instructions shown equal", 180, survey_all),
    RunStep("probes", "every question of the probe suite, to each distinct primitive", 120, probe_primitives),
    RunStep("validation", "vectors by weight: every form, every distinct one, the main ones", 180, validate_all,
         owes=lambda plan: plan.bases),
    RunStep("recording", "answers to vectors named by recipes", 60, record_all, write_archive),
    RunStep("cpu", "this machine's own CPU", 60, run_cpu),
)  # fmt: skip
"""In this order, so that the first minutes answer the most, and their answers are there whatever breaks later."""


def run(
    device: Device | str | None = None,
    *,
    instruction: str = "*",
    vectors: int = VECTORS,
    seed: int | None = None,
    out: str | Path | None = None,
    budget: float | None = None,
    resume: bool = False,
    check: bool = False,
    least: int = 0,
    listener: RunListener | None = None,
) -> Report:
    """Probe, derive and validate every supported instruction that ``instruction`` (an id or glob) names.

    ``vectors`` are compared per instruction, divided among its control states
    (at least 10**5 each).  Without a ``seed`` one is drawn (``Report.seed``).
    A datapath that is not the shipped one is exit code 1; with ``check`` an instruction of which nothing is shipped, or
    that is missing without a reason, is so too.  ``least`` instructions must be compared.  ``budget`` minutes end the
    run cleanly: 0 where each state had its ``LEAST_PER_MODE`` vectors (or its share, where that is less), 4 where not.
    ``resume`` goes on in ``out``.  Evidence is written as each part ends.

    >>> import tempfile, mmaprobe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = mmaprobe.run("model:x86-64+intel", instruction="x86.pmaddwd", vectors=1000, seed=1, out=folder)
    >>> report.exit_code, report.vectors, report.mismatches
    (0, 1000, 0)

    Raises UsageError, NotHereError, CannotWriteError; what a device does wrong is
    in the report.
    """
    checked("run", {"device": device}, OPTIONS)
    options = Options(instruction, vectors, seed, out, budget, resume, check, least, listener)
    return conduct(device, EACH_IN_TURN, options)


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
    listener: RunListener | None = None,
    clock: Clock = time.monotonic,
) -> Report:
    """Run the steps (all, or those named) on what an id or glob names of a device, within ``budget`` minutes.

    ``vectors`` bound the validation of each instruction; without a ``seed`` one is drawn (``Report.seed``).
    ``check`` and ``least`` are those of ``run``.  A spent budget is exit code 0 where the first instruction of every
    form had ``LEAST_PER_MODE`` vectors (or ``vectors``, where that is less), 4 where not.
    Slices of at most three minutes go round the steps; every slice is written as it ends, and ``resume`` goes on in
    ``out`` where the last one ended, on the same device with the same driver, kernels and options.

    >>> import tempfile, mmaprobe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = mmaprobe.bring_up(
    ...         "model:x86-64+intel", instruction="x86.pmaddwd", vectors=1000, seed=1, out=folder, steps=["validation"])
    >>> report.exit_code, report.vectors
    (0, 1000)

    Raises UsageError, NotHereError, CannotWriteError; what the device does wrong is in the report.
    """
    checked("bring_up", {"device": device, "steps": steps}, OPTIONS)
    options = Options(instruction, vectors, seed, out, budget, resume, check, least, listener, clock)
    return conduct(device, chosen(STEPS, steps), options, whole=not steps)


def run_as_typed(device: Device, steps: str | None, options: Options) -> Report:
    """What the command does: the steps whose names are typed (``all`` of them), else those that the device takes."""
    if options.schedule:
        return conduct(device, (product_step(device, options.schedule),), options)
    if steps is None and not goes_by_steps(device):
        vectors = VECTORS if options.vectors is None and options.planned is None else options.vectors
        return conduct(device, EACH_IN_TURN, replace(options, vectors=vectors))
    taken = typed_steps(steps)
    if options.planned is not None and all(step.work is not validate_all for step in taken):
        raise UsageError("--plan says how the step validation compares, and --steps leaves that out")
    return conduct(device, taken, options, whole=taken == STEPS)


def typed_steps(names: str | None) -> tuple[RunStep, ...]:
    """The steps of these names with commas between them; all where there is none, or ``all``."""
    return chosen(STEPS, () if names in (None, "all") else str(names).split(","))
