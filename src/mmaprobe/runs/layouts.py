"""The step ``layouts``: where every form's operands go, at several sizes and every placement; open ones settled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.known_answer import WrongAnswerError
from mmaprobe.evidence.records import Finding
from mmaprobe.evidence.records_json import finding_to_json
from mmaprobe.exit_codes import DEVICE_FAILED, INCONCLUSIVE
from mmaprobe.probing.suite import probe_layout_alone
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.survey.layouts import settle, settles, unsettled


def find_layouts(run: RunState) -> Work:
    """Ask the layout of every instruction once; one whose operands are elsewhere is left out of what follows."""
    result = run.result("layouts")
    found = result.setdefault("findings", {})
    for number, made in enumerate(run.later(run.plan.asked, lambda made: made)):
        if made.id in found or run.left_out(made):
            continue
        with run.asking(made):
            finding = _layout(run, made)
            found[made.id] = finding_to_json(finding)
            if finding.status == "contradictory":
                run.save(made, findings=(finding,))
                run.fail(made, f"layout: {finding.text}", DEVICE_FAILED)
            elif finding.status == "inconclusive" and unsettled(run.device, made):
                run.fail(made, f"layout: {finding.text}", INCONCLUSIVE)
        result["text"] = _text(run, number + 1)
        yield made.id


def recall(run: RunState) -> None:
    """Take in what earlier slices, or runs, of the step ``layouts`` settled."""
    if not settles(run.device):
        return
    known = {made.id: made for made in run.plan.asked}
    for name, finding in _findings(run).items():
        answer = finding["answer"]
        if name in known and isinstance(answer, dict) and answer.get("claim"):
            run.device.layouts.settle(known[name], answer["claim"])


def _layout(run: RunState, made: Instruction) -> Finding:
    """The layout as found; where a GPU's known answer already comes out wrong, which operand it is that goes astray."""
    if unsettled(run.device, made):
        return settle(run.device, made, run.seed)
    try:
        return probe_layout_alone(run.device, made, run.seed)
    except WrongAnswerError:
        unproven: Callable[[], AbstractContextManager[None]] | None = getattr(run.device, "unproven", None)
        if unproven is None:
            raise
        with unproven():
            finding = probe_layout_alone(run.device, made, run.seed)
        if finding.status != "contradictory":
            raise
        return finding


def _findings(run: RunState) -> dict[str, Any]:
    found: dict[str, Any] = run.result("layouts").get("findings", {})
    return found


def _text(run: RunState, done: int) -> str:
    statuses = [each["status"] for each in _findings(run).values()]
    wrong = statuses.count("contradictory")
    settled = sum("claim" in (each["answer"] or ()) and each["status"] == "bounded" for each in _findings(run).values())
    said = [f"{done} of {len(run.plan.asked)} asked, {wrong} wrong"]
    said += [f"{settled} open ones settled"] * bool(settled)
    said += [f"{run.plan.unasked} more do not run here"] * bool(run.plan.unasked)
    return ", ".join(said)
