"""Commands that ask a device: run, probe, validate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import mmaprobe
from mmaprobe.cli import words
from mmaprobe.cli.terminal import (
    Device,
    DrawnSeed,
    Glob,
    Json,
    Pack,
    Seed,
    Vectors,
    app,
    drawn,
    emit,
    out,
    packed,
    path,
    refuse,
)
from mmaprobe.errors import UsageError

if TYPE_CHECKING:
    from mmaprobe.runs import Report


@app.command()
@words.words_first(words.run)
def run(
    device: Device = None,
    instruction: Glob = "*",
    vectors: Annotated[
        int | None, typer.Option("--vectors", "-n", help="Vectors of each instruction; by steps at most so many.")
    ] = None,
    seed: DrawnSeed = None,
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
    pack: Pack = None,
    as_json: Json = False,
) -> int:
    """Probe, derive, compare and validate every instruction of a device; write evidence."""
    from mmaprobe.devices.base import open_device
    from mmaprobe.report import junit, progress
    from mmaprobe.runs.beginning import Options, best_device
    from mmaprobe.runs.rows import document_of, summary_of
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
    from mmaprobe.report.tables.questions import questions_table
    from mmaprobe.report.tables.run import SummaryTable
    from mmaprobe.runs.questions.rows import rows_of
    from mmaprobe.runs.rows import summary_of

    summary = summary_of(report)
    out().print(SummaryTable(summary))
    answers = [each for each in report.answers if each.status != "not here"]
    if answers:
        rows = rows_of(answers, report.device.info().get("architecture", ""))
        questions_table(out(), rows, str(report.out / "steps" / "questions.json"))
    again = f"ended early: {report.ended}; the same command with --resume --out {report.out} goes on"
    for line in (*summary.remarks, *report.notes, *[again] * bool(report.ended)):
        out().print(line, markup=False, soft_wrap=True)


@app.command()
@words.words_first(words.probe)
def probe(
    context: typer.Context,
    instruction: Annotated[str | None, typer.Argument(help="Instruction id; with --suite all that fit.")] = None,
    device: Device = "cpu",
    question: Annotated[list[str] | None, typer.Option("--question", "-q", help="Only this question.")] = None,
    suite: Annotated[str | None, typer.Option(help="A published suite instead, such as fasi2021.")] = None,
    questions: Annotated[bool, typer.Option("--questions", help="The open questions, or those of --question.")] = False,
    pack: Pack = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Ask a device black-box questions about one instruction, run a published suite on it, or ask what is open."""
    from mmaprobe.report.tables import findings, suites

    device = packed(device, pack)
    if questions:
        if suite is not None or instruction is not None:
            raise UsageError("--questions names its instructions itself; it goes without one and without --suite")
        return _open_questions(device or "cpu", question or [], seed, as_json)
    if suite is not None:
        refuse(context, ("seed",), "goes without --suite, which has vectors of its own")
        if question:
            raise UsageError("--suite runs a suite as it was published; --question goes without it")
        replications = mmaprobe.replicate(device or "cpu", suite, instruction)
        if as_json:
            emit(suites.suite_json(replications))
        else:
            suites.suite_tables(out(), replications)
        return 0
    if instruction is None:
        raise UsageError("probe: needs an instruction; `mmaprobe instructions ARCH` lists them, or type --suite NAME")
    found = mmaprobe.probe(device or "cpu", instruction, questions=question or None, seed=seed)
    if as_json:
        emit(findings.findings_json(found))
    else:
        findings.findings_table(out(), instruction, found)
    return findings.findings_code(found)


def _open_questions(name: str, wanted: list[str], seed: int, as_json: bool) -> int:
    from mmaprobe.report.tables.questions import questions_table
    from mmaprobe.runs.questions.ask import ask
    from mmaprobe.runs.questions.rows import answers_code, answers_json, rows_of

    device = mmaprobe.device(name)
    answers = list(ask(device, seed=seed, names=wanted))
    if as_json:
        emit(answers_json(answers, device.name, device.info(), seed))
    else:
        questions_table(out(), rows_of(answers, device.info().get("architecture", "")))
    return answers_code(answers)


@app.command()
@words.words_first(words.validate)
def validate(
    context: typer.Context,
    dut: Annotated[str, typer.Argument(help="Device under test.")],
    ref: Annotated[str, typer.Argument(help="Reference device, such as model:x86-64.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id; with --plan a glob, all without one.")] = "",
    vectors: Vectors = 1_000_000,
    seed: DrawnSeed = None,
    generator: Annotated[list[str] | None, typer.Option("--generator", "-g", help="Only this family.")] = None,
    nan: Annotated[str, typer.Option(help="bits, or any: two NaNs are equal.")] = "bits",
    plan: Annotated[str, typer.Option(help="witnesses: the few vectors that tell near datapaths apart.")] = "",
    as_json: Json = False,
) -> int:
    """Compare two devices bit for bit."""
    from mmaprobe.report import progress
    from mmaprobe.report.tables import findings

    if plan:
        refuse(context, ("vectors", "seed", "generator", "nan"), "goes without --plan, whose vectors are fixed")
        return _validate_plan(dut, ref, instruction or "*", plan, as_json)
    if not instruction:
        raise UsageError("name an instruction, or compare all on their witnesses: --plan witnesses")
    seed = drawn(seed)
    with progress.CountProgress(vectors) as bar:
        summary = mmaprobe.validate(dut, ref, instruction, vectors, seed, generator or None, nan=nan, progress=bar)
    if as_json:
        emit(findings.summary_json(summary))
    else:
        findings.print_summary(out(), summary)
    return summary.exit_code


def _validate_plan(dut: str, ref: str, instruction: str, plan: str, as_json: bool) -> int:
    from mmaprobe.report.rows import worst
    from mmaprobe.report.tables import findings

    if plan != "witnesses":
        raise UsageError(f"no plan {plan!r}; it must be witnesses")
    summaries = mmaprobe.validate_witnesses(dut, ref, instruction)
    if as_json:
        emit([findings.summary_json(summary) for summary in summaries])
    else:
        findings.print_witnesses(out(), summaries)
    return worst([summary.exit_code for summary in summaries])
