"""Commands that say what is here and what is known: devices, instructions, layouts, one sum, speeds."""

from __future__ import annotations

from typing import Annotated

import typer

import mmaprobe
from mmaprobe.cli.terminal import Glob, Json, app, emit, out, show
from mmaprobe.errors import UsageError


@app.command()
def devices(as_json: Json = False) -> int:
    """List the devices: what is here, and what the others need."""
    from mmaprobe.report.tables import listing

    rows = listing.device_rows()
    return show(rows, as_json, ("device", "here", "what"))


@app.command()
def instructions(
    architecture: Annotated[str | None, typer.Argument(help="Architecture; without it, totals of all.")] = None,
    instruction: Glob = "*",
    family: Annotated[str | None, typer.Option("--family", "-f", help="Family or glob: mma, mma.sp.*, wgmma.")] = None,
    operand_type: Annotated[str | None, typer.Option("--type", "-t", help="A format of A, B, C, D or scales.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", "-k", help="native, split or emulated.")] = None,
    basis: Annotated[str | None, typer.Option("--basis", "-b", help="A basis, modelled, or none.")] = None,
    as_json: Json = False,
) -> int:
    """List an architecture's instructions: formats, lowering, what is known of them, and how many of what."""
    from mmaprobe.catalog import lookup
    from mmaprobe.report.tables import instructions as report
    from mmaprobe.report.tables.listing import table

    chosen = report.Selection(instruction, family, operand_type, kind, basis)
    if architecture is None:
        counts = report.architecture_counts(chosen)
        return show(counts, as_json, ("architecture", *report.COUNTS))
    rows = report.form_rows(architecture, chosen)
    here = ("here",) if report.add_here(rows, architecture) else ()
    counts = report.family_counts(rows)
    if as_json:
        emit({"architecture": lookup.parts(architecture), "forms": rows, "counts": counts})
        return 0
    brief = [row | {"instruction": lookup.short(row["instruction"])} for row in rows]
    out().print(table(brief, (*report.COLUMNS, *here)))
    out().print(
        "\n".join(["", *report.option_lines(rows), *report.unknown_lines(rows, architecture), ""]),
        markup=False,
        soft_wrap=True,
    )
    out().print(table(counts, ("family", *report.COUNTS)))
    return 0


@app.command()
def layout(
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    architecture: Annotated[str | None, typer.Option("--arch", "-a", help="Default: the first that has it.")] = None,
    operand: Annotated[str | None, typer.Option("--operand", "-o", help="a, b, c, d, metadata, scale_a, ...")] = None,
    registers: Annotated[str | None, typer.Option(help="FIRST:LAST; default: the first 8.")] = None,
    as_json: Json = False,
) -> int:
    """Where an instruction's operands lie: every operand, or one as a table of lanes and registers."""
    from mmaprobe.catalog.layouts import layout as fragment_of
    from mmaprobe.report.tables import layouts

    if operand is None and registers is not None:
        raise UsageError("--registers are those of one operand: --operand NAME")
    wanted, home = layouts.find(instruction, architecture)
    if operand is None:
        columns = ("operand", "where", "lanes", "registers", "element", "copies", "holds", "status")
        return show(layouts.operand_rows(wanted, home), as_json, columns)
    found = fragment_of(wanted, home, operand)
    first, last = layouts.span(registers, found) if registers else (0, min(layouts.SHOWN, found.registers))
    rows = layouts.grid_rows(found, first, None if as_json and not registers else last)
    if not as_json:
        out().print("\n".join(layouts.heading(found)), markup=False)
        if last - first < found.registers:
            out().print(f"  registers {first} to {last - 1} of {found.registers}; others: --registers FIRST:LAST")
    return show(rows, as_json, tuple(rows[0]))


@app.command("explain", context_settings={"ignore_unknown_options": True})
def explain_command(
    architecture: Annotated[str, typer.Argument(help="Architecture, such as sm_90a.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    operands: Annotated[list[str], typer.Argument(help="K of a, K of b, c: hex codes (0x3c00) or numbers (1.5).")],
) -> int:
    """Print one dot product step by step: products, alignment, what was cut, sum, rounding."""
    from mmaprobe.catalog import lookup
    from mmaprobe.operands import literal
    from mmaprobe.report.datapath import explain

    wanted = lookup.instruction(instruction, architecture)
    found = mmaprobe.model(architecture, wanted)
    vector = literal.parse_vector(wanted, operands)
    dense = found.dense(vector)
    if vector.metadata is not None:
        out().print(explain.selection(wanted, vector.metadata))
    out().print(explain.render(found.datapath, dense))
    return 0


@app.command()
def bench(
    architecture: Annotated[str | None, typer.Argument(help="Architecture; default: this CPU's.")] = None,
    instruction: Glob = "*",
    threads: Annotated[int, typer.Option(help="Threads at once.", min=1, max=1024)] = 1,
    smoke: Annotated[bool, typer.Option("--smoke", help="One short call each, to see that it runs.")] = False,
    as_json: Json = False,
) -> int:
    """Measure how fast an architecture's models are here, and their share of the machine's roof."""
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
def doctor_command(as_json: Json = False) -> int:
    """Say what is here, what is missing, and the command to get it."""
    from mmaprobe.report.tables.doctor import doctor_rows

    return show(doctor_rows(), as_json, ("subject", "ok", "found", "command"))
