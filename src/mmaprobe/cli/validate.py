"""The command that compares two devices bit for bit."""

from __future__ import annotations

from typing import Annotated

import typer

import mmaprobe
from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import DrawnSeedOption, JsonOption, VectorsOption, app, drawn, emit, out, refuse
from mmaprobe.errors import UsageError


@app.command()
@argument_checks.arguments_first(argument_checks.validate)
def validate(
    context: typer.Context,
    dut: Annotated[str, typer.Argument(help="Device under test.")],
    ref: Annotated[str, typer.Argument(help="Reference device, such as model:x86-64.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id; with --plan a glob, all without one.")] = "",
    vectors: VectorsOption = 1_000_000,
    seed: DrawnSeedOption = None,
    generator: Annotated[list[str] | None, typer.Option("--generator", "-g", help="Only this family.")] = None,
    nan: Annotated[str, typer.Option(help="bits, or any: two NaNs are equal.")] = "bits",
    plan: Annotated[str, typer.Option(help="witnesses: the few vectors that tell near datapaths apart.")] = "",
    as_json: JsonOption = False,
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
    from mmaprobe.exit_codes import worst
    from mmaprobe.report.tables import findings

    if plan != "witnesses":
        raise UsageError(f"no plan {plan!r}; it must be witnesses")
    summaries = mmaprobe.validate_witnesses(dut, ref, instruction)
    if as_json:
        emit([findings.summary_json(summary) for summary in summaries])
    else:
        findings.print_witnesses(out(), summaries)
    return worst([summary.exit_code for summary in summaries])
