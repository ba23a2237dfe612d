"""The command that says why two units differ: in the terminal, or as a page."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli.files import PARAMETERS
from mmaprobe.cli.terminal import GlobOption, JsonOption, app, emit, out, parameters_app, path, refuse, typed
from mmaprobe.errors import UsageError
from mmaprobe.showing import counted

if TYPE_CHECKING:
    from mmaprobe.survey.unit_pairs import PairedUnits

EDITED = "edited"
"""What parameters are called that ``--set`` changed and no file keeps."""
PAGE = "differences.html"
"""What a page may be called whose name was a folder's."""


@app.command("diff")
@parameters_app.command("diff")
def diff_command(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="ARCH", help=PARAMETERS)],
    second: Annotated[str | None, typer.Argument(metavar="ARCH", help=f"{PARAMETERS} Or none, with --set.")] = None,
    instruction: GlobOption = "*",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="In place of a second: the first with this field of its datapaths changed.",
        ),
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", parser=path, help="With --set: keep it as FILE.toml.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", parser=path, help="Write one HTML page with pictures.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Say why two units differ: what differs, the smallest vector that shows it, both results; exit 1 where any does.

    Of two architectures, instructions with the same formats and K are paired; where one is a parameter file, primitives
    of one name. With --set the second is the first with other parameters: which results change, and which families of
    vectors see it. Two datapaths are the same function where an argument says so, another one where a vector does.
    """
    from mmaprobe.parameters.lookup import file_named
    from mmaprobe.report.page import filling
    from mmaprobe.survey.unit_pairs import paired

    if html is not None:
        filling.refuse_name(html, html / PAGE)
    if changes:
        if second is not None:
            raise UsageError(f"--set changes {first}, so that {second} would be a third; leave one of them out")
        return _altered(first, changes, instruction, write, html, as_json)
    refuse(context, ("write",), "keeps what --set changes; which FIELD=VALUE?")
    if second is None:
        raise UsageError(_advice(first, instruction))
    if file_named(first) or file_named(second):
        if instruction != "*":
            raise UsageError("--instruction chooses of two architectures; parameter files know primitives")
        return _files(first, second, html, as_json)
    return _show(paired(first, second, instruction), (first, second), html, as_json)


def _advice(first: str, instruction: str) -> str:
    """What a second unit may be, and what may be changed."""
    from mmaprobe.parameters.lookup import parameters_of
    from mmaprobe.survey.altered_parameters import fields_that_are_said

    said = fields_that_are_said(parameters_of(first), instruction)
    return f"differ from what? Name a second ARCH, or a change with --set FIELD=VALUE; {said}"


def _altered(
    first: str, changes: list[str], instruction: str, write: Path | None, html: Path | None, as_json: bool
) -> int:
    """A unit against itself with other parameters, which become a file where somebody wants to keep them."""
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.parameters.files import to_text
    from mmaprobe.parameters.lookup import parameters_of
    from mmaprobe.survey.altered_parameters import altered, field_change
    from mmaprobe.survey.unit_pairs import paired_primitives

    if write is not None and write.suffix != ".toml":
        raise UsageError(f"--write {write}: a parameter file's name ends in .toml")
    old = parameters_of(first)
    new = altered(old, [field_change(each) for each in changes], instruction, first)
    found = paired_primitives(replace(old, entries={name: old.entries[name] for name in new.entries}), new)
    if write is None:  # no command can name the edited side
        found = replace(found, pairs=tuple(replace(pair, asked=(pair.asked[0], "")) for pair in found.pairs))
    else:
        whole = replace(old, entries={**old.entries, **new.entries})
        write_bytes(write, to_text(whole).encode(), "choose another file with --write")
    called = EDITED if write is None else str(write)
    said = f"{called} is {first} with {', '.join(changes)} in {counted(len(new.entries), 'primitive')}"
    return _show(found, (first, called), html, as_json, (said,))


def _show(
    found: PairedUnits, names: tuple[str, str], html: Path | None, as_json: bool, remarks: tuple[str, ...] = ()
) -> int:
    """What two units have otherwise; of changed parameters also which families of vectors see it."""
    from mmaprobe.report.datapath import unit_differences

    if html is not None:
        _write(found, names, html, as_json, remarks)
    elif as_json:
        emit({**unit_differences.difference_json(found, names, bool(remarks)), "remarks": list(remarks)})
    else:
        lines = unit_differences.difference_lines(found, names, bool(remarks))
        head = [line for remark in remarks for line in (remark, "")]
        out().print("\n".join([*head, *lines]))
    return unit_differences.exit_code(found)


def _files(first: str, second: str, html: Path | None, as_json: bool) -> int:
    """The primitives of two parameter files, or of one and an architecture."""
    from mmaprobe.parameters.lookup import parameters_of
    from mmaprobe.report.datapath.file_differences import file_lines, files_differ
    from mmaprobe.report.datapath.unit_differences import difference_json
    from mmaprobe.survey.unit_pairs import paired_primitives

    old, new = parameters_of(first), parameters_of(second)
    found, names, architectures = paired_primitives(old, new), (first, second), (old.architecture, new.architecture)
    differs = files_differ(found, architectures)
    if html is not None:
        _write(found, names, html, as_json)
    elif as_json:
        lines = file_lines(found, names, architectures)
        emit({**difference_json(found, names), "differs": differs, "lines": lines})
    else:
        out().print("\n".join(file_lines(found, names, architectures)))
    return 1 if differs else 0


def _write(
    found: PairedUnits, names: tuple[str, str], file: Path, as_json: bool, remarks: tuple[str, ...] = ()
) -> None:
    """The page of what differs, and a line about it."""
    from mmaprobe.report.page import differences, filling

    page = differences.page_of(found, names, shlex.join(["mmaprobe", *typed]), remarks)
    size = filling.write(differences.render(page), file)
    if as_json:
        told = {"pairs": len(found.pairs), "differ": page.pairs, "differences": page.shown}
        emit({"kind": "mmaprobe page", "page": str(file), "bytes": size, **told})
    else:
        differ = f"{page.pairs} that {'differs' if page.pairs == 1 else 'differ'}"
        said = f"{counted(len(found.pairs), 'pair')}, {differ}, {counted(page.shown, 'difference')}"
        out().print(f"{file}: {said}")
