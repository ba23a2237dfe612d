"""The command that runs all of it: every instruction probed, derived, compared, validated, with evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import (
    DeviceOption,
    DrawnSeedOption,
    GlobOption,
    JsonOption,
    PackOption,
    app,
    drawn,
    emit,
    out,
    packed,
    path,
)

if TYPE_CHECKING:
    from mmaprobe.runs import Report


@app.command()
@argument_checks.arguments_first(argument_checks.run)
def run(
    device: DeviceOption = None,
    instruction: GlobOption = "*",
    vectors: Annotated[
        int | None, typer.Option("--vectors", "-n", help="Vectors of each instruction; by steps at most so many.")
    ] = None,
    seed: DrawnSeedOption = None,
    out_folder: Annotated[Path | None, typer.Option("--out", "-o", parser=path, help="Evidence folder.")] = None,
    budget: Annotated[float | None, typer.Option(help="Minutes after which the run ends cleanly.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in --out.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 also where an instruction is new, or missing without a reason.")
    ] = False,
    least: Annotated[int, typer.Option("--least", help="Instructions that must be compared at least.", min=0)] = 0,
    steps: Annotated[
        str | None, typer.Option(help="Step by step, as a GPU always is: names of steps with commas, or all.")
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", parser=path, help="Write a JUnit file too.")] = None,
    pack: PackOption = None,
    as_json: JsonOption = False,
) -> int:
    """Probe, derive, compare and validate every instruction of a device; write evidence."""
    from mmaprobe.devices.base import open_device
    from mmaprobe.report import junit, progress
    from mmaprobe.runs.beginning import Options, best_device
    from mmaprobe.runs.report_summary import document_of, summary_of
    from mmaprobe.runs.verbs import run_as_typed

    options = Options(instruction, vectors, seed, out_folder, budget, resume, check, least)
    name = packed(device, pack)
    opened = best_device() if name is None else open_device(name)
    options = replace(options, seed=seed if resume else drawn(seed))
    with progress.RunProgress() as bars:
        report = run_as_typed(opened, steps, replace(options, listener=bars))
    if junit_file is not None:
        junit.write(summary_of(report), junit_file)
    if as_json:
        emit(document_of(report))
    else:
        _print_report(report)
    return report.exit_code


def _print_report(report: Report) -> None:
    """The table, the answers to open questions, and in a line each what else is to be known."""
    from mmaprobe.report.tables.open_questions import questions_table
    from mmaprobe.report.tables.run import SummaryTable
    from mmaprobe.runs.open_questions.answer_rows import rows_of
    from mmaprobe.runs.report_summary import summary_of

    summary = summary_of(report)
    out().print(SummaryTable(summary))
    answers = [each for each in report.answers if each.status != "not here"]
    if answers:
        rows = rows_of(answers, report.device.info().get("architecture", ""))
        questions_table(out(), rows, str(report.out / "steps" / "questions.json"))
    again = f"ended early: {report.ended}; the same command with --resume --out {report.out} goes on"
    for line in (*summary.remarks, *report.notes, *[again] * bool(report.ended)):
        out().print(line, markup=False, soft_wrap=True)
