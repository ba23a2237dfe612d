"""A campaign as the summary that tables, JSON and JUnit are made from, and as lines for a person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mmaprobe.campaigns.campaign import Campaign, CampaignRow, rows_of
from mmaprobe.campaigns.shard import ShardResult
from mmaprobe.campaigns.shard_file import exhausted_json
from mmaprobe.derivation.certificate import one_in
from mmaprobe.evidence.cell_counts import NO_CELLS
from mmaprobe.exit_codes import INCONCLUSIVE
from mmaprobe.generators.enumerations import ADDENDS
from mmaprobe.report.json import to_json
from mmaprobe.report.mismatches import again_command, in_short, part_command
from mmaprobe.report.run_summary import AGAIN, InstructionRow, RunSummary
from mmaprobe.runs.report_summary import OUTCOMES
from mmaprobe.showing import counted, counted_states, of_which
from mmaprobe.survey.smoke import NOT_DRAWN

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
        rows=tuple(_row(row, campaign.device.name, evidence) for row in campaign.rows),
        not_here=campaign.absent,
        evidence=evidence,
        seconds=campaign.seconds,
        ended="; ".join(ends_early(campaign)),
        failure=INCONCLUSIVE if campaign.few else 0,
        unreached=len(campaign.below),
        reference=campaign.reference.name,
    )


def shard_lines(result: ShardResult) -> Iterator[str]:
    """What is wrong with a shard's instructions, a line each."""
    rows = [_row(row, result.device.name, "") for row in rows_of(result.done, set())]
    yield from (f"{row.instruction}: {row.detail}" for row in rows if row.detail)


def _detail(row: CampaignRow, device: str, evidence: str) -> str:
    """Why a row is not equal: what ended it, else its first mismatch with the command that asks it again."""
    if row.error or row.summary is None or not row.summary.examples:
        return row.error
    first = row.summary.examples[0]
    kept = part_command(Path(evidence), row.instruction, device) if evidence else again_command(row.summary, first)
    return f"{in_short(first)}{AGAIN}{kept}"


def _row(row: CampaignRow, device: str, evidence: str) -> InstructionRow:
    return InstructionRow(
        instruction=row.instruction,
        outcome=OUTCOMES.get(row.exit_code, "inconclusive"),
        vectors=row.vectors,
        mismatches=row.mismatches,
        seconds=row.summary.seconds if row.summary is not None else 0.0,
        coverage=row.summary.coverage if row.summary is not None else NO_CELLS,
        detail=_detail(row, device, evidence),
    )


def campaign_json(campaign: Campaign, evidence: str = "") -> dict[str, Any]:
    """The summary, what the plan was, and what a fault rate is excluded by it."""
    return to_json(summary_of_campaign(campaign, evidence)) | {
        "plan": dict(campaign.plan), "reference": campaign.reference.name, "parts": campaign.count,
        "parts_left": campaign.left, "canaries": campaign.canaries, "excluded_one_in": excluded(campaign),
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


def excluded(campaign: Campaign) -> int:
    """A fault on 1 in so many generated vectors, or more, is excluded at 95 % of every instruction without a mismatch;
    0 where some had no such vectors."""
    return one_in(min((_generated(row) for row in campaign.rows if not row.mismatches), default=0))


def excluded_of(row: CampaignRow) -> int:
    """The same of one instruction alone."""
    return 0 if row.mismatches else one_in(_generated(row))


def _generated(row: CampaignRow) -> int:
    """Vectors of generators, the only ones that say something of a rate."""
    return sum(count.vectors for name, count in row.families if name not in NOT_DRAWN)


def campaign_lines(campaign: Campaign) -> Iterator[str]:
    """What the counts say and do not say, and why it ended as it did."""
    plan = campaign.plan
    yield (
        f"plan {plan['name']}: {campaign.device.name} against {campaign.reference.name}, seed {campaign.seed}: "
        f"{counted(campaign.vectors, 'vector')} of {counted_states(len(campaign.rows))}, "
        f"{counted(campaign.mismatches, 'mismatch')}"
    )
    generated = sum(map(_generated, campaign.rows))
    if campaign.mismatches == 0 and generated:
        yield f"0 of {generated:,}: a fault rate above 3/{generated:,} of such vectors is excluded at 95 %" + (
            f"; for each instruction alone, above 1 in {excluded(campaign):,}" if excluded(campaign) else ""
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
