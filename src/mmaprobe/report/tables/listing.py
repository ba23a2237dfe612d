"""Tables of what exists: vectors of recipes, parameters, recorded sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.catalog import lookup
from mmaprobe.devices.base import open_device, pad_lanes, run_vectors
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError, printable
from mmaprobe.evidence import importing
from mmaprobe.evidence.corpus import Corpus, write_corpus
from mmaprobe.evidence.missing_vectors_file import as_corpus, read_missing_vectors
from mmaprobe.generators import Recipe, regenerate
from mmaprobe.models.hexfloat import code_value
from mmaprobe.parameters.diff import diff
from mmaprobe.parameters.files import ParameterFile, read_parameter_file
from mmaprobe.report.fitted import FittedTable

TableRow = Mapping[str, Any]


def table(rows: Sequence[TableRow], columns: Iterable[str], title: str = "") -> FittedTable:
    """A plain table of these columns of the rows; cards where it is too wide for its console."""
    names = tuple(columns)
    return FittedTable(
        tuple(name.replace("_", " ") for name in names),
        tuple(tuple(_cell(row.get(name)) for name in names) for row in rows),
        tuple(bool(rows) and all(isinstance(row.get(name), int) for row in rows) for name in names),
        title,
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))  # before it is measured


SETS = ("set", "gpu", "architecture", "instruction", "lanes", "vectors")


def vector_rows(recipe: str, architecture: str | None = None) -> list[dict[str, Any]]:
    """The vector of a recipe: a row a lane and operand, as code and exact value."""
    instruction = lookup.instruction(Recipe.parse(recipe).instruction, architecture)
    vector = regenerate(recipe, instruction)
    named = instruction.formats()
    rows = []
    for operand, codes in vector.items():
        for lane, code in enumerate(codes.reshape(-1).tolist()):
            value = code_value(named[operand], code) if operand in named else str(code)
            rows.append({"operand": operand, "lane": str(lane), "code": f"{code:#x}", "value": value})
    return rows


def import_corpus(source: Path, destination: Path) -> list[dict[str, Any]]:
    """Import a public model_validation folder; the sets that it gave."""
    importing.import_corpus(source, destination)
    return corpus_rows(destination)


def corpus_rows(path: Path) -> list[dict[str, Any]]:
    """The recorded sets of a corpus."""
    return [
        {"set": s.key, "gpu": s.gpu, "architecture": s.architecture, "instruction": s.instruction, "lanes": s.k,
         "vectors": s.count}
        for s in Corpus.open(path).sets()
    ]  # fmt: skip


def answer_questions(questions: Path, destination: Path, device: str | None) -> list[dict[str, Any]]:
    """Put the answers to a file of questions into a corpus: a device's, or those that the file holds."""
    unit, architecture, asked = read_missing_vectors(questions)
    if device is not None:
        corpus = record(open_device(device), [(each.instruction, each.vectors) for each in asked])
    else:
        corpus = as_corpus(questions, unit, architecture, asked)
    write_corpus(destination, corpus, f"answers to {questions.name}")
    return corpus_rows(destination)


def check_corpus(path: Path) -> list[dict[str, Any]]:
    """Every recorded set against the model of its architecture: mismatches, or why there is no model."""
    corpus = Corpus.open(path)
    rows: list[dict[str, Any]] = []
    for recorded in corpus.sets():
        row: dict[str, Any] = {"set": recorded.key, "instruction": recorded.instruction, "vectors": recorded.count}
        try:
            instruction = lookup.instruction(recorded.instruction, recorded.architecture)
            vectors, expected = corpus.vectors(recorded.key)
            model = open_device(f"model:{recorded.architecture}")
            got = run_vectors(model, instruction, pad_lanes(instruction, vectors))
            bad = int((got != expected).sum())
            row |= {"mismatches": bad, "outcome": "mismatch" if bad else "equal"}
        except UsageError as error:
            row |= {"mismatches": None, "outcome": str(error)}
        rows.append(row)
    return rows


def check_code(rows: Sequence[TableRow]) -> int:
    """1 with a mismatch, 4 where nothing was compared, else 0."""
    if any(row["mismatches"] for row in rows):
        return 1
    return 0 if any(row["mismatches"] == 0 for row in rows) else 4


def file_changes(path: Path, new: ParameterFile) -> list[str]:
    """What a parameter file would say anew; the whole of it where there is none yet."""
    old = read_parameter_file(path) if path.exists() else ParameterFile(new.architecture)
    return [str(change) for change in diff(old, new)]
