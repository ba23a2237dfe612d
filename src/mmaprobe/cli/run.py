"""The command that runs all of it: every instruction probed, derived, compared, validated, with evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli import argument_checks
from mmaprobe.cli.summary import print_summary
from mmaprobe.cli.terminal import (
    AcceptOption,
    BaselineOption,
    DeviceOption,
    DrawnSeedOption,
    GlobOption,
    JsonOption,
    MarkdownOption,
    PackOption,
    app,
    check_files,
    drawn,
    emit,
    packed,
    path,
    print_verdict,
    refuse,
    written,
)

if TYPE_CHECKING:
    from mmaprobe.campaigns.planned_run import PlannedRun
    from mmaprobe.runs import Report


@app.command()
@argument_checks.arguments_first(argument_checks.run)
def run(
    context: typer.Context,
    device: DeviceOption = None,
    instruction: GlobOption = "*",
    vectors: Annotated[
        int | None,
        typer.Option("--vectors", "-n", help="Vectors to compare of each instruction; with --steps at most so many."),
    ] = None,
    seed: DrawnSeedOption = None,
    out_folder: Annotated[
        Path | None,
        typer.Option("--out", "-o", parser=path, help="Folder for the evidence; without it a new one here."),
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Minutes after which the run ends; --resume goes on.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out ended.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 also where an instruction is new, or missing without a reason.")
    ] = False,
    least: Annotated[
        int, typer.Option("--least", help="Exit 4 where fewer instructions than this were compared.", min=0)
    ] = 0,
    steps: Annotated[
        str | None,
        typer.Option(help="Step by step, as GPUs are always run: names of steps, separated by commas, or all."),
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", parser=path, help="Write a JUnit file too.")] = None,
    baseline: BaselineOption = None,
    accept_change: AcceptOption = None,
    plan: Annotated[
        str,
        typer.Option(help="Compare as this plan says (list: mmaprobe plans), or FILE.toml; --instruction narrows it."),
    ] = "",
    schedule: Annotated[
        str, typer.Option(help="Hold a product (function:..., gemm:FILE) to a schedule: its name, FILE.toml, identify.")
    ] = "",
    markdown_file: MarkdownOption = None,
    pack: PackOption = None,
    as_json: JsonOption = False,
) -> int:
    """Find out what every instruction of a device computes, and compare it with what is known; write evidence."""
    from mmaprobe.baselines.gate import gate_for, held_against
    from mmaprobe.devices.base import open_device
    from mmaprobe.exit_codes import worst
    from mmaprobe.report import junit, markdown, progress
    from mmaprobe.runs.beginning import Options, best_device
    from mmaprobe.runs.report_summary import document_of, summary_of
    from mmaprobe.runs.verbs import run_as_typed

    check_files(junit_file, markdown_file)
    planned = None
    if plan:
        refuse(context, ("vectors", "least"), "goes without --plan, which says it")
        planned = _planned(plan, instruction)
        least = planned.plan.least_instructions
        budget = budget if budget is not None else planned.plan.minutes or None
    if schedule:
        refuse(
            context, ("vectors", "least", "steps", "plan", "check"), "goes without --schedule, which says what is done"
        )
    options = Options(
        instruction, vectors, seed, out_folder, budget, resume, check, least, planned=planned, schedule=schedule
    )
    name = packed(device, pack)
    opened = best_device() if name is None else open_device(name)
    gate = gate_for(baseline, opened, accept_change or (), out_folder)
    options = replace(options, seed=seed if resume else drawn(seed))
    with progress.RunProgress() as bars:
        report = run_as_typed(opened, steps, replace(options, listener=bars))
    verdict = None if gate is None or report.interrupted else held_against(gate, report.out)
    code = report.exit_code if verdict is None else worst({report.exit_code, verdict.exit_code})
    failure = None if verdict is None else verdict.failure
    writes = [lambda: junit.write(summary_of(report), junit_file, failure)] if junit_file else []
    if markdown_file:
        writes.append(lambda: markdown.write(summary_of(report), markdown_file, report.notes, failure=failure or ""))
    code = worst({code, written(*writes)})
    if as_json:
        emit(document_of(report) | ({"baseline": verdict.to_json()} if verdict else {}) | {"exit_code": code})
    else:
        _print_report(report)
        print_verdict(verdict)
    return code


def _planned(name: str, instruction: str) -> PlannedRun:
    """The plan as a run takes it, of other instructions where some are named."""
    from mmaprobe.campaigns.plan import read_plan
    from mmaprobe.campaigns.planned_run import PlannedRun

    chosen = read_plan(name)
    if instruction != "*":
        chosen = replace(chosen, instructions=(instruction,), least_instructions=1)
    return PlannedRun(chosen)


def _print_report(report: Report) -> None:
    from mmaprobe.runs.report_summary import summary_of

    again = f"ended early: {report.ended}; the same command with --resume --out {report.out} goes on"
    print_summary(summary_of(report), report.answers, report.out, [*report.notes, *[again] * bool(report.ended)])
