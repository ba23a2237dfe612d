"""The commands that compare two devices bit for bit: one instruction, a plan, a shard of one, and shards merged."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import mmaprobe
from mmaprobe.catalog.lookup import is_glob
from mmaprobe.cli import argument_checks
from mmaprobe.cli.catalog_option import named
from mmaprobe.cli.gemm import hold
from mmaprobe.cli.terminal import (
    AcceptOption,
    BaselineOption,
    DrawnSeedOption,
    JsonOption,
    MarkdownOption,
    VectorsOption,
    app,
    check_files,
    drawn,
    emit,
    going_on,
    out,
    path,
    print_verdict,
    refuse,
    show,
    written,
)
from mmaprobe.devices.products import is_product
from mmaprobe.errors import UsageError
from mmaprobe.showing import counted, mismatches_in
from mmaprobe.vendors import every

if TYPE_CHECKING:
    from mmaprobe.baselines.gate import Baseline
    from mmaprobe.campaigns.campaign import Campaign
    from mmaprobe.campaigns.plan import ValidationPlan
    from mmaprobe.campaigns.shard import ShardResult
    from mmaprobe.campaigns.verbs import CampaignOptions

NOT_OF_A_SHARD = (
    "resume", "engine", "workers", "shards", "scheduler", "partition", "junit", "markdown", "baseline", "accept_change",
)  # fmt: skip
"""Options of a whole plan on one device, which neither a single shard nor all GPUs take."""
OF_A_PLAN = ("shard", "out_folder", "budget", "all_gpus", *NOT_OF_A_SHARD)
"""Options that go with ``--plan`` alone."""
MAKERS = " or ".join(vendor.scheme for vendor in every())
"""In place of a device: every GPU of a maker."""
JunitOption = Annotated[Path | None, typer.Option("--junit", parser=path, help="Write a JUnit file too.")]


@dataclass(frozen=True)
class Told:
    """Where a campaign's summary goes, besides the terminal or instead of it; ``gate``: what it is held against."""

    junit: Path | None
    markdown: Path | None
    as_json: bool
    gate: Baseline | None = None


