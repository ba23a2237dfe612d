"""The command that reads the order of a long sum."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import mmaprobe
from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import JsonOption, SeedOption, app, emit, out, path
from mmaprobe.errors import UsageError
from mmaprobe.showing import counted

if TYPE_CHECKING:
    from mmaprobe.api import OpenDevice
    from mmaprobe.catalog.instruction import Instruction


@app.command()
@argument_checks.arguments_first(argument_checks.tree)
def tree(
    device: Annotated[str, typer.Argument(help="function:numpy:dot?k=4096, function:FILE.py:NAME?k=1000, ...")],
    instruction: Annotated[str | None, typer.Option("--instruction", "-i", help="Which, where it has several.")] = None,
    budget: Annotated[int, typer.Option(help="Calls to make at most; what is left is unknown.", min=1)] = 200_000,
    at: Annotated[str, typer.Option(help="ROW,COLUMN of the result, where it is a matrix.")] = "0,0",
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", parser=path, help="Draw it: FILE.png or FILE.svg.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Read the order in which a long dot product or sum adds its terms."""
    from mmaprobe.report.pictures import long_sums
    from mmaprobe.report.tables import findings

    opened = mmaprobe.device(device)
    wanted = _chosen(opened, instruction)
    found = mmaprobe.read_tree(opened, wanted, budget=budget, seed=seed, at=argument_checks.place(at))
    if picture is not None and found.answer is not None:
        long_sums.draw_sum(wanted, found, device, picture)
    if as_json:
        emit(findings.findings_json({found.question: found}))
    else:
        out().print("\n".join(long_sums.lines(wanted, found, device)))
    return findings.findings_code({found.question: found})


def _chosen(device: OpenDevice, wanted: str | None) -> Instruction:
    every = device.instructions()
    if wanted is None and len(every) != 1:
        raise UsageError(f"{device.name} has {counted(len(every), 'instruction')}; name one with --instruction")
    return every[0] if wanted is None else device.instruction(wanted).instruction
