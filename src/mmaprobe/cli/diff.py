"""The command that says why two units differ: in the terminal, or as a page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli.files import PARAMETERS
from mmaprobe.cli.terminal import GlobOption, JsonOption, app, emit, out, parameters_app, path, typed
from mmaprobe.errors import UsageError
from mmaprobe.showing import counted

if TYPE_CHECKING:
    from mmaprobe.survey.unit_pairs import PairedUnits

PAGE = "differences.html"
"""What a page may be called whose name was a folder's."""


@app.command("diff")
@parameters_app.command("diff")
def diff_command(
    first: Annotated[str, typer.Argument(metavar="ARCH", help=PARAMETERS)],
    second: Annotated[str, typer.Argument(metavar="ARCH", help=PARAMETERS)],
    instruction: GlobOption = "*",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", parser=path, help="Write one HTML page with pictures.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Say why two units differ: what differs, the smallest vector that shows it, both results; exit 1 where any does.

    Of two architectures, instructions with the same formats and K are paired; where one is a parameter file, primitives
    of one name. Two datapaths are the same function where an argument says so, another one where a vector does.
    """
    from mmaprobe.parameters.lookup import file_named
    from mmaprobe.report.datapath import unit_differences
    from mmaprobe.survey.unit_pairs import paired

    if file_named(first) or file_named(second):
        if instruction != "*":
            raise UsageError("--instruction chooses of two architectures; parameter files know primitives")
        return _files(first, second, html, as_json)
    found, names = paired(first, second, instruction), (first, second)
    code = unit_differences.exit_code(found)
    if html is not None:
        _write(found, names, html, as_json)
    elif as_json:
        emit(unit_differences.difference_json(found, names))
    else:
        out().print("\n".join(unit_differences.difference_lines(found, names)), markup=False, soft_wrap=True)
    return code


def _files(first: str, second: str, html: Path | None, as_json: bool) -> int:
    """The primitives of two parameter files, or of one and an architecture."""
    from mmaprobe.parameters.lookup import parameters_of
    from mmaprobe.report.datapath import known
    from mmaprobe.survey.unit_pairs import paired_primitives

    between = known.parameter_diff(first, second)
    if html is not None:
        _write(paired_primitives(parameters_of(first), parameters_of(second)), (first, second), html, as_json)
    elif as_json:
        emit({"differs": between.differs, "lines": list(between.lines)})
    else:
        out().print("\n".join(between.lines) or "no difference", markup=False, soft_wrap=True)
    return 1 if between.differs else 0


def _write(found: PairedUnits, names: tuple[str, str], file: Path, as_json: bool) -> None:
    """The page of what differs, and a line about it."""
    from mmaprobe.report.page import differences, filling

    filling.refuse_folder(file, file / PAGE)
    page = differences.page_of(found, names, shlex.join(["mmaprobe", *typed]))
    size = filling.write(differences.render(page), file)
    if as_json:
        told = {"pairs": len(found.pairs), "differ": page.pairs, "differences": page.shown}
        emit({"kind": "mmaprobe page", "page": str(file), "bytes": size, **told})
    else:
        said = f"{counted(len(found.pairs), 'pair')}, {page.pairs} that differ, {counted(page.shown, 'difference')}"
        out().print(f"{file}: {said}", markup=False, soft_wrap=True)
