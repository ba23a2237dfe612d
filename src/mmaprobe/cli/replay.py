"""The command that asks again what was answered wrongly."""

from __future__ import annotations

from typing import Annotated

import typer

import mmaprobe
from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import JsonOption, app, emit, out


@app.command()
@argument_checks.arguments_first(argument_checks.replay)
def replay(
    what: Annotated[
        str, typer.Argument(metavar="FILE", help="Saved mismatches, a shard, evidence or a part of it; or a recipe.")
    ],
    device: Annotated[
        str | None, typer.Option("--device", "-d", help="Ask this device; else the one that was wrong.")
    ] = None,
    ref: Annotated[str | None, typer.Option(help="Hold it against this one; else that of the file.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Ask again what was answered wrongly: exit 1 where it still is, 0 where it is right now, 5 where it is both."""
    from mmaprobe.report import mismatches
    from mmaprobe.validation.replaying import replayed_code

    found = mmaprobe.replay(what, device, ref)
    if as_json:
        emit([mismatches.replay_json(each) for each in found])
    else:
        out().print(
            "\n".join(mismatches.replay_lines(found)) or f"{what}: no mismatch is kept there",
        )
    return replayed_code(found)
