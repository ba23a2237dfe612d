"""The command that derives datapaths: of one instruction, of those that a glob names, or of a whole architecture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import mmaprobe
from mmaprobe.cli import argument_checks
from mmaprobe.cli.parameter_changes import changes_of, check_target
from mmaprobe.cli.terminal import DeviceOption, JsonOption, SeedOption, app, emit, out, path, refuse
from mmaprobe.errors import UsageError

if TYPE_CHECKING:
    from mmaprobe.devices.base import Device


@app.command()
@argument_checks.arguments_first(argument_checks.derive)
def derive(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="WHAT", help="Instruction id, glob, or the device's architecture.")],
    device: DeviceOption = "cpu",
    seed: SeedOption = 0,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 where it is not what ships, or the file of --write would change.")
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", parser=path, help="Parameter file to put what is derived into.")
    ] = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Print which vector refutes each similar datapath (one instruction).")
    ] = False,
    recorded: Annotated[
        list[str] | None, typer.Option("--from", help="replay:PATH; only what is recorded is used. May be repeated.")
    ] = None,
    ask: Annotated[
        Path | None,
        typer.Option("--ask", parser=path, help="File for the vectors that a recording lacks, to be run by others."),
    ] = None,
    fresh: Annotated[
        int | None,
        typer.Option(
            help="Vectors that the result must get right beyond those searched with; without it 480,000, or 960,000 "
            "of up to 8 lanes.",
            min=0,
        ),
    ] = None,
    allowance: Annotated[
        int | None, typer.Option(help="Work of one search, in units of 25 ns; without it 470,000,000.", min=0)
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Find out what instructions compute from the device's answers alone, with a proof against each rival."""
    if recorded or (device or "").startswith("replay:"):
        from mmaprobe.cli.derive_recorded import derive_recorded

        live = ("certificate", "fresh", "allowance", *(("device",) if recorded else ()))
        refuse(context, live, "goes without recordings (--from)")
        return derive_recorded(what, recorded or [str(device)], seed, check, write, ask, as_json)
    if ask is not None:
        raise UsageError("--ask is for recordings; give one with --from replay:PATH")
    opened = mmaprobe.device(device or "cpu")
    if write is not None:
        check_target(write, opened.info().get("architecture", ""))
    pattern = _pattern(opened, what)
    given: dict[str, Any] = {
        name: value for name, value in (("fresh", fresh), ("allowance", allowance)) if value is not None
    }
    if pattern is None:
        return _one(opened, what, seed, given, check, write, certificate, as_json)
    refuse(context, ("certificate",), f"prints that of one instruction, not of {what}")
    from mmaprobe.report import progress
    from mmaprobe.report.tables import derivations
    from mmaprobe.runs.selection import select
    from mmaprobe.survey.survey import survey

    with progress.RunProgress() as bars:
        found = survey(opened, *select(opened, pattern), seed=seed, listener=bars, **given)
    lines = changes_of(found, write, check)
    if as_json:
        emit(derivations.survey_json(found) | {"changes": lines})
    else:
        derivations.print_survey(out(), found)
        out().print("\n".join(lines) or "no change") if check or write else None
    code = derivations.survey_code(found)
    return code if code == 5 or not (check and lines) else 1


def _pattern(device: Device, what: str) -> str | None:
    """The glob of what is meant; None for a single instruction."""
    from mmaprobe.catalog.lookup import is_glob, parts
    from mmaprobe.catalog.names import architecture_of

    if is_glob(what):
        return what
    try:
        named = {architecture_of(part) for part in parts(what)}
    except UsageError:
        return None
    own = device.info().get("architecture", "")
    if architecture_of(own) not in named:
        raise UsageError(f"{device.name} is {own or 'of no architecture'}, not {what}; choose another with --device")
    return "*"


def _one(
    device: mmaprobe.api.OpenDevice, what: str, seed: int, given: dict[str, Any], check: bool, write: Path | None,
    certificate: bool, as_json: bool,
) -> int:  # fmt: skip
    from mmaprobe.evidence import silicon
    from mmaprobe.report.tables import findings
    from mmaprobe.survey.comparison import compare_with_shipped
    from mmaprobe.survey.survey_rows import alone

    derivation = mmaprobe.derive(device, what, seed=seed, **given)
    architecture = device.info().get("architecture", "")
    instruction = device.named(what)
    comparison = compare_with_shipped(architecture, instruction, derivation, seed)
    lines = [] if write is None else changes_of(alone(device, instruction, derivation, seed), write, check)
    if as_json:
        said = {silicon.KEY: silicon.said_by(device.name, device.info())}
        emit(derivation.form() | said | {"comparison": comparison.form(), "changes": lines})
    else:
        if notice := silicon.notice(device.name, device.info()):
            out().print(notice)
        findings.print_derivation(out(), derivation, comparison)
        if certificate:
            findings.print_certificate(out(), derivation)
        out().print("\n".join(lines) or "no change") if write else None
    if derivation.datapath is None:
        return 4
    return 1 if check and (lines if write is not None else comparison.changed) else 0
