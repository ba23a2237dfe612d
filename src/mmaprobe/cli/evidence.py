"""Commands on the evidence of runs: list, show, verify, compare, follow over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmaprobe.cli import argument_checks
from mmaprobe.cli.summary import print_summary
from mmaprobe.cli.terminal import JsonOption, emit, evidence_app, out, path, show
from mmaprobe.errors import printable

if TYPE_CHECKING:
    from mmaprobe.baselines.tables import RunTables

FolderArgument = Annotated[Path, typer.Argument(metavar="FOLDER", parser=path, help="A folder of runs.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", parser=path, help="Evidence folder of a run.")]
TABLES = "A folder of runs, or of the tables that export wrote."


@evidence_app.command("list")
def evidence_list(folder: FolderArgument, as_json: JsonOption = False) -> int:
    """List every run at and below a folder, by its manifest; exit 2 where one is damaged."""
    from mmaprobe.baselines.run_list import LISTED, list_code, list_runs

    runs = list_runs(folder)
    if as_json:
        emit([each.to_json() for each in runs])
        return list_code(runs)
    rows = [each.to_json() for each in runs if not each.wrong]
    if rows:
        _print_rows(rows, LISTED)
    for each in runs:
        if each.wrong:
            out().print(f"damaged: {each.path}: {each.wrong}")
    return list_code(runs)


@evidence_app.command("show")
def evidence_show(run: RunArgument, as_json: JsonOption = False) -> int:
    """Print the summary that a run printed, and what each instruction was derived to be and on what grounds."""
    from mmaprobe.baselines.facts import facts_of
    from mmaprobe.baselines.grounds import derived_lines, derived_rows, gate_lines, head_lines
    from mmaprobe.evidence.store import Store
    from mmaprobe.runs.asking import answers_of
    from mmaprobe.runs.kept import kept_document, kept_summary

    store = Store.open(run)
    facts = facts_of(store)
    if as_json:
        emit(kept_document(store) | {"derived": derived_rows(facts)})
        return 0
    out().print("\n".join(head_lines(facts)))
    print_summary(kept_summary(store), answers_of(store), store.path, gate_lines(store))
    out().print("\n".join(derived_lines(facts)))
    return 0


@evidence_app.command("verify")
def evidence_verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", parser=path, help="Evidence, folders of it, shards, corpora, recordings, packs."
        ),
    ],
    as_json: JsonOption = False,
) -> int:
    """Hold files against their digests, counts and shapes, and witnesses against what was derived from them.

    Exit as the run should have, 2 where a file was altered.
    """
    from mmaprobe.campaigns.shard_file import SUFFIX, shard_words
    from mmaprobe.exit_codes import PRECEDENCE, USAGE
    from mmaprobe.report.tables.evidence import verdict, verify_all
    from mmaprobe.report.tables.listing import table

    found = [each for path in paths for each in verify_all(path, {SUFFIX: shard_words})]
    if as_json:
        emit([each.to_json() for each in found])
    for each in [] if as_json else found:
        if each.path in paths:  # of a folder of runs a line each
            rows = [{"file": file.file, "sha256": file.sha256[:12], "says": file.wrong or file.says}
                    for file in each.files]  # fmt: skip
            out().print(table(rows, ("file", "sha256", "says")))
        for line in verdict(each):
            out().print(line)
    codes = {each.exit_code for each in found}
    return next(code for code in (USAGE, *PRECEDENCE) if code in codes)


@evidence_app.command("diff")
def evidence_diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", parser=path, help="Evidence folder of a run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", parser=path, help="Evidence folder of another run.")],
    as_json: JsonOption = False,
) -> int:
    """Print what changed between two runs, in meaning, with the smallest vector that shows it; exit 1 where anything
    did."""
    from mmaprobe.baselines.difference import compare_runs
    from mmaprobe.baselines.facts import facts_of
    from mmaprobe.baselines.wording import difference_lines
    from mmaprobe.evidence.store import Store

    found = compare_runs(*(facts_of(Store.open(each)) for each in (old, new)))
    if as_json:
        emit(found.to_json())
    else:
        out().print("\n".join(difference_lines(found)))
    return found.exit_code


@evidence_app.command("export")
@argument_checks.arguments_first(argument_checks.evidence_tables)
def evidence_export(
    folder: FolderArgument,
    out_folder: Annotated[Path, typer.Option("--out", "-o", parser=path, help="Folder for the tables.")],
    as_json: JsonOption = False,
) -> int:
    """Write the runs below a folder as Parquet tables: runs, instructions, families, mismatches, coverage, cells."""
    from mmaprobe.baselines.tables import tables_of, write_tables

    tables = tables_of(folder)
    rows = [{"file": path.name, "rows": rows} for path, rows in write_tables(tables, out_folder)]
    show(rows, as_json, ("file", "rows"))
    return _told(tables)


@evidence_app.command("trend")
@argument_checks.arguments_first(argument_checks.evidence_tables)
def evidence_trend(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", parser=path, help=TABLES)],
    instruction: Annotated[
        str | None, typer.Option("--instruction", "-i", help="Night by night of these: an id or a glob.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", parser=path, help="Draw it: FILE.png or FILE.svg.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Print night by night of each device what was compared, what differed, and what changed since the night before."""
    from mmaprobe.baselines.tables import tables_of
    from mmaprobe.baselines.trend import COLUMNS, OF_AN_INSTRUCTION, trend, trend_of
    from mmaprobe.report.pictures.trend import draw_trend

    tables = tables_of(folder)
    nights = trend(tables)
    if plot is not None:
        draw_trend(nights, plot)
    rows, columns = (nights, COLUMNS) if instruction is None else (trend_of(tables, instruction), OF_AN_INSTRUCTION)
    if as_json:
        emit(rows)
    else:
        _print_rows(rows, columns)
    return _told(tables)


def _print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A table of the columns in which any row has something, times without their zone, which is UTC."""
    from mmaprobe.report.tables.listing import table

    filled = [name for name in columns if any(row[name] not in (None, "") for row in rows)]
    shown = [{**row, "begun": row["begun"][:19].replace("T", " ")} for row in rows]
    out().print(table(shown, filled))


def _told(found: RunTables) -> int:
    """Name what tables lack; 2 where a run could not be read."""
    from mmaprobe.exit_codes import EQUAL, USAGE

    for word, lines in (("left out", found.left_out), ("counted once", found.copies)):
        for line in lines:
            typer.echo(printable(f"mmaprobe: {word}: {line}"), err=True)
    return USAGE if found.left_out else EQUAL
