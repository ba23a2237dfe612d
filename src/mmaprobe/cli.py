"""The command line: one function a command, each a thin layer over the API."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import mmaprobe
from mmaprobe.bringup.rows import summary_of
from mmaprobe.catalog import literal, lookup
from mmaprobe.catalog.layouts import layout as fragment_of
from mmaprobe.derivation.comparison import compare_with_shipped
from mmaprobe.derivation.publish import parameter_file
from mmaprobe.errors import MmaprobeError, UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.parameters.files import save
from mmaprobe.report import doctor, explain, findings, junit, known, layouts, listing, progress, speeds
from mmaprobe.report import instructions as instructions_report
from mmaprobe.report.json import to_json
from mmaprobe.report.table import SummaryTable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find out, bit for bit, what a matrix unit computes, and prove it.",
)
corpus_app = typer.Typer(no_args_is_help=True, help="Recorded outputs of real hardware.")
vectors_app = typer.Typer(no_args_is_help=True, help="Vectors by recipe.")
parameters_app = typer.Typer(no_args_is_help=True, help="Shipped parameter files.")
app.add_typer(corpus_app, name="corpus")
app.add_typer(vectors_app, name="vectors")
app.add_typer(parameters_app, name="parameters")

Device = Annotated[str | None, typer.Option("--device", "-d", help="cpu, model:ARCH, replay:PATH, process:CMD, ...")]
Glob = Annotated[str, typer.Option("--instruction", "-i", help="Instruction id or glob.")]
Seed = Annotated[int, typer.Option(help="Names the vectors; same seed, same vectors.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Vectors = Annotated[int, typer.Option("--vectors", "-n", help="Vectors to compare.")]


def out() -> Console:
    """Standard output; wide enough for ids when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def emit(value: Any) -> None:
    """Print a JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


@app.command()
def run(
    device: Device = None,
    instruction: Glob = "*",
    vectors: Vectors = 10_000_000,
    seed: Seed = 0,
    out_folder: Annotated[Path | None, typer.Option("--out", "-o", help="Evidence folder.")] = None,
    budget: Annotated[float | None, typer.Option(help="Minutes after which the run ends cleanly.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on in --out.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 where a datapath is not the shipped one.")] = False,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write a JUnit file too.")] = None,
    as_json: Json = False,
) -> int:
    """Probe, derive, compare and validate every instruction of a device; write evidence."""
    if resume and out_folder is None:
        raise UsageError("--resume needs the folder to go on in: --out FOLDER")
    with progress.RunProgress() as bars:
        report = mmaprobe.run(
            device,
            instruction=instruction,
            vectors=vectors,
            seed=seed,
            out=out_folder,
            budget=budget,
            resume=resume,
            check=check,
            listener=bars,
        )
    if junit_file is not None:
        junit.write(summary_of(report), junit_file)
    if as_json:
        emit(to_json(summary_of(report)))
    else:
        out().print(SummaryTable(summary_of(report)))
        if report.ended:
            out().print(f"ended early: {report.ended}; go on with: mmaprobe run --resume --out {report.out}")
    return report.exit_code


@app.command()
def devices(as_json: Json = False) -> int:
    """List the devices: what is here, and what the others need."""
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
    chosen = instructions_report.Selection(instruction, family, operand_type, kind, basis)
    if architecture is None:
        counts = instructions_report.architecture_counts(chosen)
        return show(counts, as_json, ("architecture", *instructions_report.COUNTS))
    rows = instructions_report.form_rows(architecture, chosen)
    here = ("here",) if instructions_report.add_here(rows, architecture) else ()
    counts = instructions_report.family_counts(rows)
    if as_json:
        emit({"architecture": lookup.parts(architecture), "forms": rows, "counts": counts})
        return 0
    brief = [row | {"instruction": lookup.short(row["instruction"])} for row in rows]
    out().print(listing.table(brief, (*instructions_report.COLUMNS, *here)))
    out().print("\n".join(["", *instructions_report.option_lines(rows), ""]), markup=False, soft_wrap=True)
    out().print(listing.table(counts, ("family", *instructions_report.COUNTS)))
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


@app.command()
def probe(
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    device: Device = "cpu",
    question: Annotated[list[str] | None, typer.Option("--question", "-q", help="Only this question.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Ask a device black-box questions about one instruction."""
    found = mmaprobe.probe(device or "cpu", instruction, questions=question or None, seed=seed)
    if as_json:
        emit(findings.findings_json(found))
    else:
        findings.findings_table(out(), instruction, found)
    return findings.findings_code(found)


