"""The step ``validation``: vectors by weight, against what was derived; every count is of vectors really compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.devices.model import DatapathDevice, ModelDevice
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence.cell_counts import coverage_of
from mmaprobe.generators import families_for
from mmaprobe.parameters.lookup import load
from mmaprobe.runs.planned import PlannedValidation, rounds
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.showing import counted
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.fused import LEAST, UnsteadyLaunchError, fused, instead, runs_campaigns

EACH = 10**6
"""Vectors of each form."""
DISTINCT = 10**9
"""Vectors of each distinct family, formats and K."""
MAIN = 10**11
"""Vectors of each main form."""
FIRST = 10**6
"""Vectors of the first call; the later ones are as many as take ``CALL_SECONDS``."""
CALL_SECONDS = 5.0
"""Seconds of one call, between which a step can be left."""
QUICKER = 64
"""Of a fused kernel's call most is overhead: the next one has so many times its vectors, if that is more."""
RISING = (10**7, 10**8, DISTINCT)
EXAMPLES = 4
"""Mismatches that are kept of an instruction."""
ORDINARY, GIVE_UP = "ordinary", 3
"""A validation's word on why no fused kernel compares the instruction; after so many of them none is asked, unless one
went well."""
WITNESSED = "witnessed"
"""A validation's word on how many witnesses of a plan were compared."""
ALIKE = ("same", "equivalent")
"""Outcomes of a comparison with the shipped file in which no vector tells the two apart."""


def validate_all(run: RunState) -> Work:
    """Every form to the least weight, then the distinct ones to the next, then the main ones to the last; then the
    other sizes and modifiers to the least.

    On a GPU the distinct and main ones that have no fused kernel come after all that, by weights that rise, so
    that none of them takes the time of the others.  A plan (``planned``) takes the place of these weights.
    """
    if run.planned is not None:
        yield from _as_planned(run, run.planned)
        return
    plan, waits = run.sound(), False
    others = tuple(made for made in plan.asked if made not in set(plan.bases))
    for weight, those, at_once in (
        (EACH, plan.bases, False), (DISTINCT, plan.distinct, True), (MAIN, plan.main, True), (EACH, others, False),
        *((weight, plan.distinct, False) for weight in RISING), (MAIN, plan.main, False),
    ):  # fmt: skip
        for made in those:
            if made not in run.surveyor.rows and made in plan.bases and "survey" in run.open_steps:
                waits = True
            elif not at_once or not runs_campaigns(run.device) or _is_quick(run, made, weight):
                yield from validate_up_to(run, made, weight, "validation")
    if waits:
        yield None


def _as_planned(run: RunState, planned: PlannedValidation) -> Work:
    """Every instruction of a plan: its witnesses, then rounds of ever more vectors of its generators."""
    for made in run.plan.states:
        if not run.left_out(made) and WITNESSED not in run.part(made).validation:
            with run.asking(made):
                reference = _reference(run, made, EACH)
                found = planned.witnesses(run.device, reference, made) if reference is not None else None
                if found:
                    _count(run, made, found, planned.vectors)
                run.merge(made, {WITNESSED: found.vectors if found else 0})
            yield f"{made.id}: witnesses"
    for weight in rounds(planned.vectors):
        for made in run.plan.states:
            witnessed = int(run.part(made).validation.get(WITNESSED, 0))
            yield from validate_up_to(run, made, weight + witnessed, "validation")


def validate_up_to(run: RunState, made: Instruction, weight: int, step: str) -> Work:
    """Compare vectors of an instruction until ``weight`` are, or the run's most; a mismatch ends it."""
    weight = weight if run.most is None else min(weight, run.most)
    count, quick, reference = FIRST, False, None
    while run.part(made).vectors < weight and not run.part(made).mismatch_count and not run.left_out(made):
        summary, before = None, run.part(made)
        with run.asking(made):
            reference = reference or _reference(run, made, weight)
            if reference is None:
                return
            quick = weight > EACH and _has_campaign(run, made, reference)
            count = min(max(count, LEAST if quick else 0), weight - before.vectors)
            seed = run.seed + 1 + len(before.validation.get("runs", ()))
            summary = validate(
                run.device, reference, made, count, seed, progress=run.compared, stop=run.late,
                said=lambda why: run.merge(made, {ORDINARY: why}), campaign=campaigns(run, made),
                generators=run.planned.fitting(made) if run.planned is not None else None,
            )  # fmt: skip
            _count(run, made, summary, weight)
        if summary is not None and summary.interrupted and not summary.stopped:
            raise KeyboardInterrupt
        if summary is None or (summary.vectors < count and not summary.stopped):
            return
        rate = summary.vectors / max(summary.seconds, 1e-3)
        count = int(max(FIRST, CALL_SECONDS * rate, QUICKER * summary.vectors if quick else 0))
        run.result(step)["text" if step == "validation" else "validated"] = _text(run)
        yield f"{made.id}: {counted(run.part(made).vectors, 'vector')}"