@app.command()
@argument_checks.arguments_first(argument_checks.validate)
def validate(
    context: typer.Context,
    dut: Annotated[str, typer.Argument(help=f"Device under test; with --all-gpus a maker's: {MAKERS}.")] = "",
    ref: Annotated[str, typer.Argument(help="Reference device, such as model:x86-64; a plan may name one.")] = "",
    instruction: Annotated[
        str, typer.Argument(help="Instruction id; none between two whole products; with --plan a glob that narrows it.")
    ] = "",
    vectors: VectorsOption = 1_000_000,
    seed: DrawnSeedOption = None,
    generator: Annotated[
        list[str] | None,
        typer.Option("--generator", "-g", metavar="FAMILY", help="Only vectors of this family. May be repeated."),
    ] = None,
    nan: Annotated[str, typer.Option(help="When two NaNs are equal: bits (same code), or any.")] = "bits",
    plan: Annotated[
        str, typer.Option(help="Many instructions: a plan's name (list: mmaprobe plans), or FILE.toml.")
    ] = "",
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", parser=path, help="Folder for the evidence of a plan.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the campaign in --out ended.")] = False,
    budget: Annotated[float | None, typer.Option(help="Minutes to take, in place of the plan's.")] = None,
    shard: Annotated[
        str | None, typer.Option(help="This part of the plan alone, such as 3/8; one file into --out.")
    ] = None,
    shards: Annotated[int, typer.Option(help="Parts to cut the plan into; 0: as fits the workers.", min=0)] = 0,
    engine: Annotated[str, typer.Option(help="Who computes: local (processes here), dask or slurm.")] = "local",
    workers: Annotated[int, typer.Option(help="Parts at a time.", min=1)] = 1,
    scheduler: Annotated[str, typer.Option(help="Address of a dask scheduler.")] = "",
    partition: Annotated[str, typer.Option(help="Partition of Slurm.")] = "",
    all_gpus: Annotated[
        bool, typer.Option("--all-gpus", help="The plan on every GPU that is here, a line each.")
    ] = False,
    baseline: BaselineOption = None,
    accept_change: AcceptOption = None,
    junit: JunitOption = None,
    save: Annotated[Path | None, typer.Option(parser=path, help="Save mismatches to this file, for replay.")] = None,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> int:
    """Compare two devices bit for bit: one instruction, or as many as a plan says."""
    from mmaprobe.report import progress
    from mmaprobe.report.tables import findings

    if plan:
        from mmaprobe.campaigns.engines import EngineOptions
        from mmaprobe.campaigns.verbs import CampaignOptions

        refuse(context, ("vectors", "generator", "nan", "save"), "goes without --plan, which says it")
        if shard is not None:  # an empty one is a variable of a script that was not set, and not the whole plan
            refuse(context, (*NOT_OF_A_SHARD, "all_gpus"), "goes without --shard, which is one of them alone")
        if all_gpus:
            refuse(context, NOT_OF_A_SHARD, "goes without --all-gpus, which runs the whole plan on each")
        chosen = _plan(plan, instruction)
        options = CampaignOptions(
            seed if resume or shard is not None else drawn(seed), out_folder, budget, shards, resume,
            EngineOptions(engine, workers, scheduler, partition), tuple(map(str, named)),
        )  # fmt: skip
        if all_gpus:
            return _validate_all_gpus(dut, ref or chosen.reference, chosen, options, as_json)
        check_files(junit, markdown)
        _check_pair(dut, ref or chosen.reference, plan)
        told = Told(junit, markdown, as_json, _gate(baseline, dut, accept_change or (), out_folder))
        return _validate_plan(dut, ref or chosen.reference, chosen, shard, options, told)
    refuse(context, OF_A_PLAN, "goes with --plan")
    if not instruction and is_product(dut) and is_product(ref):
        refuse(context, ("nan", "save", "markdown"), "goes with an instruction; of whole products two NaNs are equal")
        return hold(dut, ref, vectors, drawn(seed), generator, as_json)
    if not (ref and instruction):
        lacking = "an instruction" if ref else "a reference, such as model:x86-64, and an instruction"
        raise UsageError(f"name {lacking}; or compare many by a plan: --plan quick")
    if is_glob(instruction):
        raise UsageError(f"{instruction!r} names many instructions; compare them by a plan: --plan quick")
    seed = drawn(seed)
    with progress.CountProgress(vectors) as bar:
        summary = mmaprobe.validate(
            dut, ref, instruction, vectors, seed, generator or None, nan=nan, save=save, progress=bar
        )
    if as_json:
        emit(findings.summary_json(summary))
    else:
        findings.print_summary(out(), summary, save)
    return summary.exit_code


def _plan(name: str, instruction: str) -> ValidationPlan:
    """The plan, of other instructions where some are named."""
    from mmaprobe.campaigns.plan import read_plan

    chosen = read_plan(name)
    return replace(chosen, instructions=(instruction,), least_instructions=1) if instruction else chosen


def _gate(baseline: Path | None, dut: str, accept: Sequence[str], out: Path | None) -> Baseline | None:
    """The baseline that a campaign of a device is held against; UsageError without a folder for its own evidence."""
    from mmaprobe.baselines.gate import gate_for, read_baseline
    from mmaprobe.devices.base import open_device

    if baseline is None:
        read_baseline(None, accept)
        return None
    if out is None:
        raise UsageError("--baseline holds evidence against evidence, and this is kept nowhere: --out FOLDER")
    return gate_for(baseline, open_device(dut), accept, out)


def _validate_all_gpus(which: str, ref: str, plan: ValidationPlan, options: CampaignOptions, as_json: bool) -> int:
    """Run a plan on every GPU, and say a line of each."""
    from mmaprobe.campaigns.all_gpus import exit_code_of, validate_all_gpus, visible_gpus
    from mmaprobe.campaigns.summary_rows import campaign_json

    found = validate_all_gpus(visible_gpus(which), ref, plan, options)
    code = exit_code_of(found)
    if as_json:
        rows = [{"device": each.name, "line": each.line, "exit_code": each.exit_code,
                 "campaign": campaign_json(each.campaign) if each.campaign else None} for each in found]  # fmt: skip
        emit({"plan": plan.name, "gpus": rows, "exit_code": code})
    else:
        for each in found:
            out().print(each.line)
    return code


def _check_pair(dut: str, ref: str, plan: str) -> None:
    """UsageError, with the command that names both, where a plan has no device or no reference."""
    if not dut:
        raise UsageError("name a device under test, or all GPUs that are here: --all-gpus")
    if not ref:
        again = f"mmaprobe validate {shlex.quote(dut)} REF --plan {shlex.quote(plan)}"
        raise UsageError(f"--plan {plan} names no reference; name one: {again}")


def _validate_plan(
    dut: str, ref: str, plan: ValidationPlan, shard: str | None, options: CampaignOptions, told: Told
) -> int:
    """Run a plan, or one shard of it, and say what was found."""
    from mmaprobe.campaigns.parts import shard_named
    from mmaprobe.campaigns.verbs import carry_out, validate_shard
    from mmaprobe.report import progress

    with progress.CountProgress(0) as bar:
        options = replace(options, progress=bar, planned=bar.of)
        if shard is not None:
            return _say_shard(validate_shard(dut, ref, plan, shard_named(shard), options), options.out, told.as_json)
        with going_on(options.out, options.seed):
            campaign = carry_out(dut, ref, plan, options)
    return _say(campaign, str(options.out or ""), told)


@app.command()
def merge(
    shards: Annotated[list[Path], typer.Argument(parser=path, help="Files of shards, or folders of them.")],
    out_folder: Annotated[Path, typer.Option("--out", "-o", parser=path, help="New evidence folder.")],
    junit: JunitOption = None,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> int:
    """Put the shards of a plan together into one evidence."""
    from mmaprobe.campaigns.verbs import merge as merge_shards

    check_files(junit, markdown)
    return _say(merge_shards(shards, out_folder), str(out_folder), Told(junit, markdown, as_json))


@app.command()
def plans(as_json: JsonOption = False) -> int:
    """List the plans of validate --plan."""
    from mmaprobe.campaigns.plan import plan_names

    return show([{"plan": name, "about": about} for name, about in plan_names().items()], as_json, ("plan", "about"))


def _say(campaign: Campaign, evidence: str, told: Told) -> int:
    from mmaprobe.baselines.gate import held_against
    from mmaprobe.campaigns.summary_rows import campaign_json, campaign_lines, summary_of_campaign
    from mmaprobe.exit_codes import worst
    from mmaprobe.report import junit as report_junit
    from mmaprobe.report import markdown as report_markdown
    from mmaprobe.report.tables.campaign import print_campaign

    summary = summary_of_campaign(campaign, evidence)
    verdict = held_against(told.gate, Path(evidence)) if told.gate is not None else None
    code = campaign.exit_code if verdict is None else worst({campaign.exit_code, verdict.exit_code})
    failure = None if verdict is None else verdict.failure
    junit, markdown, lines = told.junit, told.markdown, list(campaign_lines(campaign))
    writes = [lambda: report_junit.write(summary, junit, failure)] if junit else []
    if markdown:
        writes.append(lambda: report_markdown.write(summary, markdown, lines, failure=failure or ""))
    code = worst({code, written(*writes)})
    if told.as_json:
        document = campaign_json(campaign, evidence)
        emit(document | ({"baseline": verdict.to_json()} if verdict is not None else {}) | {"exit_code": code})
    else:
        print_campaign(out(), summary, lines)
        print_verdict(verdict)
    return code


def _say_shard(result: ShardResult, folder: Path | None, as_json: bool) -> int:
    from mmaprobe.campaigns.shard_file import shard_name, shard_to_json
    from mmaprobe.campaigns.summary_rows import shard_rows
    from mmaprobe.report.tables.run import troubles

    if as_json:
        emit(shard_to_json(result))
        return result.exit_code
    file = folder / shard_name(result.shard) if folder else None
    where = f"; {file}" if file else "; kept nowhere, without --out"
    left = f", {len(result.left)} left by the budget" if result.left else ""
    out().print(
        f"shard {result.shard} of plan {result.plan['name']}: {mismatches_in(result.mismatches, result.vectors)}, "
        f"{counted(len(result.done), 'part')}{left}, {result.seconds:.1f} s{where}",
    )  # fmt: skip
    for line in troubles(shard_rows(result, file)):
        out().print(line)
    return result.exit_code
