"""A campaign as the summary that tables, JSON and JUnit are made from, and as lines for a person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mmaprobe.campaigns.campaign import Campaign, CampaignRow, rows_of
from mmaprobe.campaigns.shard import ShardResult
from mmaprobe.campaigns.shard_file import exhausted_json
from mmaprobe.evidence.cell_counts import NO_CELLS
from mmaprobe.exit_codes import INCONCLUSIVE
from mmaprobe.generators.enumerations import ADDENDS
from mmaprobe.report.json import to_json
from mmaprobe.report.mismatches import again_command, file_command, in_short, part_command, shown_in_row
from mmaprobe.report.run_summary import AGAIN, InstructionRow, RunSummary
from mmaprobe.runs.report_summary import OUTCOMES
from mmaprobe.showing import counted, counted_states, of_which
from mmaprobe.survey.smoke import drawn_vectors
from mmaprobe.validation.summary import Summary

Kept = Callable[[str], str]
NAMED = 6
"""Instructions that a line names."""
ALIKE = 2
"""Instructions that a line names of which the same is said: JSON says it of each."""


def summary_of_campaign(campaign: Campaign, evidence: str = "") -> RunSummary:
    """One row an instruction and control state."""
    return RunSummary(
        device=campaign.device.name,
        identity=campaign.device.identity,
        run=campaign.header.run,
        version=campaign.version,
        seed=campaign.seed,
        rows=tuple(_row(row, partial(_of_part, evidence, campaign.device.name)) for row in campaign.rows),
        not_here=campaign.absent,
        evidence=evidence,
        seconds=campaign.seconds,
        ended="; ".join(ends_early(campaign)),
        failure=INCONCLUSIVE if campaign.few else 0,
        unreached=len(campaign.below),
        reference=campaign.reference.name,
    )


def shard_rows(result: ShardResult, file: Path | None) -> list[InstructionRow]:
    """One row an instruction of a shard; ``file`` holds it, where it is kept."""
    kept = file_command(file, result.device.name) if file else ""
    return [_row(row, lambda instruction: kept) for row in rows_of(result.done, set())]


def _of_part(evidence: str, device: str, instruction: str) -> str:
    """The command that asks the mismatches of an instruction's part of evidence again; nothing without evidence."""
    return part_command(Path(evidence), instruction, device) if evidence else ""


def _detail(row: CampaignRow, kept: Kept) -> str:
    """Why a row is not equal: what ended it, else its first mismatch with the command that asks it again."""
    if row.error or row.summary is None or not row.summary.examples:
        return row.error
    return f"{in_short(row.summary.examples[0])}{AGAIN}{_again(row.summary, kept)}"


def _shown(row: CampaignRow, kept: Kept) -> tuple[str, ...]:
    """The lines of that mismatch; of another reason none."""
    if row.error or row.summary is None or not row.summary.examples:
        return ()
    return shown_in_row(row.instruction, row.summary.examples[0], _again(row.summary, kept))


def _again(summary: Summary, kept: Kept) -> str:
    """The command that asks its mismatches again: those of a file, else the first one."""
    return kept(summary.instruction) or again_command(summary, summary.examples[0])


def _row(row: CampaignRow, kept: Kept) -> InstructionRow:
    """What is said of a row; ``kept``: the command that asks what is kept of an instruction again, if it is."""
    return InstructionRow(
        instruction=row.instruction,
        outcome=OUTCOMES.get(row.exit_code, "inconclusive"),
        vectors=row.vectors,
        mismatches=row.mismatches,
        seconds=row.summary.seconds if row.summary is not None else 0.0,
        coverage=row.summary.coverage if row.summary is not None else NO_CELLS,
        detail=_detail(row, kept),
        shown=_shown(row, kept),
        drawn=drawn_vectors((name, count.vectors) for name, count in row.families),
        tiled=sum(count.outputs for _, count in row.families),
    )


def campaign_json(campaign: Campaign, evidence: str = "") -> dict[str, Any]:
    """The summary, and what the plan was."""
    return to_json(summary_of_campaign(campaign, evidence)) | {
        "plan": dict(campaign.plan), "reference": campaign.reference.name, "parts": campaign.count,
        "parts_left": campaign.left, "canaries": campaign.canaries,
        "lines": list(campaign_lines(campaign)), "exit_code": campaign.exit_code,
        **({"exhausts": {row.instruction: _exhausted_json(campaign, row) for row in campaign.rows}}
           if campaign.exhausts else {}),
    }  # fmt: skip


def _exhausted_json(campaign: Campaign, row: CampaignRow) -> dict[str, Any]:
    """What there is to count through of an instruction, and how many of it were compared."""
    said = exhausted_json(campaign.exhausts[row.instruction])
    for name, space in said["spaces"].items():
        space["compared"] = row.counted(name)
    return said


def campaign_lines(campaign: Campaign) -> Iterator[str]:
    """What the counts say and do not say, and why it ended as it did."""
    plan = campaign.plan
    yield (
        f"plan {plan['name']}: {campaign.device.name} against {campaign.reference.name}, seed {campaign.seed}: "
        f"{counted(campaign.vectors, 'vector')} of {counted_states(len(campaign.rows))}, "
        f"{counted(campaign.mismatches, 'mismatch')}"
    )
    yield from _exhausted(campaign)
    if campaign.canaries:
        yield f"a difference was planted in {campaign.canaries} comparisons and reported in each"
    yield from ends_early(campaign)
    if campaign.below and campaign.exhausts:
        yield f"not counted through to the end, as the plan demands: {_some(campaign.below)}"
    elif campaign.below:
        yield f"fewer vectors than the plan's least of {plan['least_vectors']:,}: {_some(campaign.below)}"


def _exhausted(campaign: Campaign) -> Iterator[str]:
    """What was counted through, and what of the same instructions was not: alike ones in a line."""
    counts: dict[str, list[str]] = defaultdict(list)
    leaves: dict[str, list[str]] = defaultdict(list)
    for row in campaign.rows:
        exhausts = campaign.exhausts.get(row.instruction)
        for name, (size, words) in exhausts.spaces.items() if exhausts else ():
            compared = row.counted(name)
            told = "each once" if compared == size else "NOT ALL"
            counts[f"{name}: {compared:,} of {size:,} vectors, {told}: {words}"].append(row.instruction)
        for words in exhausts.leaves if exhausts else ():
            leaves[words].append(row.instruction)
    yield from (f"{said} ({_some(names, ALIKE)})" for said, names in counts.items())
    if campaign.exhausts:
        yield (
            f"each alone, all other lanes zeros, where there is a C with {len(ADDENDS)} of them that hide no bit of "
            "it; no vector has several live lanes or another C"
        )
    yield from (f"not counted through: {words} ({_some(names, ALIKE)})" for words, names in leaves.items())


def ends_early(campaign: Campaign) -> Iterator[str]:
    """That the budget ended it, and that it is fewer instructions than the plan wants."""
    if campaign.ended:
        done = of_which(campaign.count - campaign.left, campaign.count, "part", "were")
        yield f"the budget was spent: {done} begun, of which it may have cut the last of each shard short"
    if campaign.few:
        least = campaign.plan["least_instructions"]
        yield f"{counted(campaign.compared, 'instruction')} compared as the plan wants; at least {least} must be"


def _some(names: Iterable[str], most: int = NAMED) -> str:
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
