"""The command that asks a device: about one instruction, a published suite, or the open questions."""

from __future__ import annotations

from typing import Annotated

import typer

import mmaprobe
from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import DeviceOption, JsonOption, PackOption, SeedOption, app, emit, out, packed, refuse
from mmaprobe.errors import UsageError


@app.command()
@argument_checks.arguments_first(argument_checks.probe)
def probe(
    context: typer.Context,
    instruction: Annotated[
        str | None, typer.Argument(help="Instruction id; without one, with --suite, all that fit.")
    ] = None,
    device: DeviceOption = "cpu",
    question: Annotated[
        list[str] | None, typer.Option("--question", "-q", help="Only this question. May be repeated.")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="A published suite instead, such as fasi2021.")] = None,
    questions: Annotated[
        bool,
        typer.Option(
            "--questions", help="Ask what is open of this device, or the open questions that --question names."
        ),
    ] = False,
    pack: PackOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Ask a device about one instruction: how it adds, rounds, treats tiny numbers; or run a published suite."""
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
    from mmaprobe.report.tables.open_questions import questions_table
    from mmaprobe.runs.open_questions.answer_rows import answers_code, answers_json, rows_of
    from mmaprobe.runs.open_questions.ask import ask

    device = mmaprobe.device(name)
    answers = list(ask(device, seed=seed, names=wanted))
    if as_json:
        emit(answers_json(answers, device.name, device.info(), seed))
    else:
        questions_table(out(), rows_of(answers, device.info().get("architecture", "")))
    return answers_code(answers)
