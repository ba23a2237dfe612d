"""Commands on files: recipes of vectors, corpora, parameter files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmaprobe.cli.terminal import (
    JsonOption,
    corpus_app,
    emit,
    out,
    parameters_app,
    path,
    show,
    vectors_app,
)

PARAMETERS = "An architecture, or a parameter file: FILE.toml."
CorpusArgument = Annotated[Path, typer.Argument(metavar="PATH", parser=path, help="Folder of the corpus.")]


@vectors_app.command("show")
def vectors_show(
    recipe: Annotated[str, typer.Argument(help="As a mismatch prints it.")],
    architecture: Annotated[str | None, typer.Option(help="Whose instruction, where formats differ.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Print the vector that a recipe names."""
    from mmaprobe.report.tables import listing

    return show(listing.vector_rows(recipe, architecture), as_json, ("operand", "lane", "code", "value"))


@corpus_app.command("import")
def corpus_import(
    source: Annotated[Path, typer.Argument(parser=path, help="MATLAB-tensor-core, or its model_validation folder.")],
    destination: Annotated[Path, typer.Argument(parser=path, help="Folder for the corpus.")],
    as_json: JsonOption = False,
) -> int:
    """Turn the text files of a public model_validation folder into a corpus."""
    from mmaprobe.report.tables import listing

    return show(listing.import_corpus(source, destination), as_json, listing.SETS)


@corpus_app.command("list")
def corpus_list(corpus: CorpusArgument, as_json: JsonOption = False) -> int:
    """List the recorded sets of a corpus."""
    from mmaprobe.report.tables import listing

    return show(listing.corpus_rows(corpus), as_json, listing.SETS)


@corpus_app.command("check")
def corpus_check(corpus: CorpusArgument, as_json: JsonOption = False) -> int:
    """Hold every recorded set against the model of its architecture."""
    from mmaprobe.report.tables import listing

    rows = listing.check_corpus(corpus)
    show(rows, as_json, ("set", "instruction", "vectors", "mismatches", "outcome"))
    return listing.check_code(rows)


@corpus_app.command("answer")
def corpus_answer(
    questions: Annotated[Path, typer.Argument(parser=path, help="File that derive --ask wrote.")],
    destination: Annotated[Path, typer.Argument(parser=path, help="Folder for the corpus of the answers.")],
    device: Annotated[
        str | None, typer.Option("--device", "-d", help="Ask this device; else take d from the file.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Turn the answers to a file of questions into a corpus, for derive --from."""
    from mmaprobe.report.tables import listing

    return show(listing.answer_questions(questions, destination, device), as_json, listing.SETS)


@parameters_app.command("show")
def parameters_show(
    architecture: Annotated[str, typer.Argument(metavar="ARCH", help=PARAMETERS)], as_json: JsonOption = False
) -> int:
    """Print what is known of an architecture's primitives, with the basis of each."""
    from mmaprobe.report.datapath import known

    if as_json:
        emit(known.parameter_rows(architecture))
    else:
        out().print("\n".join(known.parameter_lines(architecture)) or "nothing is known")
    return 0


@parameters_app.command("write")
def parameters_write(
    evidence: Annotated[Path, typer.Argument(parser=path, help="Evidence folder of a finished run.")],
    out_file: Annotated[Path, typer.Option("--out", "-o", parser=path, help="Parameter file to write.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when the file would change.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Turn the evidence of a run into a parameter file; print what changes, in meaning."""
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.evidence.store import Store
    from mmaprobe.parameters.files import to_text
    from mmaprobe.report.tables import listing
    from mmaprobe.survey.parameter_entries import parameter_file

    derived = parameter_file(Store.open(evidence))
    lines = listing.file_changes(out_file, derived)
    if as_json:
        emit({"file": str(out_file), "changes": lines, "written": not check})
    else:
        out().print("\n".join(lines) or "no change")
    if not check:
        write_bytes(out_file, to_text(derived).encode(), "choose another file with --out")
    return 1 if check and lines else 0
