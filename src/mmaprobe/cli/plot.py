"""Commands that draw: PNG or SVG, by the ending of the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import JsonOption, SeedOption, emit, out, path, plot_app
from mmaprobe.errors import UsageError

if TYPE_CHECKING:
    from mmaprobe.catalog.instruction import Instruction
    from mmaprobe.parameters.datapath import Datapath

ArchArgument = Annotated[str, typer.Argument(metavar="ARCH", help="Architecture, product or parameter file.")]
InstructionArgument = Annotated[str, typer.Argument(metavar="INSTRUCTION", help="Instruction id.")]
UnitsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ARCH/INSTRUCTION", help="Units; without any, those that ship.")
]
ProductArgument = Annotated[
    str,
    typer.Argument(metavar="PRODUCT", help="function:numpy:matmul?m=64&n=64&k=300, or a schedule: FILE.toml?m=64&..."),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", parser=path, help="The picture: FILE.png or FILE.svg.")]


@plot_app.command("tree")
def plot_tree(
    architecture: ArchArgument, instruction: InstructionArgument, file: OutOption, as_json: JsonOption = False
) -> int:
    """Draw an instruction's summation tree."""
    from mmaprobe.report.datapath.naming import headline
    from mmaprobe.report.datapath.tree import from_datapath
    from mmaprobe.report.pictures.tree import draw

    made, datapath = _unit(architecture, instruction)
    draw([(f"{architecture} {made.id}", headline(datapath), from_datapath(datapath))], file, option="--out")
    return _drawn(file, as_json)


@plot_app.command("window")
def plot_window(
    architecture: ArchArgument, instruction: InstructionArgument, file: OutOption, as_json: JsonOption = False
) -> int:
    """Draw which bits of which term survive an instruction's sums."""
    from mmaprobe.report.datapath.naming import headline
    from mmaprobe.report.datapath.window import windows
    from mmaprobe.report.pictures.windows import draw_windows

    made, datapath = _unit(architecture, instruction)
    found = windows(datapath)
    if not found:
        raise UsageError(f"{made.id} adds integers, which lose nothing: there is no window to draw")
    draw_windows(f"{architecture} {made.id}", headline(datapath), found, file)
    return _drawn(file, as_json)


@plot_app.command("fragment")
def plot_fragment(
    architecture: ArchArgument,
    instruction: InstructionArgument,
    file: OutOption,
    operand: Annotated[str, typer.Option(help="a, b, c, d, ...")] = "a",
    as_json: JsonOption = False,
) -> int:
    """Draw which lane and register hold which element of an operand."""
    import mmaprobe
    from mmaprobe.catalog.layouts import layout
    from mmaprobe.report.pictures.fragments import draw_fragment

    made = mmaprobe.model(architecture, instruction).instruction
    title = f"{architecture} {made.id}, operand {operand.upper() if len(operand) == 1 else operand}"
    draw_fragment(title, layout(made, architecture, operand), file)
    return _drawn(file, as_json)


@plot_app.command("error")
def plot_error(file: OutOption, named: UnitsArgument = None, seed: SeedOption = 0, as_json: JsonOption = False) -> int:
    """Draw the error of long dot products against the exact result, unit by unit."""
    from mmaprobe.report.pictures.rounding_errors import draw_errors
    from mmaprobe.report.pictures.units import units

    draw_errors(units("errors", named or ()), file, seed)
    return _drawn(file, as_json)


@plot_app.command("bias")
def plot_bias(file: OutOption, named: UnitsArgument = None, seed: SeedOption = 0, as_json: JsonOption = False) -> int:
    """Draw the signed errors of single calls: what rounds down moves all of them to one side."""
    from mmaprobe.report.pictures.rounding_errors import draw_bias
    from mmaprobe.report.pictures.units import units

    draw_bias(units("bias", named or ()), file, seed)
    return _drawn(file, as_json)


@plot_app.command("drift")
def plot_drift(file: OutOption, named: UnitsArgument = None, seed: SeedOption = 0, as_json: JsonOption = False) -> int:
    """Draw how far sums of positive FP8 terms fall behind as they grow."""
    from mmaprobe.report.pictures.rounding_errors import draw_drift
    from mmaprobe.report.pictures.units import units

    draw_drift(units("fp8", named or ()), file, seed)
    return _drawn(file, as_json)


@plot_app.command("classes")
def plot_classes(product: ProductArgument, file: OutOption, seed: SeedOption = 0, as_json: JsonOption = False) -> int:
    """Draw D by class: which elements a matrix product adds in the same order."""
    from mmaprobe.cli.gemm import full
    from mmaprobe.devices.products import open_product
    from mmaprobe.report.pictures.element_classes import classes_of, draw_classes

    draw_classes(classes_of(open_product(full(product)), seed), file)
    return _drawn(file, as_json)


@plot_app.command("schedule")
def plot_schedule(
    product: ProductArgument,
    file: OutOption,
    at: Annotated[str, typer.Option(help="ROW,COLUMN of the result.")] = "0,0",
    as_json: JsonOption = False,
) -> int:
    """Draw how a schedule adds one element: how K is cut, accumulated and joined."""
    from mmaprobe.cli.gemm import full
    from mmaprobe.devices.products import open_product
    from mmaprobe.report.pictures.schedule import draw_schedule
    from mmaprobe.validation.products.comparing import named
    from mmaprobe.validation.products.partial_sums import kernel_of, schedule_of

    opened = open_product(full(product))
    schedule, (m, n, k) = schedule_of(opened), opened.shape
    if schedule is None:
        raise UsageError(f"{opened.name} is no schedule; find its own with: mmaprobe gemm identify '{opened.name}'")
    i, j = argument_checks.place(at)
    if i >= m or j >= n:
        raise UsageError(f"--at is {at}; D is {m} x {n}")
    kernel = kernel_of(schedule, (m, n, k), (i, j))
    title = f"{opened.name.partition('?')[0]}, D[{i}, {j}] of {named(opened.shape)}, kernel {kernel.name}"
    draw_schedule(title, kernel, k, file)
    return _drawn(file, as_json)


@plot_app.command("mismatches")
def plot_mismatches(
    run: Annotated[Path, typer.Argument(metavar="RUN", parser=path, help="Evidence folder of a run.")],
    file: OutOption,
    as_json: JsonOption = False,
) -> int:
    """Draw which bits differ in the mismatches of a run."""
    from mmaprobe.evidence.store import Store
    from mmaprobe.report.pictures.heat_map import bit_rows, draw_heat_map

    store = Store.open(run)
    draw_heat_map(f"run {store.header.run} of {store.header.device}", bit_rows(store.parts), file)
    return _drawn(file, as_json)


@plot_app.command("parameters")
def plot_parameters(file: OutOption, as_json: JsonOption = False) -> int:
    """Draw how all architectures add products, format by format."""
    from mmaprobe.report.pictures.parameter_matrix import draw_matrix, matrix

    draw_matrix(matrix(), file)
    return _drawn(file, as_json)


def _unit(architecture: str, instruction: str) -> tuple[Instruction, Datapath]:
    import mmaprobe

    found = mmaprobe.model(architecture, instruction)
    return found.instruction, found.datapath


def _drawn(file: Path, as_json: bool) -> int:
    if as_json:
        emit({"kind": "mmaprobe picture", "picture": str(file), "bytes": file.stat().st_size})
    else:
        out().print(f"drawn: {file}")
    return 0
