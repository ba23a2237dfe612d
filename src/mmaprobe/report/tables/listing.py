"""Tables of what exists: devices, instructions, parameters, recorded sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from mmaprobe.catalog import lookup
from mmaprobe.devices.base import open_device, pad_lanes, run_vectors, schemes
from mmaprobe.devices.replay import record
from mmaprobe.errors import MmaprobeError, UsageError, printable
from mmaprobe.evidence import importing
from mmaprobe.evidence.corpus import Corpus, write_corpus
from mmaprobe.evidence.missing_vectors_file import as_corpus, read_missing_vectors
from mmaprobe.evidence.silicon import remark
from mmaprobe.generators import Recipe, regenerate
from mmaprobe.models.hexfloat import code_value
from mmaprobe.parameters.diff import diff
from mmaprobe.parameters.files import ParameterFile, read_parameter_file
from mmaprobe.vendors import vendor_called

TableRow = Mapping[str, Any]


def table(rows: Sequence[TableRow], columns: Iterable[str], title: str = "") -> Table:
    """A plain table of these columns of the rows; ids fold rather than being cut."""
    drawn = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = bool(rows) and all(isinstance(row.get(name), int) for row in rows)
        drawn.add_column(name.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(_cell(row.get(name))) for name in columns))
    return drawn


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))  # before it is measured


SETS = ("set", "gpu", "architecture", "instruction", "lanes", "vectors")


def device_rows() -> list[dict[str, Any]]:
    """Every registered device scheme: whether it opens here, and what it is."""
    rows = []
    for scheme in schemes():
        if scheme in USAGE:
            rows.append({"device": USAGE[scheme], "here": "yes", "what": SCHEMES[scheme]})
            continue
        rows += map(_device_row, device_names(scheme))
    return rows


def device_names(scheme: str) -> list[str]:
    """The devices of a scheme that are here, each GPU by number; the scheme's own name where there is none of them."""
    try:
        siblings = getattr(open_device(scheme), "siblings", None)
    except MmaprobeError:
        return [scheme]
    return list(siblings()) if siblings else [scheme]


def gpu_names(device: str) -> list[str]:
    """The GPUs that a device's name stands for: those of its maker that are here for one without a number (``cuda``,
    ``hip:?pack=FOLDER``), with the options of the name; itself for a numbered one; none for what is no GPU, or not
    here."""
    scheme, _, argument = device.partition(":")
    number, mark, options = argument.partition("?")
    if vendor_called(scheme) is None:
        return []
    if number:
        return [device]
    return [f"{name}{mark}{options}" for name in device_names(scheme) if name != scheme]


def _device_row(name: str) -> dict[str, Any]:
    try:
        device = open_device(name)
        here = [i for i in device.instructions() if device.supports(i)]
        info = device.info()
        what = f"{info.get('model_name', '')} {info.get('architecture', '')}: {len(here)} instructions run here"
        beside = remark(name, info)
        return {"device": name, "here": "yes", "what": what.strip() + (f"; {beside}" if beside else "")}
    except MmaprobeError as error:
        return {"device": name, "here": "no", "what": str(error)}


USAGE = {
    "model": "model:ARCH or model:FILE.toml",
    "mutant": "mutant:ARCH/PRIMITIVE/FIELD=VALUE",
    "replay": "replay:PATH",
    "process": "process:COMMAND",
    "function": "function:MODULE:NAME",
    "misbehaving": "misbehaving:KIND?of=DEVICE",
}
SCHEMES = {
    "model": "a parameter file, as a device",
    "mutant": "a model with one seeded fault",
    "replay": "recorded inputs and outputs",
    "process": "another program over lines or frames",
    "function": "a Python callable that computes dot products",
    "misbehaving": "a device that lies, for testing the harness",
}


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