def _is_quick(run: RunState, made: Instruction, weight: int) -> bool:
    """Whether a fused kernel compares the vectors; what goes wrong is the instruction's."""
    found = False
    if not run.left_out(made):
        with run.asking(made):
            reference = _reference(run, made, weight)
            found = reference is not None and _has_campaign(run, made, reference)
    return found


def campaigns(run: RunState, made: Instruction) -> bool:
    """Whether fused kernels are asked: not one that failed, and none at all where several did and none went well."""
    if ORDINARY in run.part(made).validation:
        return False
    failed = sum(ORDINARY in part.validation for part in run.parts.values())
    return failed < GIVE_UP or any("multiprocessors" in each for part in run.parts.values()
                                   for each in part.validation.get("runs", ()))  # fmt: skip


def prove(run: RunState, made: Instruction) -> int | None:
    """How many of a proof's vectors a fused kernel finds to differ from the shipped datapath; None where there is none.

    What fails is kept with the instruction, for which no fused kernel is asked again; ENDS_ALL and
    UnsteadyLaunchError where that is not the kernel's fault.
    """
    reference = _shipped(run, made)
    if reference is None or not campaigns(run, made):
        return None
    refused = _refused(run, made)
    here = fused(run.device, reference, made, refused)
    if here is None:
        return None
    try:
        return here.prove(families_for(made)[0], run.seed)
    except (*ENDS_ALL, UnsteadyLaunchError):
        raise
    except (DeviceError, NotHereError) as error:
        refused(str(error))
        return None


def ordinary(run: RunState) -> list[str]:
    """The instructions whose fused kernels failed and why, a line each."""
    return [f"{name}: {part.validation[ORDINARY]}" for name, part in sorted(run.parts.items())
            if ORDINARY in part.validation]  # fmt: skip


def _has_campaign(run: RunState, made: Instruction, reference: Device) -> bool:
    """Whether a fused kernel is at hand and asked; what a compiler says against it is kept with the instruction."""

    return campaigns(run, made) and fused(run.device, reference, made, _refused(run, made)) is not None


def _refused(run: RunState, made: Instruction) -> Callable[[str], None]:
    """What keeps why no fused kernel compares an instruction."""
    return lambda why: run.merge(made, {ORDINARY: instead(why)})


def _reference(run: RunState, made: Instruction, weight: int) -> Device | None:
    """The derived datapath; what the lowering makes of the derived primitives; else what is shipped.

    Beyond ``EACH``, what is shipped if no vector tells it from what was derived: fused kernels of these are compiled
    beforehand.
    """
    shipped = _shipped(run, made)
    if weight > EACH and shipped is not None and (run.part(made).comparison or {}).get("outcome") in ALIKE:
        return shipped
    row = run.surveyor.rows.get(made)
    path = row.datapath if row is not None else None
    if path is None and (foreseen := run.surveyor.foreseen(made)) is not None:
        path = foreseen[0]
    if path is not None:
        return DatapathDevice(made, path)
    return shipped


def _shipped(run: RunState, made: Instruction) -> Device | None:
    try:
        shipped = ModelDevice(f"model:{run.architecture}", load(run.architecture))
    except UsageError:
        return None
    return shipped if shipped.supports(made) else None


def _count(run: RunState, made: Instruction, summary: Summary, weight: int) -> None:
    """Add what was compared to the instruction's part."""
    part = run.part(made)
    form = summary.form()
    form.pop("coverage", None)
    vectors, mismatches = part.vectors + summary.vectors, part.mismatch_count + summary.mismatches
    said: dict[str, Any] = {"runs": [*part.validation.get("runs", ()), form], "vectors": vectors,
                            "mismatches": mismatches}  # fmt: skip
    coverage = coverage_of(part.validation) + summary.coverage
    said |= {"coverage": coverage.form()} if coverage.sampled else {}
    run.save(
        made,
        status="finished" if vectors >= min(weight, EACH) and not mismatches else "partial",
        validation={**part.validation, **said},
        vectors=vectors,
        mismatch_count=mismatches,
        mismatches=(*part.mismatches, *summary.examples)[:EXAMPLES],
    )


def _text(run: RunState) -> str:
    compared = [part for part in run.parts.values() if part.vectors]
    vectors = sum(part.vectors for part in compared)
    wrong = sum(part.mismatch_count for part in compared)
    return f"{counted(vectors, 'vector')} of {counted(len(compared), 'instruction')}, {counted(wrong, 'mismatch')}"