@app.command()
def derive(
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    device: Device = "cpu",
    seed: Seed = 0,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when it differs from the shipped file.")] = False,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Print the vector against every neighbour.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Derive one instruction's datapath from the device's answers alone."""
    opened = mmaprobe.device(device or "cpu")
    derivation = mmaprobe.derive(opened, instruction, seed=seed)
    architecture = opened.info().get("architecture", "")
    comparison = compare_with_shipped(architecture, lookup.instruction(instruction, architecture), derivation, seed)
    if as_json:
        emit(derivation.form() | {"comparison": comparison.form()})
    else:
        findings.print_derivation(out(), derivation, comparison)
        if certificate:
            findings.print_certificate(out(), derivation)
    if derivation.datapath is None:
        return 4
    return 1 if check and comparison.changed else 0


@app.command()
def validate(
    dut: Annotated[str, typer.Argument(help="Device under test.")],
    ref: Annotated[str, typer.Argument(help="Reference device, such as model:x86-64.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    vectors: Vectors = 1_000_000,
    seed: Seed = 0,
    generator: Annotated[list[str] | None, typer.Option("--generator", "-g", help="Only this family.")] = None,
    nan: Annotated[str, typer.Option(help="bits, or any: two NaNs are equal.")] = "bits",
    as_json: Json = False,
) -> int:
    """Compare two devices bit for bit."""
    with progress.CountProgress(vectors) as bar:
        summary = mmaprobe.validate(dut, ref, instruction, vectors, seed, generator or None, nan=nan, progress=bar)
    if as_json:
        emit(findings.summary_json(summary))
    else:
        findings.print_summary(out(), summary)
    return summary.exit_code


@app.command("explain", context_settings={"ignore_unknown_options": True})
def explain_command(
    architecture: Annotated[str, typer.Argument(help="Architecture, such as sm_90a.")],
    instruction: Annotated[str, typer.Argument(help="Instruction id.")],
    operands: Annotated[list[str], typer.Argument(help="K of a, K of b, c: hex codes (0x3c00) or numbers (1.5).")],
) -> int:
    """Print one dot product step by step: products, alignment, what was cut, sum, rounding."""
    wanted = lookup.instruction(instruction, architecture)
    found = mmaprobe.model(architecture, wanted)
    vector = literal.parse_vector(wanted, operands)
    dense = found.dense(vector)
    if vector.metadata is not None:
        out().print(explain.selection(wanted, vector.metadata))
    out().print(explain.render(found.datapath, dense))
    return 0


@vectors_app.command("show")
def vectors_show(
    recipe: Annotated[str, typer.Argument(help="As a mismatch prints it.")],
    architecture: Annotated[str | None, typer.Option(help="Whose instruction, where formats differ.")] = None,
    as_json: Json = False,
) -> int:
    """Print the vector that a recipe names."""
    return show(listing.vector_rows(recipe, architecture), as_json, ("operand", "lane", "code", "value"))


@corpus_app.command("import")
def corpus_import(source: Path, destination: Path) -> int:
    """Turn the text files of a public model_validation folder into a corpus."""
    return show(listing.import_corpus(source, destination), False, listing.SETS)


@corpus_app.command("list")
def corpus_list(path: Path, as_json: Json = False) -> int:
    """List the recorded sets of a corpus."""
    return show(listing.corpus_rows(path), as_json, listing.SETS)


@corpus_app.command("check")
def corpus_check(path: Path, as_json: Json = False) -> int:
    """Hold every recorded set against the model of its architecture."""
    rows = listing.check_corpus(path)
    show(rows, as_json, ("set", "instruction", "vectors", "mismatches", "outcome"))
    return listing.check_code(rows)


@parameters_app.command("show")
def parameters_show(architecture: str, as_json: Json = False) -> int:
    """Print what is known of an architecture's primitives, with the basis of each."""
    if as_json:
        emit(known.parameter_rows(architecture))
    else:
        out().print("\n".join(known.parameter_lines(architecture)) or "nothing is known", markup=False, soft_wrap=True)
    return 0


@parameters_app.command("diff")
def parameters_diff(first: str, second: str) -> int:
    """Print how two architectures differ, in meaning; exit 1 where they do."""
    lines = known.parameter_diff(first, second)
    out().print("\n".join(lines) or "no difference", markup=False, soft_wrap=True)
    return 1 if lines else 0


@parameters_app.command("write")
def parameters_write(
    evidence: Annotated[Path, typer.Argument(help="Evidence folder of a finished run.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", help="Parameter file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when the file would change.")] = False,
) -> int:
    """Turn the evidence of a run into a parameter file; print what changes, in meaning."""
    derived = parameter_file(Store.open(evidence))
    lines = listing.file_changes(out_file, derived)
    out().print("\n".join(lines) or "no change", markup=False)
    if not check:
        save(derived, out_file)
    return 1 if check and lines else 0


@app.command()
def bench(
    architecture: Annotated[str | None, typer.Argument(help="Architecture; default: this CPU's.")] = None,
    instruction: Glob = "*",
    threads: Annotated[int, typer.Option(help="Threads at once.", min=1)] = 1,
    smoke: Annotated[bool, typer.Option("--smoke", help="One short call each, to see that it runs.")] = False,
    as_json: Json = False,
) -> int:
    """Measure how fast an architecture's models are here, and their share of the machine's roof."""
    found = speeds.bench(architecture, instruction, threads, smoke)
    if as_json:
        emit(found)
    else:
        out().print(speeds.title(found))
        out().print(listing.table(speeds.cells(found), speeds.COLUMNS))
    return 0


@app.command("doctor")
def doctor_command(as_json: Json = False) -> int:
    """Say what is here, what is missing, and the command to get it."""
    return show(doctor.doctor_rows(), as_json, ("subject", "ok", "found", "command"))


def show(rows: Sequence[dict[str, Any]], as_json: bool, columns: Sequence[str]) -> int:
    """Print rows as a table or as JSON."""
    if as_json:
        emit(list(rows))
    else:
        out().print(listing.table(rows, columns))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run a command; every error is one line on standard error and an exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except MmaprobeError as error:
        return _fail(str(error), error.exit_code)
    except typer.Exit as error:
        return int(error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 6
    except Exception as error:
        if hasattr(error, "format_message"):  # a click usage error
            return _fail(error.format_message(), 2)
        raise
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    print(f"mmaprobe: {message}", file=sys.stderr)
    return code
