"""A run that was read from its evidence: the summary that it printed, made of its parts as that of a report is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instructions, matches, short
from mmaprobe.catalog.lookup import instruction as lookup
from mmaprobe.catalog.states import default_state
from mmaprobe.catalog.variants import asked
from mmaprobe.errors import UsageError
from mmaprobe.evidence.cell_counts import coverage_of
from mmaprobe.evidence.store import Header, Part, Store
from mmaprobe.exit_codes import DEVICE_FAILED, INCONCLUSIVE, MISMATCH
from mmaprobe.parameters.table import from_table
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.report.json import to_json
from mmaprobe.report.run_summary import DERIVED, InstructionRow, RunSummary, drawn_of, tiled_of
from mmaprobe.runs.asking import answers_of
from mmaprobe.runs.open_questions.answers import answer_to_json
from mmaprobe.runs.report_summary import OUTCOMES, kept_detail, kept_shown, row_of
from mmaprobe.runs.result import Result, cpu_codes, step_row
from mmaprobe.runs.verbs import STEPS


def kept_summary(store: Store) -> RunSummary:
    """The summary of a run from its evidence alone.

    What was derived is as it stood to the parameters that shipped then.  What was not here, and how long a run without
    steps took, no evidence says.
    """
    header = store.header
    taken = [step.name for step in STEPS]
    steps = sorted(store.steps.values(), key=lambda step: taken.index(step.name) if step.name in taken else len(taken))
    codes = {each.exit_code for each in answers_of(store)} | {*cpu_codes(store.steps)}
    codes |= {INCONCLUSIVE} if header.is_campaign and not store.finished else set()
    return RunSummary(
        device=header.device,
        identity=header.identity,
        run=header.run,
        version=header.version,
        seed=header.seed,
        rows=tuple(row for row, _ in kept_rows(store)),
        evidence=str(store.path),
        seconds=sum(step.seconds for step in steps),
        steps=tuple(map(step_row, steps)),
        ended="" if store.settled else "it is not finished",
        reference=str(header.settings["reference"]) if header.is_campaign else DERIVED,
        failure=next((code for code in (DEVICE_FAILED, MISMATCH, INCONCLUSIVE) if code in codes), 0),
    )


def kept_rows(store: Store) -> list[tuple[InstructionRow, tuple[Part, ...]]]:
    """The rows of that summary, each with the parts that it tells of."""
    header, groups = store.header, dict[str, list[Result]]()
    unlisted: list[tuple[InstructionRow, tuple[Part, ...]]] = []
    forms, order = _forms(header), _order(header)
    for name, part in store.parts.items():
        try:
            made = lookup(name, header.identity.get("architecture") or None)
        except UsageError:
            unlisted.append((_unlisted(part, store), (part,)))
            continue
        result = Result(made, resumed=part, form=forms.get(name))
        if name in forms or _is_asked(made, str(header.settings.get("instruction", "*"))):
            groups.setdefault(result.row, []).append(result)
    known = sorted(groups.items(), key=lambda group: order.get(group[0], len(order)))
    return [
        (row_of(name, states, store.path, header.device), tuple(each.resumed for each in states if each.resumed))
        for name, states in known
    ] + unlisted


def kept_document(store: Store) -> dict[str, Any]:
    """The same as JSON; of a run by steps with its answers to open questions."""
    answers = {"questions": [answer_to_json(each) for each in answers_of(store)]} if store.steps else {}
    return to_json(kept_summary(store)) | answers


def _forms(header: Header) -> Mapping[str, Instruction]:
    """Of a run by steps the instruction in whose row each size, placement and modifier of a form is told."""
    settings: Mapping[str, Any] = header.settings
    architecture = header.identity.get("architecture", "")
    if settings.get("plan") != "steps" or architecture.partition("+")[0] not in architectures():
        return {}
    groups = asked(architecture, str(settings.get("instruction", "*"))).values()
    return {made.id: group[0] for group in groups if group for made in group[1:]}


def _order(header: Header) -> Mapping[str, int]:
    """The order in which a device has the instructions of its architecture."""
    architecture = header.identity.get("architecture", "")
    if architecture.partition("+")[0] not in architectures():
        return {}
    return {made.id: number for number, made in enumerate(instructions(architecture))}


def _is_asked(made: Instruction, pattern: str) -> bool:
    """Whether the run was about an instruction; others it derived on its way to those."""
    return pattern in (made.id, short(made.id)) or matches(made, pattern) or matches(default_state(made), pattern)


def _unlisted(part: Part, store: Store) -> InstructionRow:
    """The row of an instruction that no catalog knows."""
    table = (part.datapath or {}).get("datapath")
    return InstructionRow(
        instruction=part.instruction,
        outcome=OUTCOMES.get(part.exit_code, "inconclusive"),
        phrases=describe(from_table(table)) if table else {},
        vectors=part.vectors,
        mismatches=part.mismatch_count,
        coverage=coverage_of(part.validation),
        parameters=str((part.comparison or {}).get("outcome", "")),
        detail=kept_detail(part, "", store.path, store.header.device),
        shown=kept_shown(part, store.path, store.header.device),
        drawn=drawn_of(part),
        tiled=tiled_of(part),
    )
