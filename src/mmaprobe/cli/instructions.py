"""Commands that say what is known of instructions: which there are, where operands lie, one sum step by step."""

from __future__ import annotations

from typing import Annotated

import typer

import mmaprobe
from mmaprobe.cli.terminal import GlobOption, JsonOption, app, emit, out, show
from mmaprobe.errors import UsageError


@app.command()
def instructions(
    architecture: Annotated[str | None, typer.Argument(help="Architecture; without it, totals of all.")] = None,
    instruction: GlobOption = "*",
    family: Annotated[str | None, typer.Option("--family", "-f", help="Family or glob: mma, mma.sp.*, wgmma.")] = None,
    operand_type: Annotated[str | None, typer.Option("--type", "-t", help="A format of A, B, C, D or scales.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", help="How the hardware has it: native, split or emulated.")
    ] = None,
    basis: Annotated[
        str | None,
        typer.Option(
            "--basis",
            "-b",
            help="How its datapath is known: measured, recorded, published, predicted; modelled: any; none.",
        ),
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="What a name of SASS, CuTe or LLVM, or one cut short, may mean.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """List an architecture's instructions: formats, what they become, and how their datapaths are known."""
    from mmaprobe.catalog import lookup
    from mmaprobe.report.tables import instructions as report
    from mmaprobe.report.tables.listing import table

    if find is not None:
        return show(report.meaning_rows(find, architecture), as_json, report.MEANINGS)
    chosen = report.FormFilter(instruction, family, operand_type, kind, basis)
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
    )
    out().print(table(counts, ("family", *report.COUNTS)))
    return 0


@app.command()
def layout(
    instruction: Annotated[str, typer.Argument(help="Instruction id, or a layout: '((2,4),8):((1,16),2)'.")],
    architecture: Annotated[str | None, typer.Option("--arch", "-a", help="Default: the first that has it.")] = None,
    operand: Annotated[str | None, typer.Option("--operand", "-o", help="a, b, c, d, metadata, scale_a, ...")] = None,
    registers: Annotated[str | None, typer.Option(help="FIRST:LAST; default: the first 8.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Say which lane and register hold which element of an instruction's operands; or draw a layout."""
    from mmaprobe.catalog.layouts import layout as fragment_of
    from mmaprobe.report.tables import layouts

    if layouts.in_notation(instruction):
        if architecture or operand or registers:
            raise UsageError("a layout has no operands: --arch, --operand and --registers are for an instruction")
        said, rows = layouts.drawn(instruction)
        if not as_json:
            out().print(said)
        return show(rows, as_json, tuple(rows[0]))
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
        out().print("\n".join(layouts.heading(found)))
        if last - first < found.registers:
            out().print(f"  registers {first} to {last - 1} of {found.registers}; others: --registers FIRST:LAST")
    return show(rows, as_json, tuple(rows[0]))


@app.command("explain", context_settings={"ignore_unknown_options": True})
def explain_command(
    architecture: Annotated[str, typer.Argument(help="Architecture, such as sm_90a, or a parameter file.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    operands: Annotated[
        list[str],
        typer.Argument(help="As they are printed: a=0x3c00,1.5 b=0x1*16 c=0; or K of a, K of b, c, an item a word."),
    ],
    as_json: JsonOption = False,
) -> int:
    """Print one dot product step by step: products, alignment, what was cut, sum, rounding."""
    from mmaprobe.operands import literal
    from mmaprobe.report.datapath import explain

    found = mmaprobe.model(architecture, instruction)
    wanted = found.instruction
    vector = literal.parse_vector(wanted, operands)
    dense = found.dense(vector)
    if as_json:
        emit(explain.as_json(found, vector))
        return 0
    if zeros := literal.not_given(wanted, operands):
        out().print(f"not given, and so 0: {'; '.join(zeros)}")
    if vector.metadata is not None:
        out().print(explain.selection(wanted, vector.metadata))
    out().print(explain.render(found.datapath, dense))
    return 0
