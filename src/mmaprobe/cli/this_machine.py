"""Commands that say what this machine has: devices, what is missing, how fast its models are."""

from __future__ import annotations

from typing import Annotated

import typer

from mmaprobe.cli.terminal import GlobOption, JsonOption, app, emit, out, show


@app.command()
def devices(as_json: JsonOption = False) -> int:
    """List the devices: what is here, and what the others need."""
    from mmaprobe.devices.listed import listed

    return show([dict(each.as_row()) for each in listed()], as_json, ("device", "here", "what"))


@app.command()
def bench(
    architecture: Annotated[str | None, typer.Argument(help="Architecture; default: this CPU's.")] = None,
    instruction: GlobOption = "*",
    threads: Annotated[int, typer.Option(help="Threads at once.", min=1, max=1024)] = 1,
    smoke: Annotated[bool, typer.Option("--smoke", help="One short call each, to see that it runs.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Measure how fast an architecture's models are here, beside the most that this machine can do."""
    from mmaprobe.report.tables import speeds
    from mmaprobe.report.tables.listing import table

    found = speeds.bench(architecture, instruction, threads, smoke)
    if as_json:
        emit(found)
    else:
        out().print(speeds.title(found))
        out().print(table(speeds.cells(found), speeds.COLUMNS))
    return 0


@app.command("doctor")
def doctor_command(as_json: JsonOption = False) -> int:
    """Say what is here, what is missing, and the command to get it."""
    from mmaprobe.report.tables.doctor import doctor_rows

    return show(doctor_rows(), as_json, ("subject", "ok", "found", "command"))
